// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRun counts what a server says it did, which changes its version, fails, and hangs up.
func TestRun(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil || string(body) != input(n) || r.Host != "reco.example.org" || r.URL.Path != "/predict":
			w.WriteHeader(http.StatusBadRequest)
		case n <= 10:
			_, _ = io.WriteString(w, `{"version":"v1"}`)
		case n <= 13:
			w.WriteHeader(http.StatusServiceUnavailable)
		case n <= 15:
			panic(http.ErrAbortHandler)
		default:
			_, _ = io.WriteString(w, `{"version":"v2"}`)
		}
	}))
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r, err := Run(ctx, Options{URL: srv.URL + "/predict", Host: "reco.example.org", Concurrency: 1, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if r.Sent != asked.Load() {
		t.Errorf("the server was asked %d times, and %d were sent", asked.Load(), r.Sent)
	}
	if diff := cmp.Diff(map[string]int64{"status 503": 3, "cut off": 2}, r.Failed); diff != "" {
		t.Errorf("failed: -want, +got:\n%s", diff)
	}
	v1, v2 := r.Versions["v1"], r.Versions["v2"]
	if v1 == nil || v2 == nil || v1.Answered != 10 || v1.Answered+v2.Answered != r.Answered || r.Lost() != 5 {
		t.Fatalf("answered: got %d, of these v1 %v and v2 %v, and %d lost", r.Answered, v1, v2, r.Lost())
	}
	if !v1.Last.Before(r.FirstFailure) || !r.FirstFailure.Before(r.LastFailure) || !r.LastFailure.Before(v2.First) {
		t.Errorf("v1 answered last at %s, failures were from %s to %s, v2 answered first at %s", v1.Last, r.FirstFailure, r.LastFailure, v2.First)
	}
	if r.P50Ms <= 0 || r.P50Ms > r.P99Ms {
		t.Errorf("quantiles: got %v, %v, %v", r.P50Ms, r.P95Ms, r.P99Ms)
	}
}

// TestConnections expects one connection for each caller, or one for each request.
func TestConnections(t *testing.T) {
	for _, noKeepAlive := range []bool{false, true} {
		t.Run(fmt.Sprintf("NoKeepAlive=%t", noKeepAlive), func(t *testing.T) {
			var connections atomic.Int64
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"version":"v1"}`)
			}))
			srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					connections.Add(1)
				}
			}
			srv.Start()
			defer srv.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			r, err := Run(ctx, Options{URL: srv.URL, Concurrency: 3, Timeout: time.Second, NoKeepAlive: noKeepAlive, Rate: 300})
			if err != nil {
				t.Fatal(err)
			}
			want := int64(3)
			if noKeepAlive {
				want = r.Sent
			}
			if got := connections.Load(); got != want || r.Lost() != 0 {
				t.Errorf("%d requests, of which %v failed, made %d connections, want %d", r.Sent, r.Failed, got, want)
			}
			// 300 per second for 0.2 s are 60; a busy machine may make it fewer, and nothing more.
			if r.Sent < 10 || r.Sent > 63 {
				t.Errorf("%d requests were sent in 0.2 s at 300 per second", r.Sent)
			}
		})
	}
}

// TestWait expects that nothing counts before the first answer, and an error when there is none.
func TestWait(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"version":"v1"}`)
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	o := Options{URL: srv.URL, Concurrency: 1, Timeout: time.Second, Wait: 10 * time.Second, Rate: 100}
	r, err := Run(ctx, o)
	if err != nil || r.Lost() != 0 || r.Sent == 0 || r.Sent != asked.Load()-3 {
		t.Errorf("asked %d times, of which 3 do not count: got %v, %v", asked.Load(), r, err)
	}
	srv.Close()
	o.Wait = 100 * time.Millisecond
	if r, err := Run(t.Context(), o); err == nil {
		t.Errorf("nobody answers: want an error, got %v", r)
	}
}

// TestInput expects that users come again, and that each fifth request meets all of them.
func TestInput(t *testing.T) {
	if got := input(7); got != `{"user":7}` || input(7+users) != got {
		t.Errorf("input 7: got %s, and %s later", got, input(7+users))
	}
	seen := map[string]bool{}
	for n := range int64(users) {
		seen[input(5*n)] = true
	}
	if len(seen) != users {
		t.Errorf("of %d users each fifth request meets %d", users, len(seen))
	}
}

func TestRefusedOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"NoCallers": {URL: "http://localhost", Timeout: time.Second},
		"NoTime":    {URL: "http://localhost", Concurrency: 1},
		"NoURL":     {URL: "://", Concurrency: 1, Timeout: time.Second},
	} {
		if r, err := Run(t.Context(), o); err == nil {
			t.Errorf("%s: want an error, got %v", name, r)
		}
	}
}

func TestKind(t *testing.T) {
	wrap := func(err error) error { return &url.Error{Op: "Post", URL: "http://10.0.0.1:4711/predict", Err: err} }
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Refused": {
			reason: "Nobody listens: the addresses differ from caller to caller, and the kind does not.",
			err:    wrap(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}),
			want:   "refused",
		},
		"Reset":   {reason: "The other side ended.", err: wrap(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), want: "reset"},
		"Pipe":    {reason: "The other side ended before it was asked.", err: wrap(syscall.EPIPE), want: "reset"},
		"CutOff":  {reason: "The connection ended in place of an answer.", err: wrap(io.EOF), want: "cut off"},
		"Timeout": {reason: "No answer came in time.", err: wrap(context.DeadlineExceeded), want: "timeout"},
		"Name":    {reason: "There is no such host.", err: wrap(&net.DNSError{IsNotFound: true}), want: "name not found"},
		"Status":  {reason: "An answer without success.", err: statusError(503), want: "status 503"},
		"Other":   {reason: "Whatever else happens is told as it is.", err: errors.New("what?"), want: "*errors.errorString: what?"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := kind(tc.err); got != tc.want {
				t.Errorf("%s\nkind(%v): want %q, got %q", tc.reason, tc.err, tc.want, got)
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	var ts times
	if got := ts.quantile(0.5); got != 0 {
		t.Errorf("of nothing: got %v", got)
	}
	for i := range 1000 {
		ts.add(time.Duration(i+1) * time.Millisecond)
	}
	for q, want := range map[float64]float64{0.5: 500, 0.95: 950, 0.99: 990} {
		if got := ts.quantile(q); got < want*0.98 || got > want*1.021 {
			t.Errorf("quantile(%v): want %v to within 2%%, got %v", q, want, got)
		}
	}
	ts.add(0)
	ts.add(24 * time.Hour)
}
