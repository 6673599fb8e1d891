// SPDX-License-Identifier: Apache-2.0

// Package activator takes the requests for an Algorithm without replicas: it says that a request waits, holds it until a
// replica accepts connections, and forwards it. It changes nothing in a request or response, and never sends a request twice.
//
// Every response closes its connection, so that clients and Gateways reach the replicas directly with their next one.
package activator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// most requests are held at a time. Their bodies stay with the clients, so that each takes some 20 kB.
	most = 1000
	// look is how often it is tried whether a replica accepts connections, and dialTimeout how long that may take.
	look        = 100 * time.Millisecond
	dialTimeout = time.Second
	// again is the time between two signals at first, and seldom at most, while requests wait or come.
	again  = 2 * time.Second
	seldom = 30 * time.Second
)

// An Activator takes requests.
type Activator struct {
	log      *slog.Logger
	upstream string
	wait     time.Duration
	ring     func(context.Context) error
	dialer   net.Dialer

	held atomic.Int64

	mu      sync.Mutex
	open    chan struct{} // closed once a replica accepts connections, nil while nothing waits for it
	rangAt  time.Time
	every   time.Duration
	ringing bool
}

// New activator for the replicas behind an address. It holds a request for a time at most, and rings when one comes.
func New(log *slog.Logger, upstream string, wait time.Duration, ring func(context.Context) error) *Activator {
	return &Activator{log: log, upstream: upstream, wait: wait, ring: ring, dialer: net.Dialer{Timeout: dialTimeout}, every: again}
}

// Server of the requests, HTTP/1.1 and HTTP/2 without TLS.
func (a *Activator) Server() *http.Server {
	var both http.Protocols
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	return &http.Server{Handler: a.handler(), Protocols: &both, ReadHeaderTimeout: 30 * time.Second}
}

// Admin server for probes. It is ready while the check succeeds.
func (a *Activator) Admin(check func(context.Context) error) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, r *http.Request) {
		if err := check(r.Context()); err != nil {
			a.log.Error("no request can be held: it could not be said that it waits", "error", err.Error())
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 30 * time.Second}
}

// errLate and errFull are why a request is not held any longer.
var (
	errLate = errors.New("no replica became ready in time")
	errFull = fmt.Errorf("%d requests wait already", most)
)

func (a *Activator) handler() http.Handler {
	forward := func(protocols http.Protocols) *httputil.ReverseProxy {
		return &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL.Scheme, r.Out.URL.Host = "http", a.upstream
				r.Out.Host = r.In.Host
				// What the request has of it is kept: this is no hop that replicas should know of.
				for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
					if v, ok := r.In.Header[h]; ok {
						r.Out.Header[h] = v
					}
				}
				if _, ok := r.In.Header["User-Agent"]; !ok {
					r.Out.Header["User-Agent"] = nil
				}
			},
			Transport:     &http.Transport{Protocols: &protocols, DialContext: a.dial, DisableCompression: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 5 * time.Second},
			FlushInterval: -1,
			ErrorLog:      slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
			ErrorHandler:  a.refuse,
		}
	}
	var one, two http.Protocols
	one.SetHTTP1(true)
	two.SetUnencryptedHTTP2(true)
	h1, h2 := forward(one), forward(two)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer a.held.Add(-1)
		if a.held.Add(1) > most {
			a.refuse(w, r, errFull)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), a.wait)
		err := a.await(ctx)
		cancel()
		if err != nil {
			a.refuse(w, r, err)
			return
		}
		if r.Header.Get("Upgrade") == "" {
			w.Header().Set("Connection", "close")
		}
		if r.ProtoMajor == 2 {
			h2.ServeHTTP(w, r)
			return
		}
		h1.ServeHTTP(w, r)
	})
}

// refuse a request that cannot be forwarded.
func (a *Activator) refuse(w http.ResponseWriter, r *http.Request, err error) {
	a.log.Warn("a request got no response from a replica", "error", err.Error())
	code := http.StatusBadGateway
	if errors.Is(err, errLate) || errors.Is(err, errFull) {
		w.Header().Set("Retry-After", "10")
		code = http.StatusServiceUnavailable
	}
	w.Header().Set("Connection", "close")
	if r.ProtoMajor == 2 && r.Header.Get("Content-Type") != "" && len(r.Header.Get("Te")) > 0 {
		// A client of gRPC reads its own status: 14 is that the server is not available.
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", "14")
		w.Header().Set("Grpc-Message", err.Error())
		return
	}
	http.Error(w, "the Algorithm is asleep: "+err.Error(), code)
}

// dial a replica. One that ends at this moment may refuse although another serves.
func (a *Activator) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	for tries := 0; ; tries++ {
		c, err := a.dialer.DialContext(ctx, network, a.upstream)
		if err == nil || tries >= 20 || ctx.Err() != nil {
			return c, err
		}
		time.Sleep(look)
	}
}

// await a replica that accepts connections. All requests wait for the same look.
func (a *Activator) await(ctx context.Context) error {
	a.signal()
	a.mu.Lock()
	if a.open == nil {
		a.open = make(chan struct{})
		go a.watch(a.open)
	}
	open := a.open
	a.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return errLate
	}
}

// watch until a replica accepts connections, or no request waits any more, and signal meanwhile.
func (a *Activator) watch(open chan struct{}) {
	for a.held.Load() > 0 {
		c, err := a.dialer.Dial("tcp", a.upstream)
		if err == nil {
			_ = c.Close()
			break
		}
		a.signal()
		time.Sleep(look)
	}
	a.mu.Lock()
	a.open = nil
	a.mu.Unlock()
	close(open)
}

// signal that a request came, unless that was said a moment ago. It is repeated more and more seldom, in case nothing heeds it.
func (a *Activator) signal() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	switch {
	case now.Sub(a.rangAt) > 2*seldom:
		a.every = again
	case a.ringing || now.Sub(a.rangAt) < a.every:
		return
	default:
		a.every = min(2*a.every, seldom)
	}
	a.rangAt, a.ringing = now, true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := a.ring(ctx)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.ringing = false
		if err != nil {
			a.log.Error("cannot say that a request waits", "error", err.Error())
			a.rangAt, a.every = now, again
		}
	}()
}
