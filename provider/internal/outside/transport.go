// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// dialTimeout, answerTimeout: an answer that takes longer does not come.
	dialTimeout   = 10 * time.Second
	answerTimeout = 20 * time.Second

	// requestTimeout of a whole request with its answer. The runtime gives a reconcile a minute.
	requestTimeout = 30 * time.Second

	// maxBody is more than any answer of S3 to our requests (a page of a thousand versions), of a model registry or of Prometheus
	// has.
	maxBody = 8 << 20

	// maxHeader of an answer.
	maxHeader = 1 << 20

	// maxConnections to one service at a time, however much is queued.
	maxConnections = 32

	// maxWait is the longest that a service may ask us to wait.
	maxWait = 5 * time.Minute
)

var (
	// ErrTooLarge means that an answer was longer than any sensible one.
	ErrTooLarge = fmt.Errorf("the answer is larger than %d MiB", maxBody>>20)

	// errCooling means that the service asked for a pause that has not ended.
	errCooling = errors.New("waiting because the service asked for it")
)

// newHTTPClient makes the client of one connection. It follows no redirect:
// they could lead anywhere.
func newHTTPClient(c *Connection, guard *Guard) (*http.Client, error) {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("cannot find the default HTTP transport")
	}
	t = t.Clone()
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	t.DialContext = d.DialContext
	if !c.Shared {
		t.DialContext = guard.Dialer(d, c.Namespace, "")
		// Behind a proxy the guard would see the proxy's address only.
		t.Proxy = nil
	}
	t.TLSHandshakeTimeout = dialTimeout
	t.ResponseHeaderTimeout = answerTimeout
	t.MaxResponseHeaderBytes = maxHeader
	t.MaxConnsPerHost = maxConnections
	t.MaxIdleConnsPerHost = maxConnections
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CABundle != "" {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(c.CABundle)) {
			return nil, errors.New("cannot read a certificate in caBundle")
		}
		t.TLSClientConfig.RootCAs = roots
	}
	return &http.Client{
		Timeout:       requestTimeout,
		Transport:     &polite{inner: t, service: string(c.Backend)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// polite waits when the service asks for it, limits answers, and counts.
type polite struct {
	inner   *http.Transport
	service string

	// until is when requests may be sent again, in Unix nanoseconds.
	until atomic.Int64
}

// RoundTrip sends a request.
func (p *polite) RoundTrip(r *http.Request) (*http.Response, error) {
	if time.Now().UnixNano() < p.until.Load() {
		return nil, errCooling
	}
	done := measure(p.service, operation(r.Context(), r.Method))
	res, err := p.inner.RoundTrip(r)
	done(res, err)
	if err != nil {
		return nil, err
	}
	if wait := pause(res, time.Now()); wait > 0 {
		p.until.Store(time.Now().Add(wait).UnixNano())
	}
	res.Body = &limited{ReadCloser: res.Body, left: maxBody}
	return res, nil
}

// CloseIdleConnections is what http.Client asks its transport for.
func (p *polite) CloseIdleConnections() { p.inner.CloseIdleConnections() }

// pause that an answer asks for, RFC 9110 section 10.2.3.
func pause(res *http.Response, now time.Time) time.Duration {
	if res.StatusCode != http.StatusTooManyRequests && res.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	after := res.Header.Get("Retry-After")
	if s, err := strconv.Atoi(after); err == nil {
		return min(time.Duration(max(s, 0))*time.Second, maxWait)
	}
	if t, err := http.ParseTime(after); err == nil {
		return max(min(t.Sub(now), maxWait), 0)
	}
	return 0
}

// limited reads no more than is left.
type limited struct {
	io.ReadCloser

	left int64
}

// Read up to the limit. One byte more than the limit is an error, so that an answer is never taken for whole because its end was
// cut off here.
func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	l.left -= int64(n)
	if l.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}

// NewHTTPClient for a URL that a tenant names without a config: it is guarded, limits answers and follows no redirect. The service
// names it in metrics, and namespace is the tenant's. caBundle has the authorities of the server's certificate, or is empty for the
// authorities of the system.
func NewHTTPClient(service Backend, namespace, caBundle string, guard *Guard) (*http.Client, error) {
	return newHTTPClient(&Connection{Backend: service, Namespace: namespace, CABundle: caBundle}, guard)
}

// NewPlatformClient for a URL that the platform names without a config: it limits answers and follows no redirect. The service
// names it in metrics, and caBundle has the authorities of the server's certificate, or is empty for the authorities of the system.
func NewPlatformClient(service Backend, caBundle string) (*http.Client, error) {
	return newHTTPClient(&Connection{Backend: service, Shared: true, CABundle: caBundle}, nil)
}
