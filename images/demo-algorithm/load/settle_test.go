// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestWaitForAllNodes has a Service with two replicas, of which one refuses the caller for a while.
func TestWaitForAllNodes(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"version":"v1"}`)
	}))
	defer srv.Close()
	var (
		connections, refused atomic.Int64
		began                = time.Now()
	)
	half := func(ctx context.Context, network, address string) (net.Conn, error) {
		// The first is let in, so that there is a first answer.
		if connections.Add(1)%2 == 0 && time.Since(began) < 300*time.Millisecond {
			refused.Add(1)
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	r, err := Run(ctx, Options{URL: srv.URL, Concurrency: 4, Timeout: time.Second, Wait: 10 * time.Second, Rate: 100, NoKeepAlive: true, dial: half})
	if err != nil {
		t.Fatal(err)
	}
	if refused.Load() == 0 || r.Answered == 0 || r.Lost() != 0 {
		t.Errorf("%d connections were refused at first: want none of these to count, got %v of %d", refused.Load(), r.Failed, r.Sent)
	}
}

// TestWaitEnds expects that a path which never settles is called all the same, and that what fails counts.
func TestWaitEnds(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"version":"v1"}`)
	}))
	defer srv.Close()
	const wait = 300 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var (
		connections, after atomic.Int64
		began              = time.Now()
	)
	half := func(ctx context.Context, network, address string) (net.Conn, error) {
		// Enough of them come when the wait is over, however slow the machine is.
		if time.Since(began) > 2*wait && after.Add(1) > 8 {
			cancel()
		}
		if connections.Add(1)%2 == 0 {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	r, err := Run(ctx, Options{URL: srv.URL, Concurrency: 1, Timeout: time.Second, Wait: wait, Rate: 50, NoKeepAlive: true, dial: half})
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed["refused"] == 0 || r.Answered == 0 {
		t.Errorf("half of all connections are refused: got %v of %d", r.Failed, r.Sent)
	}
}

func TestAddress(t *testing.T) {
	for url, want := range map[string]string{
		"http://reco/predict":                 "reco:80",
		"http://reco.demo.svc:8080/predict":   "reco.demo.svc:8080",
		"https://reco.example.org/predict":    "reco.example.org:443",
		"http://[fd00::1]/predict":            "[fd00::1]:80",
		"https://[fd00::1]:8443/v1/predict?x": "[fd00::1]:8443",
	} {
		got, err := Options{URL: url}.address()
		if err != nil || got != want {
			t.Errorf("%s: want %s, got %s, %v", url, want, got, err)
		}
	}
}
