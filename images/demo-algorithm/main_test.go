// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestDrain proves that a request that began before the signal is answered, that probes see the pod go while it still serves, and
// that the program then ends.
func TestDrain(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	ctx, terminate := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	o := Options{Version: "v1", LatencyMs: 300, Notice: 100 * time.Millisecond, Drain: 5 * time.Second}
	go func() { ended <- serve(ctx, slog.New(slog.DiscardHandler), o, "", listener) }()
	status(t, url+"/healthz", http.StatusOK)
	began := make(chan int, 1)
	go func() { began <- get(t.Context(), url+"/predict") }()
	await(t, func() bool { return strings.Contains(body(t.Context(), url+"/metrics"), "algorithm_inflight 1") })
	terminate()
	await(t, func() bool { return get(t.Context(), url+"/healthz") == http.StatusServiceUnavailable })
	if rsp, err := http.Get(url + "/metrics"); err != nil || !rsp.Close {
		t.Errorf("a caller of a server that drains is not asked to make its next connection elsewhere: %v, %v", rsp, err)
	} else {
		_ = rsp.Body.Close()
	}
	if code := <-began; code != http.StatusOK {
		t.Errorf("a request that began before the signal: want status 200, got %d", code)
	}
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// TestStart expects that nobody is answered while the program pretends to load a model, and that it can be ended then.
func TestStart(t *testing.T) {
	ctx, terminate := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, slog.New(slog.DiscardHandler), Options{Listen: "nowhere:http:80", Start: time.Hour})
	}()
	select {
	case err := <-ended:
		t.Fatalf("it went on before its time: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	terminate()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

// TestCrash expects that it serves first, and that the time begins with the first prediction: a candidate gets none before it is ready.
func TestCrash(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	o := Options{Version: "v1", CrashAfter: 300 * time.Millisecond}
	go func() { ended <- serve(t.Context(), slog.New(slog.DiscardHandler), o, "", listener) }()
	time.Sleep(2 * o.CrashAfter)
	status(t, "http://"+listener.Addr().String()+"/healthz", http.StatusOK)
	began := time.Now()
	status(t, "http://"+listener.Addr().String()+"/predict", http.StatusOK)
	err = <-ended
	if err == nil || err.Error() != "cannot serve on: set to crash after 300ms" || time.Since(began) < o.CrashAfter {
		t.Errorf("serve: after %s got %v", time.Since(began), err)
	}
}

func TestImpossibleBehaviour(t *testing.T) {
	err := run(t.Context(), slog.New(slog.DiscardHandler), Options{Listen: "127.0.0.1:0", ErrorRate: 2})
	if err == nil || err.Error() != "errorRate must be from 0 to 1" {
		t.Errorf("run with an error rate of 2: want its refusal, got %v", err)
	}
}

func status(t *testing.T, url string, want int) {
	t.Helper()
	if code := get(t.Context(), url); code != want {
		t.Fatalf("GET %s: want status %d, got %d", url, want, code)
	}
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	for limit := time.Now().Add(3 * time.Second); time.Now().Before(limit); time.Sleep(2 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatal("waited 3 s in vain")
}

// get returns the status, and 0 without an answer.
func get(ctx context.Context, url string) int {
	code, _ := ask(ctx, url)
	return code
}

func body(ctx context.Context, url string) string {
	_, answer := ask(ctx, url)
	return answer
}

func ask(ctx context.Context, url string) (code int, answer string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, ""
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = rsp.Body.Close() }()
	b, err := io.ReadAll(rsp.Body)
	if err != nil {
		return 0, ""
	}
	return rsp.StatusCode, string(b)
}
