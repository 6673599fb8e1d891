// SPDX-License-Identifier: Apache-2.0

package activator_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/companion/internal/activator"
)

// free address, at which nothing listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// serve a handler at an address, with HTTP/1 and HTTP/2.
func serve(t *testing.T, address string, srv *http.Server) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
}

func replica(h http.HandlerFunc) *http.Server {
	var both http.Protocols
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	return &http.Server{Handler: h, Protocols: &both, ReadHeaderTimeout: time.Minute}
}

func client(two bool) *http.Client {
	var p http.Protocols
	p.SetHTTP1(!two)
	p.SetUnencryptedHTTP2(two)
	return &http.Client{Transport: &http.Transport{Protocols: &p}, Timeout: 20 * time.Second}
}

var silent = slog.New(slog.DiscardHandler)

// TestHold shows that requests which come before any replica runs get its responses, each once, after one signal.
func TestHold(t *testing.T) {
	for name, two := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			upstream, front := free(t), free(t)
			var rings, served atomic.Int64
			rang := make(chan struct{})
			a := activator.New(silent, upstream, time.Minute, func(context.Context) error {
				if rings.Add(1) == 1 {
					close(rang)
				}
				return nil
			})
			serve(t, front, a.Server())
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+front+"/predict?x=1", strings.NewReader("body"))
					if err != nil {
						t.Error(err)
						return
					}
					req.Host = "reco.shop"
					rsp, err := client(two).Do(req)
					if err != nil {
						t.Errorf("a request was lost: %v", err)
						return
					}
					defer func() { _ = rsp.Body.Close() }()
					text, err := io.ReadAll(rsp.Body)
					if err != nil || string(text) != "reco.shop /predict?x=1 body" || rsp.Trailer.Get("Grpc-Status") != "0" {
						t.Errorf("want the response of the replica, got %q, trailer %v (%v)", text, rsp.Trailer, err)
					}
					if !two && !rsp.Close {
						t.Error("the connection should be closed, so that the next request reaches a replica directly")
					}
				})
			}
			<-rang
			time.Sleep(300 * time.Millisecond)
			serve(t, upstream, replica(func(w http.ResponseWriter, r *http.Request) {
				served.Add(1)
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("Trailer", "Grpc-Status")
				_, _ = io.WriteString(w, r.Host+" "+r.URL.String()+" "+string(body))
				w.Header().Set("Grpc-Status", "0")
				if two != (r.ProtoMajor == 2) || r.Header.Get("X-Forwarded-For") != "" {
					t.Errorf("the replica should get the request as it was: %s %v", r.Proto, r.Header)
				}
			}))
			all.Wait()
			if served.Load() != 20 || rings.Load() != 1 {
				t.Errorf("want 20 requests and one signal, got %d and %d", served.Load(), rings.Load())
			}
		})
	}
}

// TestGiveUp shows what a request gets that waits for too long.
func TestGiveUp(t *testing.T) {
	front := free(t)
	var rings atomic.Int64
	a := activator.New(silent, free(t), 3*time.Second, func(context.Context) error {
		if rings.Add(1) == 1 {
			return errors.New("the API server does not answer")
		}
		return nil
	})
	serve(t, front, a.Server())
	rsp, err := client(false).Get("http://" + front)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rsp.Body.Close() }()
	if rsp.StatusCode != http.StatusServiceUnavailable || rsp.Header.Get("Retry-After") == "" {
		t.Errorf("want status 503 and when to try again, got %d %v", rsp.StatusCode, rsp.Header)
	}
	if rings.Load() != 2 {
		t.Errorf("a signal that failed should be repeated after two seconds, got %d", rings.Load())
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+front, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	if rsp, err = client(true).Do(req); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rsp.Body.Close() }()
	if rsp.StatusCode != http.StatusOK || rsp.Header.Get("Grpc-Status") != "14" {
		t.Errorf("want the status 14 of gRPC, got %d %v", rsp.StatusCode, rsp.Header)
	}
}

// TestBell shows what is written, and that a check writes nothing.
func TestBell(t *testing.T) {
	type call struct{ Path, Query, Token, Type, Requested string }
	var calls []call
	status := http.StatusOK
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Status struct {
				AtProvider struct {
					Requested string `json:"requested"`
				} `json:"atProvider"`
			} `json:"status"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		calls = append(calls, call{r.Method + " " + r.URL.Path, r.URL.RawQuery, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), body.Status.AtProvider.Requested})
		w.WriteHeader(status)
	}))
	defer api.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("t1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := activator.NewBell(api.Client(), api.URL, token, "shop", "reco")
	status = http.StatusForbidden
	if err := b.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("without rights the check should fail, got %v", err)
	}
	status = http.StatusOK
	for range 3 {
		if err := b.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if err := b.Ring(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(calls) != 4 || calls[2].Requested == calls[3].Requested || len(calls[3].Requested) > 63 {
		t.Fatalf("want two checks that reach the API server and two different signals, got %+v", calls)
	}
	calls[3].Requested = "?"
	want := call{"PATCH /apis/observe.capstan.dev/v1alpha1/namespaces/shop/analyses/reco/status", "", "Bearer t1", "application/merge-patch+json", "?"}
	if diff := cmp.Diff(want, calls[3]); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	want.Query, want.Requested = "dryRun=All", "check"
	if diff := cmp.Diff(want, calls[1]); diff != "" {
		t.Errorf("check: -want, +got:\n%s", diff)
	}
}
