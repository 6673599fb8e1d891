// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/function/edge"
	"github.com/capstan-dev/capstan/test/output"
)

const loopback = "127.0.0.1:0"

// A functionFunc is a function for tests.
type functionFunc func(req *edge.Request) *edge.Answer

func (f functionFunc) Run(_ context.Context, req *edge.Request) *edge.Answer { return f(req) }

func echo(req *edge.Request) *edge.Answer {
	return &edge.Answer{Rest: &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Tag: req.Meta.GetTag()}}}
}

// A running server.
type running struct {
	*Server

	log *output.Buffer
	// end it as SIGTERM does, and wait for what Run returns.
	end  context.CancelFunc
	done chan error
}

func start(t *testing.T, run functionFunc, mods ...func(*Options)) *running {
	t.Helper()
	r := &running{log: &output.Buffer{}, done: make(chan error, 1)}
	o := Options{
		Log:            slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Kinds:          []string{"Algorithm"},
		Address:        loopback,
		Insecure:       true,
		HealthAddress:  loopback,
		MetricsAddress: loopback,
		DrainTimeout:   10 * time.Second,
	}
	for _, mod := range mods {
		mod(&o)
	}
	var err error
	if r.Server, err = New(run, o); err != nil {
		t.Fatalf("New(...): unexpected error: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.end = cancel
	go func() { r.done <- r.Run(ctx) }()
	t.Cleanup(cancel)
	eventually(t, "the server to be ready", func() bool { code, _ := r.get(t, 0, "/readyz"); return code == http.StatusOK })
	return r
}

// get a path of an endpoint: the first serves probes, the second metrics.
func (r *running) get(t *testing.T, endpoint int, path string) (int, string) {
	t.Helper()
	rsp, err := http.Get("http://" + r.endpoints[endpoint].listener.Addr().String() + path)
	if err != nil {
		t.Fatalf("cannot get %s: %v", path, err)
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatalf("cannot read %s: %v", path, err)
	}
	return rsp.StatusCode, string(body)
}

func dial(t *testing.T, addr net.Addr, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr.String(), grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatalf("cannot dial: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (r *running) client(t *testing.T) fnv1.FunctionRunnerServiceClient {
	t.Helper()
	return fnv1.NewFunctionRunnerServiceClient(dial(t, r.Addr(), insecure.NewCredentials()))
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("waited in vain for %s", what)
}

func request(tag, kind string) *fnv1.RunFunctionRequest {
	s, err := structpb.NewStruct(map[string]any{
		"kind": kind, "metadata": map[string]any{"namespace": "shop", "name": "reco"},
		"spec": map[string]any{"env": "canary"},
	})
	if err != nil {
		panic(err)
	}
	return &fnv1.RunFunctionRequest{
		Meta:     &fnv1.RequestMeta{Tag: tag},
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: s}},
	}
}

func TestPanic(t *testing.T) {
	r := start(t, func(req *edge.Request) *edge.Answer {
		if req.Meta.GetTag() == "bad" {
			panic("on purpose")
		}
		return echo(req)
	})
	client := r.client(t)
	want := Fatal(&edge.Request{Meta: &fnv1.RequestMeta{Tag: "bad"}}, `cannot compose Algorithm "shop/reco": function-capstan has a bug. Nothing was `+
		`changed. Please report it with the stack that the function logged for tag "bad"`).Rest
	got, err := client.RunFunction(t.Context(), request("bad", "Algorithm"))
	if err != nil {
		t.Fatalf("A panic should be answered: %v", err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("A panic should be answered with a fatal result: -want, +got:\n%s", diff)
	}
	if _, err := client.RunFunction(t.Context(), request("good", "Algorithm")); err != nil {
		t.Errorf("After a panic other requests should be answered: %v", err)
	}
	logged := r.log.String()
	for _, s := range []string{`"tag":"bad"`, `"name":"shop/reco"`, "on purpose", "server_test.go"} {
		if !strings.Contains(logged, s) {
			t.Errorf("A panic should be logged with %s, got:\n%s", s, logged)
		}
	}
	if strings.Contains(logged, "canary") {
		t.Errorf("What is in an object should not be logged:\n%s", logged)
	}
}

func TestMetrics(t *testing.T) {
	r := start(t, func(req *edge.Request) *edge.Answer {
		switch req.Meta.GetTag() {
		case "panic":
			panic("boom")
		case "fatal":
			return Fatal(req, "no")
		}
		rsp := echo(req)
		rsp.Desired = &fnv1.State{Resources: map[string]*fnv1.Resource{"a": {}, "b": {}}}
		return rsp
	})
	client := r.client(t)
	for _, req := range []*fnv1.RunFunctionRequest{
		request("ok", "Algorithm"), request("ok", "Algorithm"),
		request("fatal", "Made Up"), request("panic", "Algorithm"),
	} {
		if _, err := client.RunFunction(t.Context(), req); err != nil {
			t.Fatalf("RunFunction(...): unexpected error: %v", err)
		}
	}
	_, body := r.get(t, 1, "/metrics")
	for _, line := range []string{
		`capstan_function_run_seconds_count{kind="Algorithm",outcome="ok"} 2`,
		`capstan_function_run_seconds_count{kind="Algorithm",outcome="panic"} 1`,
		`capstan_function_run_seconds_count{kind="other",outcome="fatal"} 1`,
		`capstan_function_run_seconds_bucket{kind="Algorithm",outcome="ok",le="5e-05"}`,
		`capstan_function_composed_resources_sum{kind="Algorithm"} 4`,
		`capstan_function_panics_total 1`,
		`process_resident_memory_bytes`,
		`go_goroutines`,
	} {
		if !strings.Contains(body, line) {
			t.Errorf("metrics lack %s", line)
		}
	}
}

// A call that runs when the process is told to end is answered, callers are told to go elsewhere meanwhile, and calls that come
// before they know are served.
func TestDrain(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	r := start(t, func(req *edge.Request) *edge.Answer {
		if req.Meta.GetTag() == "slow" {
			close(running)
			<-release
		}
		return echo(req)
	}, func(o *Options) { o.DrainDelay = 300 * time.Millisecond })
	conn := dial(t, r.Addr(), insecure.NewCredentials())
	client, probe := fnv1.NewFunctionRunnerServiceClient(conn), healthv1.NewHealthClient(conn)
	slow := make(chan error, 1)
	go func() {
		_, err := client.RunFunction(context.Background(), request("slow", "Algorithm"))
		slow <- err
	}()
	<-running
	r.end()
	eventually(t, "readiness to be withdrawn", func() bool {
		code, _ := r.get(t, 0, "/readyz")
		return code == http.StatusServiceUnavailable
	})
	if code, _ := r.get(t, 0, "/livez"); code != http.StatusOK {
		t.Errorf("While draining the process is alive, got %d", code)
	}
	h, err := probe.Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil || h.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("While draining gRPC health should be NOT_SERVING, got %v, %v", h.GetStatus(), err)
	}
	if _, err := client.RunFunction(t.Context(), request("late", "Algorithm")); err != nil {
		t.Errorf("During the delay calls should be served: %v", err)
	}
	select {
	case err := <-r.done:
		t.Fatalf("The server should wait for the running call, Run returned %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	close(release)
	if err := <-slow; err != nil {
		t.Errorf("The running call should be answered: %v", err)
	}
	if err := <-r.done; err != nil {
		t.Errorf("Run(...): unexpected error: %v", err)
	}
}

func TestDrainTimeout(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	r := start(t, func(req *edge.Request) *edge.Answer {
		close(running)
		<-release
		return echo(req)
	}, func(o *Options) { o.DrainTimeout = 50 * time.Millisecond })
	client := r.client(t)
	cut := make(chan error, 1)
	go func() {
		_, err := client.RunFunction(context.Background(), request("stuck", "Algorithm"))
		cut <- err
	}()
	<-running
	r.end()
	if err := <-cut; status.Code(err) != codes.Unavailable {
		t.Errorf("A call that does not end in time should be cut off, got %v", err)
	}
}

func TestRequestLimit(t *testing.T) {
	client := start(t, echo).client(t)
	req := request(strings.Repeat("x", maxRequest), "Algorithm")
	if _, err := client.RunFunction(t.Context(), req); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("A request above the limit should be refused, got %v", err)
	}
	if _, err := client.RunFunction(t.Context(), request("next", "Algorithm")); err != nil {
		t.Errorf("A request after it should be answered: %v", err)
	}
}

func TestNew(t *testing.T) {
	taken, err := net.Listen("tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := taken.Addr().String()
	cases := map[string]struct {
		reason string
		o      Options
		want   string
	}{
		"NoCertificates": {
			reason: "Without certificates nothing should be served by accident.",
			o:      Options{Address: loopback},
			want: "cannot serve without certificates: name their folder (--tls-certs-dir), or serve to every client in a " +
				"local run (--insecure)",
		},
		"AddressTaken": {
			reason: "An address for calls that is taken should be told.",
			o:      Options{Insecure: true, Address: busy},
			want:   "cannot listen for calls: listen tcp " + busy + ": bind: address already in use",
		},
		"HealthAddressTaken": {
			reason: "An address for probes that is taken should be told.",
			o:      Options{Insecure: true, Address: loopback, HealthAddress: busy},
			want:   "cannot listen for probes: listen tcp " + busy + ": bind: address already in use",
		},
		"MetricsAddressTaken": {
			reason: "An address for metrics that is taken should be told.",
			o:      Options{Insecure: true, Address: loopback, MetricsAddress: busy},
			want:   "cannot listen for metrics: listen tcp " + busy + ": bind: address already in use",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.Log = slog.New(slog.DiscardHandler)
			_, err := New(functionFunc(echo), tc.o)
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s\nNew(...): want error %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
