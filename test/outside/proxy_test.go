// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// behind is a server that echoes the request, and counts.
func behind(t *testing.T) (*httptest.Server, []byte, *atomic.Int64) {
	t.Helper()
	var served atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("cannot read a request: %v", err)
		}
		w.Header().Set("X-Host", r.Host)
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.RequestURI(), body)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	return srv, ca, &served
}

// An answer is the response as the client receives it.
type answer struct {
	Status int
	Body   string
	Err    bool
}

func do(t *testing.T, p *FaultProxy, method, path, body string) (answer, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	transport := transport(p.CA)
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Do(req)
	if err != nil {
		return answer{Err: true}, nil
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return answer{Status: resp.StatusCode, Body: string(data), Err: err != nil}, resp.Header
}

func TestProxyFaults(t *testing.T) {
	done := answer{Status: 201, Body: "PUT /bucket?versioning= hello"}
	cases := map[string]struct {
		reason string
		fault  Fault
		want   []answer
		served int64
	}{
		"None":   {reason: "A proxy without faults is not there.", want: []answer{done, done}, served: 2},
		"Answer": {reason: "The server hears nothing of what the proxy answers.", fault: Answer(503, "<Error/>"), want: []answer{{503, "<Error/>", false}}},
		"Times": {
			reason: "A fault that has had its number of times is over.", fault: MLflowError(500, "INTERNAL_ERROR", "no").Times(1),
			want: []answer{{500, `{"error_code": "INTERNAL_ERROR", "message": "no"}`, false}, done}, served: 1,
		},
		"Delay": {reason: "A request that is late is still done.", fault: Delay(time.Millisecond), want: []answer{done}, served: 1},
		"Close": {reason: "Nothing is done when the connection breaks before.", fault: Close(), want: []answer{{Err: true}}},
		"Drop": {
			reason: "It is done once, although the client hears nothing, and not again by the proxy.",
			fault:  Drop(), want: []answer{{Err: true}}, served: 1,
		},
		"Truncate": {
			reason: "The client sees the status and a body that ends too early.",
			fault:  Truncate(3), want: []answer{{201, "PUT", true}}, served: 1,
		},
		"TruncateBeyond": {
			reason: "An answer that is shorter than the cut is cut all the same.",
			fault:  Truncate(500), want: []answer{{201, done.Body, true}}, served: 1,
		},
		"Skew": {reason: "Only the clock is wrong.", fault: Skew(time.Hour), want: []answer{done}, served: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv, ca, served := behind(t)
			p := Proxy(t, srv.URL, ca)
			p.Fail(Call("PUT /bucket?versioning"), tc.fault)
			for i, want := range tc.want {
				got, _ := do(t, p, http.MethodPut, "/bucket?versioning=", "hello")
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s\nrequest %d: -want, +got:\n%s", tc.reason, i+1, diff)
				}
			}
			if got := served.Load(); got != tc.served {
				t.Errorf("%s\nthe server saw %d requests, want %d", tc.reason, got, tc.served)
			}
			// Other calls are not affected.
			if got, _ := do(t, p, http.MethodGet, "/bucket?versioning=", ""); got.Status != 201 {
				t.Errorf("a call that does not match gets %+v", got)
			}
		})
	}
}

func TestProxyHang(t *testing.T) {
	srv, ca, served := behind(t)
	p := Proxy(t, srv.URL, ca)
	p.Fail(nil, Hang())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := Client(p.CA).Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request that hangs ends with %v, want the client's own deadline", err)
	}
	if n := served.Load(); n != 0 {
		t.Errorf("the server saw %d requests that hung", n)
	}
}

func TestProxyHuge(t *testing.T) {
	srv, ca, _ := behind(t)
	p := Proxy(t, srv.URL, ca)
	p.Fail(nil, Huge(200, 3, "{"))
	got, header := do(t, p, http.MethodGet, "/", "")
	if want := 3<<20 + 1; len(got.Body) != want || !strings.HasPrefix(got.Body, "{ ") {
		t.Errorf("a body of 3 MiB has %d bytes, want %d", len(got.Body), want)
	}
	if header.Get("Content-Length") != "" || header.Get("Content-Type") != "application/json" {
		t.Errorf("a body without an announced end has the headers %v", header)
	}
}

func TestProxySkew(t *testing.T) {
	srv, ca, _ := behind(t)
	p := Proxy(t, srv.URL, ca)
	p.Fail(nil, Skew(-2*time.Hour))
	_, header := do(t, p, http.MethodGet, "/", "")
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		t.Fatal(err)
	}
	if off := time.Since(date); off < 119*time.Minute || off > 121*time.Minute {
		t.Errorf("the Date is off by %s, want two hours", off)
	}
}

func TestProxyHeaders(t *testing.T) {
	srv, ca, _ := behind(t)
	p := Proxy(t, srv.URL, ca)
	_, header := do(t, p, http.MethodGet, "/", "")
	if got, want := header.Get("X-Host"), strings.TrimPrefix(p.URL, "https://"); got != want {
		t.Errorf("the server sees the Host %q, want the proxy's, %q: a signature covers it", got, want)
	}
	p.Fail(nil, S3Error(429, "SlowDown", "Slow down.", "Retry-After", "7"))
	got, header := do(t, p, http.MethodGet, "/", "")
	if got.Status != 429 || header.Get("Retry-After") != "7" || header.Get("Content-Type") != "application/xml" {
		t.Errorf("an answer of the proxy has status %d and headers %v", got.Status, header)
	}
	p.Clear()
	if got, _ := do(t, p, http.MethodGet, "/", ""); got.Status != 201 {
		t.Errorf("without faults the proxy answers %+v", got)
	}
}

func TestProxyServerDown(t *testing.T) {
	srv, ca, _ := behind(t)
	p := Proxy(t, srv.URL, ca)
	srv.Close()
	if got, _ := do(t, p, http.MethodGet, "/", ""); !got.Err {
		t.Errorf("before a server that is down the proxy answers %+v, want a broken connection", got)
	}
}

func TestProxyMatchReadsBody(t *testing.T) {
	srv, ca, _ := behind(t)
	p := Proxy(t, srv.URL, ca)
	p.Fail(func(r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		return err == nil && strings.Contains(string(body), "fraud")
	}, Answer(400, ""))
	if got, _ := do(t, p, http.MethodPost, "/", "fraud"); got.Status != 400 {
		t.Errorf("a request with the wanted body gets %+v", got)
	}
	if got, _ := do(t, p, http.MethodPost, "/", "churn"); got.Body != "POST / churn" {
		t.Errorf("the server did not get the body that a match has read: %+v", got)
	}
}

func TestProxyTrusted(t *testing.T) {
	srv, ca, served := behind(t)
	p := Proxy(t, srv.URL, ca)
	if resp, err := Client(ca).Get(p.URL); err == nil {
		_ = resp.Body.Close()
		t.Error("the server's authority vouches for the proxy")
	}
	stranger := Proxy(t, srv.URL, p.CA)
	if got, _ := do(t, stranger, http.MethodGet, "/", ""); !got.Err || served.Load() != 0 {
		t.Errorf("a proxy passes requests on to a server that its authority does not vouch for: %+v", got)
	}
}

func TestProxyRequests(t *testing.T) {
	srv, ca, _ := behind(t)
	p := Proxy(t, srv.URL, ca)
	p.Fail(Call("GET /a*"), Answer(500, ""))
	for _, path := range []string{"/b?versioning=", "/a/b?prefix=x&list-type=2&x-id=List"} {
		do(t, p, http.MethodGet, path, "")
	}
	want := []string{"GET /b?versioning", "GET /a/b?list-type=2&prefix=x"}
	if diff := cmp.Diff(want, p.Requests()); diff != "" {
		t.Errorf("spoilt or not, each request is told: -want, +got:\n%s", diff)
	}
	if p.Count() != 2 {
		t.Errorf("%d requests, want 2", p.Count())
	}
	p.Reset()
	if p.Count() != 0 {
		t.Errorf("%d requests after Reset", p.Count())
	}
}

func TestCall(t *testing.T) {
	cases := map[string]struct {
		reason  string
		call    string
		request string
		want    bool
	}{
		"Same":       {reason: "Method and path.", call: "GET /b", request: "GET /b", want: true},
		"Method":     {reason: "A write is not a read.", call: "PUT /b", request: "GET /b"},
		"Path":       {reason: "Another bucket is left alone.", call: "GET /b", request: "GET /bb"},
		"Begin":      {reason: "A star stands for the rest.", call: "GET /b*", request: "GET /b/c", want: true},
		"BeginOther": {reason: "What begins otherwise is left alone.", call: "GET /b*", request: "GET /c"},
		"Parameter":  {reason: "Other parameters do not matter.", call: "GET /b?acl", request: "GET /b?acl=&x=1", want: true},
		"Value":      {reason: "The value counts.", call: "GET /b?name=x", request: "GET /b?name=y"},
		"Missing":    {reason: "A subresource is another call.", call: "GET /b?acl", request: "GET /b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			method, target, _ := strings.Cut(tc.request, " ")
			if got := Call(tc.call)(httptest.NewRequest(method, target, nil)); got != tc.want {
				t.Errorf("%s\nCall(%q) of %q: want %t, got %t", tc.reason, tc.call, tc.request, tc.want, got)
			}
		})
	}
}

func TestProxyListensOnLoopbackOnly(t *testing.T) {
	srv, ca, _ := behind(t)
	host, _, err := net.SplitHostPort(strings.TrimPrefix(Proxy(t, srv.URL, ca).URL, "https://"))
	if err != nil || host != loopback {
		t.Errorf("the proxy listens on %q (%v)", host, err)
	}
}
