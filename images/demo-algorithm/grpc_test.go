// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestGRPC calls the server by gRPC on the port that it also serves HTTP on, until it drains.
func TestGRPC(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	ctx, terminate := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	o := Options{Version: "v1", Notice: 500 * time.Millisecond, Drain: 5 * time.Second}
	go func() { ended <- serve(ctx, slog.New(slog.DiscardHandler), o, "", listener) }()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	call := func(input string) (*wrapperspb.StringValue, error) {
		out := &wrapperspb.StringValue{}
		return out, connection.Invoke(t.Context(), "/"+predictorService+"/"+predictMethod, wrapperspb.String(input), out)
	}
	serving := func(service string) string {
		r, err := grpc_health_v1.NewHealthClient(connection).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil {
			return grpcstatus.Code(err).String()
		}
		return r.GetStatus().String()
	}

	out, err := call(`{"user": 1}`)
	p := Prediction{}
	if err != nil || json.Unmarshal([]byte(out.GetValue()), &p) != nil || p.Version != "v1" || string(p.Input) != `{"user":1}` && string(p.Input) != `{"user": 1}` {
		t.Errorf("a prediction: got %q, %v", out.GetValue(), err)
	}
	if _, err := call("no JSON"); grpcstatus.Code(err) != codes.InvalidArgument {
		t.Errorf("an input that is no JSON: got %v", err)
	}
	rsp, err := http.Post("http://"+address+"/admin/behaviour?errorRate=1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = rsp.Body.Close()
	if _, err := call(""); grpcstatus.Code(err) != codes.Internal {
		t.Errorf("a prediction that fails: got %v", err)
	}
	metrics := body(t.Context(), "http://"+address+"/metrics")
	for _, line := range []string{`algorithm_requests_total{code="200"} 1`, `algorithm_requests_total{code="400"} 1`, `algorithm_requests_total{code="500"} 1`} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	for service, want := range map[string]string{"": "SERVING", predictorService: "SERVING", "other": "NotFound"} {
		if got := serving(service); got != want {
			t.Errorf("health of %q: got %s, want %s", service, got, want)
		}
	}
	terminate()
	await(t, func() bool { s := serving(""); return s == "NOT_SERVING" || s == "Unavailable" })
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
}
