// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestRequest(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
		hook   Hook
		want   string
		calls  int32
	}{
		"Good": {
			reason: "Any status of success will do.", answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
			hook: Hook{Method: "POST", Timeout: time.Minute}, calls: 1,
		},
		"Expected": {
			reason: "One that is named is good, whatever it is.", answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) },
			hook: Hook{Method: "POST", Timeout: time.Minute, ExpectedStatus: http.StatusConflict}, calls: 1,
		},
		"Unexpected": {
			reason: "No other is.", answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) },
			hook: Hook{Method: "POST", Timeout: time.Minute, ExpectedStatus: http.StatusNoContent}, want: "status 200", calls: 1,
		},
		"Bad": {
			reason: "What was answered once is not asked again, and what it says is told.",
			answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such job", http.StatusNotFound) },
			hook:   Hook{Method: "PUT", Timeout: time.Minute}, want: `status 404: "no such job`, calls: 1,
		},
		"Redirect": {
			reason: "Nobody is led elsewhere.", answer: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) },
			hook: Hook{Method: "GET", Timeout: time.Minute}, want: "status 302", calls: 1,
		},
		"Hangs": {
			reason: "It ends.", answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			hook: Hook{Method: "POST", Timeout: 100 * time.Millisecond}, want: "did not end within 100ms", calls: 1,
		},
		"Broken": {
			reason: "A request that may have arrived is not sent again.", answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			hook: Hook{Method: "POST", Timeout: time.Minute}, want: "the request failed", calls: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				if r.Method != tc.hook.Method {
					t.Errorf("\n%s\nwant method %s, got %s", tc.reason, tc.hook.Method, r.Method)
				}
				tc.answer(w, r)
			}))
			t.Cleanup(s.Close)
			tc.hook.URL = s.URL + "/maintenance"
			err := tc.hook.Do(t.Context(), slog.New(slog.DiscardHandler), nil)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("\n%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
			if calls.Load() != tc.calls {
				t.Errorf("\n%s\nwant %d calls, got %d", tc.reason, tc.calls, calls.Load())
			}
		})
	}
}

// TestWaits for a server that is not there yet.
func TestWaits(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	gone := Hook{URL: "http://" + address, Method: "POST", Timeout: 300 * time.Millisecond}
	if err := gone.Do(t.Context(), slog.New(slog.DiscardHandler), nil); err == nil || !strings.Contains(err.Error(), "could not be sent within 300ms") {
		t.Errorf("want it to say that nobody was there, got %v", err)
	}
	done := make(chan error, 1)
	late := Hook{URL: "http://" + address, Method: "POST", Timeout: time.Minute}
	go func() { done <- late.Do(context.Background(), slog.New(slog.DiscardHandler), nil) }()
	time.Sleep(200 * time.Millisecond)
	s := &httptest.Server{Config: &http.Server{Handler: http.NotFoundHandler()}}
	if s.Listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", address); err != nil {
		t.Skipf("somebody else has the address: %v", err)
	}
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	s.Start()
	t.Cleanup(s.Close)
	if err := <-done; err != nil {
		t.Errorf("want it to succeed once somebody is there, got %v", err)
	}
}

// TestStatements are tried again until they were sent, and no longer.
func TestStatements(t *testing.T) {
	broken := errors.New("the connection broke")
	for name, tc := range map[string]struct {
		reason string
		fails  []error
		want   string
		calls  int
	}{
		"Good":      {"They are sent once.", []error{nil}, "", 1},
		"Unreached": {"A server that has not heard of them may not be there yet.", []error{Unreached(errors.New("cannot connect")), nil}, "", 2},
		"Failed":    {"What may have been committed is not sent again.", []error{broken}, "the connection broke", 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			h := Hook{SQL: "SELECT 1", Timeout: time.Minute}
			err := h.Do(t.Context(), slog.New(slog.DiscardHandler), func(context.Context) error { calls++; return tc.fails[calls-1] })
			if (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want || calls != tc.calls {
				t.Errorf("%s: want %q after %d calls, got %v after %d", tc.reason, tc.want, tc.calls, err, calls)
			}
		})
	}
}

func TestSecret(t *testing.T) {
	h := Hook{Connection: t.TempDir()}
	if _, err := h.URI(); err == nil || !strings.Contains(err.Error(), "cannot read the Secret of the consumer") {
		t.Errorf("want it to say what is missing, got %v", err)
	}
	if c, err := h.TLS("orders-db-rw.demo.svc"); err != nil || c.ServerName != "orders-db-rw.demo.svc" || c.RootCAs != nil || c.InsecureSkipVerify {
		t.Errorf("Without an authority of its own it should trust what every system does: %+v, %v", c, err)
	}
	if err := os.WriteFile(filepath.Join(h.Connection, "ca.crt"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.TLS("orders-db-rw.demo.svc"); err == nil || !strings.Contains(err.Error(), "no certificate in ca.crt") {
		t.Errorf("An authority that cannot be read should not be left out, got %v", err)
	}
}
