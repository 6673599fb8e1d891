// SPDX-License-Identifier: Apache-2.0

package warmup

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// server answers at an address that stays the same when it is gone and comes back.
type server struct {
	address  string
	requests atomic.Int32
	// answer returns the status of the nth request.
	answer func(n int32, r *http.Request) int
	srv    *http.Server
}

func newServer(t *testing.T, answer func(n int32, r *http.Request) int) *server {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{address: l.Addr().String(), answer: answer}
	_ = l.Close()
	t.Cleanup(s.stop)
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.srv = &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(s.answer(s.requests.Add(1), r))
	})}
	go func() { _ = s.srv.Serve(l) }()
}

func (s *server) stop() {
	if s.srv != nil {
		_ = s.srv.Close()
	}
}

// run a Warmer until the test ends.
func run(t *testing.T, address string, change func(o *Options)) *Warmer {
	t.Helper()
	u, err := url.Parse("http://" + address + "/predict")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{URL: u, Method: http.MethodGet, Requests: 10, Timeout: 500 * time.Millisecond, Every: 5 * time.Millisecond, Agent: "test"}
	if change != nil {
		change(&o)
	}
	w := New(slog.New(slog.DiscardHandler), o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		w.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Error("the warmer does not end")
		}
	})
	return w
}

// await an answer of /ready.
func await(t *testing.T, w *Warmer, code int, says string) {
	t.Helper()
	var rsp *httptest.ResponseRecorder
	for limit := time.Now().Add(5 * time.Second); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		rsp = httptest.NewRecorder()
		w.ServeHTTP(rsp, httptest.NewRequest(http.MethodGet, "/ready", nil))
		if rsp.Code == code && strings.Contains(rsp.Body.String(), says) {
			return
		}
	}
	t.Fatalf("want %d with %q, got %d: %s", code, says, rsp.Code, rsp.Body)
}

func TestWarmUp(t *testing.T) {
	s := newServer(t, func(int32, *http.Request) int { return http.StatusOK })
	w := run(t, s.address, nil)
	await(t, w, http.StatusServiceUnavailable, "nothing listens on "+s.address+" yet")
	s.start(t)
	await(t, w, http.StatusOK, "warm")
	if n := s.requests.Load(); n != 10 {
		t.Errorf("want 10 requests, got %d", n)
	}
	s.stop()
	await(t, w, http.StatusServiceUnavailable, "the server has stopped listening")
	s.start(t)
	await(t, w, http.StatusOK, "warm")
	if n := s.requests.Load(); n != 20 {
		t.Errorf("want 10 more requests after a restart, got %d", n-10)
	}
	time.Sleep(50 * time.Millisecond)
	if n := s.requests.Load(); n != 20 {
		t.Errorf("want no request to a warm server, got %d", n-20)
	}
}

func TestRequests(t *testing.T) {
	cases := map[string]struct {
		reason   string
		requests int
		answer   func(n int32, r *http.Request) int
		// want is the number of requests until it is warm.
		want int32
	}{
		"Loading": {
			reason: "Failures while the model loads do not count.", requests: 6,
			answer: func(n int32, _ *http.Request) int { return choose(n <= 10, 503, 200) }, want: 16,
		},
		"Shaky": {
			reason: "The last five must succeed in a row.", requests: 8,
			answer: func(n int32, _ *http.Request) int { return choose(n == 8, 500, 200) }, want: 13,
		},
		"Few": {
			reason: "All of fewer than five must.", requests: 2,
			answer: func(n int32, _ *http.Request) int { return choose(n == 2, 500, 204) }, want: 4,
		},
		"Redirect": {
			reason: "A redirect is no success.", requests: 1,
			answer: func(n int32, _ *http.Request) int { return choose(n == 1, 302, 200) }, want: 2,
		},
		"Hanging": {
			reason: "Who does not answer in time has not answered.", requests: 1,
			answer: func(n int32, r *http.Request) int {
				if n == 1 {
					<-r.Context().Done()
				}
				return 200
			}, want: 2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, tc.answer)
			s.start(t)
			w := run(t, s.address, func(o *Options) { o.Requests, o.Timeout = tc.requests, 100*time.Millisecond })
			await(t, w, http.StatusOK, "warm")
			if n := s.requests.Load(); n != tc.want {
				t.Errorf("%s\nwant warm after %d requests, got %d", tc.reason, tc.want, n)
			}
		})
	}
}

func choose(first bool, a, b int) int {
	if first {
		return a
	}
	return b
}

func TestFailing(t *testing.T) {
	s := newServer(t, func(int32, *http.Request) int { return http.StatusInternalServerError })
	s.start(t)
	w := run(t, s.address, nil)
	await(t, w, http.StatusServiceUnavailable, "/predict that warm the server up fail: the answer is 500 Internal Server Error")
}

func TestBody(t *testing.T) {
	var got atomic.Value
	s := newServer(t, func(_ int32, r *http.Request) int {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return http.StatusBadRequest
		}
		got.Store(strings.Join([]string{r.Method, r.URL.Path, r.Header.Get("Content-Type"), r.UserAgent(), string(b)}, " "))
		return http.StatusOK
	})
	s.start(t)
	w := run(t, s.address, func(o *Options) {
		o.Method, o.Body, o.ContentType = http.MethodPost, []byte(`{"user":1}`), "application/json"
	})
	await(t, w, http.StatusOK, "warm")
	if want := `POST /predict application/json test {"user":1}`; got.Load() != want {
		t.Errorf("want %q, got %q", want, got.Load())
	}
}
