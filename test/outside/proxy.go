// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A FaultProxy forwards requests to a server, except those with a fault. It keeps the Host header, so that signatures
// of S3 requests stay valid.
type FaultProxy struct {
	// URL as in https://127.0.0.1:4711; CA (PEM), which is not the server's, has signed the certificate.
	URL string
	CA  []byte

	mu       sync.Mutex
	rules    []*rule
	requests []string
	forward  *httputil.ReverseProxy
}

type rule struct {
	match func(*http.Request) bool
	fault Fault
	left  int
}

// Proxy starts a FaultProxy in front of the server at a URL. A server with TLS is verified with the authority (PEM).
func Proxy(tb testing.TB, target string, authority []byte) *FaultProxy {
	tb.Helper()
	to, err := url.Parse(target)
	if err != nil {
		tb.Fatalf("cannot start a proxy before %q: %v", target, err)
	}
	certs, err := newCertificates()
	if err != nil {
		tb.Fatalf("cannot start a proxy before %q: %v", target, err)
	}
	pair, err := tls.X509KeyPair(certs.server, certs.key)
	if err != nil {
		tb.Fatalf("cannot start a proxy before %q: %v", target, err)
	}
	behind := transport(authority)
	// A transport sends a request again when its pooled connection is dead. Here, one request of the client must be one
	// request to the server.
	behind.DisableKeepAlives = true
	// The client decides on compression.
	behind.DisableCompression = true
	quiet := log.New(io.Discard, "", 0)
	p := &FaultProxy{CA: certs.authority, forward: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		Transport: behind,
		ErrorLog:  quiet,
		// A server that is down must look as if there were no proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		tb.Fatalf("cannot start a proxy before %q: %v", target, err)
	}
	p.URL = "https://" + l.Addr().String()
	srv := &http.Server{
		Handler:   p,
		ErrorLog:  quiet,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		// HTTP/2 would reset a stream, but a fault must close the connection.
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ReadHeaderTimeout: startTimeout,
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.ServeTLS(l, "", "")
	}()
	tb.Cleanup(func() {
		_ = srv.Close()
		<-served
		behind.CloseIdleConnections()
	})
	return p
}

// Fail applies a fault to matching requests; nil matches all. Of several faults the oldest applies, until it has
// reached its number of times.
func (p *FaultProxy) Fail(match func(*http.Request) bool, fault Fault) {
	if match == nil {
		match = func(*http.Request) bool { return true }
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	left := fault.times
	if left == 0 {
		left = -1
	}
	p.rules = append(p.rules, &rule{match: match, fault: fault, left: left})
}

// Clear removes all faults. A request that hangs continues to hang.
func (p *FaultProxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// Requests returns all requests since the start or Reset, with and without faults, as "PUT /bucket?versioning".
func (p *FaultProxy) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Count returns the number of requests since the start or Reset.
func (p *FaultProxy) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests)
}

// Reset clears the list of requests, not the faults.
func (p *FaultProxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

// ServeHTTP forwards a request, or applies a fault.
func (p *FaultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The whole body is read first, so that a match can inspect it, and because a disconnect is noticed only after the
	// request has been read.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	rewind := func() { r.Body = io.NopCloser(bytes.NewReader(body)) }
	fault := p.choose(r, rewind)
	rewind()
	if fault.act == nil {
		p.forward.ServeHTTP(w, r)
		return
	}
	fault.act(&exchange{w: w, r: r, forward: p.forward.ServeHTTP})
}

func (p *FaultProxy) choose(r *http.Request, rewind func()) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, line(r))
	for _, rule := range p.rules {
		rewind()
		if rule.left == 0 || !rule.match(r) {
			continue
		}
		if rule.left > 0 {
			rule.left--
		}
		return rule.fault
	}
	return Fault{}
}

// Call matches requests in the form of Requests: method and path must be equal, and the query must have at least the
// given parameters. A path that ends with * is a prefix: Call("GET /backups*").
func Call(want string) func(*http.Request) bool {
	method, target, _ := strings.Cut(want, " ")
	path, query, _ := strings.Cut(target, "?")
	begin, open := strings.CutSuffix(path, "*")
	return func(r *http.Request) bool {
		if r.Method != method || r.URL.Path != path && (!open || !strings.HasPrefix(r.URL.Path, begin)) {
			return false
		}
		have := parameters(r)
		for want := range strings.SplitSeq(query, "&") {
			if want != "" && !slices.Contains(have, want) {
				return false
			}
		}
		return true
	}
}

func line(r *http.Request) string {
	s := r.Method + " " + r.URL.Path
	if have := parameters(r); len(have) > 0 {
		s += "?" + strings.Join(have, "&")
	}
	return s
}

// parameters of the query, sorted, without those that an SDK adds for logs (x-id) and without the = of an empty value.
func parameters(r *http.Request) []string {
	var list []string
	for key, values := range r.URL.Query() {
		for _, value := range values {
			switch {
			case key == "x-id":
			case value == "":
				list = append(list, key)
			default:
				list = append(list, key+"="+value)
			}
		}
	}
	slices.Sort(list)
	return list
}
