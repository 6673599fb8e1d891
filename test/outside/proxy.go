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

// A FaultProxy passes requests on to a server, except those it was told to spoil. It keeps the Host header, so that signatures
// of S3 requests stay valid.
type FaultProxy struct {
	// URL as in https://127.0.0.1:4711; the certificate is signed by CA (PEM), which is not the server's.
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

// Proxy starts a FaultProxy before the server at a URL, which has TLS if the URL says so and is then verified with the
// authority (PEM).
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
	// A transport sends a request anew when the connection it took from its pool turns out dead. Here, one request of the client
	// is one request to the server.
	behind.DisableKeepAlives = true
	// The client's own wish decides.
	behind.DisableCompression = true
	quiet := log.New(io.Discard, "", 0)
	p := &FaultProxy{CA: certs.authority, forward: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		Transport: behind,
		ErrorLog:  quiet,
		// A server that is down looks as if there were no proxy.
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
		// In HTTP/2 a stream can be reset, and a connection is not what a fault is about.
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

// Fail spoils requests that match; nil is all of them. Of several faults the one that came first applies, until it has had its
// number of times.
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

// Clear ends all faults. A request that hangs goes on hanging.
func (p *FaultProxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// Requests returns all requests since the start or Reset, spoilt or not, as "PUT /bucket?versioning".
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

// Reset forgets the requests, not the faults.
func (p *FaultProxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

// ServeHTTP passes a request on, or spoils it.
func (p *FaultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// All of it is read before anything happens, so that a match can look inside, and because a client counts as gone only once
	// its request has been read.
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

// Call matches requests by how Requests writes them: method and path must be the same, and the query must have at least the
// given parameters. A path that ends with * stands for all that begin so: Call("GET /backups*").
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

// parameters of the query, sorted, without what an SDK adds for logs (x-id) and without the = of an empty value.
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
