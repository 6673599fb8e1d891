// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Fault is what a Proxy does with a request instead of forwarding it. The zero Fault forwards it.
type Fault struct {
	act   func(x *exchange)
	times int
}

// An exchange is one request in progress.
type exchange struct {
	w http.ResponseWriter
	r *http.Request
	// forward sends the request to the server behind the proxy and writes its response to w.
	forward func(w http.ResponseWriter, r *http.Request)
}

// Times returns the same fault for this many requests. Without it a fault lasts until Clear.
func (f Fault) Times(n int) Fault {
	f.times = n
	return f
}

// Answer responds itself: Answer(429, "", "Retry-After", "7"). A body that begins with < is XML, or HTML when it says
// so, one that begins with { is JSON, unless the headers have a Content-Type.
func Answer(status int, body string, headers ...string) Fault {
	return Fault{act: func(x *exchange) {
		h := x.w.Header()
		for i := 0; i+1 < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		if h.Get("Content-Type") == "" {
			h.Set("Content-Type", contentType(body))
		}
		x.w.WriteHeader(status)
		_, _ = io.WriteString(x.w, body)
	}}
}

// S3Error responds like an S3 server, with a code (SlowDown) for clients to branch on.
func S3Error(status int, code, message string, headers ...string) Fault {
	return Answer(status, fmt.Sprintf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"+
		"<Error><Code>%s</Code><Message>%s</Message><Resource>/</Resource><RequestId>outside</RequestId></Error>", code, message), headers...)
}

// MLflowError responds like MLflow, with a code (INTERNAL_ERROR) for clients to branch on.
func MLflowError(status int, code, message string, headers ...string) Fault {
	return Answer(status, fmt.Sprintf(`{"error_code": %q, "message": %q}`, code, message), headers...)
}

// Delay forwards the request only after a while, unless the client disconnects before.
func Delay(d time.Duration) Fault {
	return Fault{act: func(x *exchange) {
		select {
		case <-x.r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-time.After(d):
			x.forward(x.w, x.r)
		}
	}}
}

// Hang never responds and never forwards the request; it ends when the client disconnects.
func Hang() Fault {
	return Fault{act: func(x *exchange) {
		<-x.r.Context().Done()
		panic(http.ErrAbortHandler)
	}}
}

// Close closes the connection. The server never receives the request.
func Close() Fault {
	return Fault{act: func(*exchange) { panic(http.ErrAbortHandler) }}
}

// Drop forwards the request, waits for the response, and closes the connection without it: the server carried it out,
// and the client does not know.
func Drop() Fault {
	return Fault{act: func(x *exchange) {
		x.forward(&discard{header: http.Header{}}, x.r)
		panic(http.ErrAbortHandler)
	}}
}

// Truncate forwards the request and closes the connection after this many bytes of the response's body, whose
// Content-Length announces all of it. A response without a body, or with one as short, announces one byte more than it
// has.
func Truncate(n int) Fault {
	return Fault{act: func(x *exchange) {
		answer := &recorder{discard: discard{header: x.w.Header(), status: http.StatusOK}}
		x.forward(answer, x.r)
		promised := max(len(answer.body), n+1)
		x.w.Header().Set("Content-Length", strconv.Itoa(promised))
		x.w.Header().Del("Transfer-Encoding")
		x.w.WriteHeader(answer.status)
		_, _ = x.w.Write(answer.body[:min(n, len(answer.body))])
		_ = http.NewResponseController(x.w).Flush()
		panic(http.ErrAbortHandler)
	}}
}

// Huge responds itself with a body of this many MiB and no Content-Length. It begins with the given text, so that it
// can look like the start of a real response, and continues with spaces. It stops early when the client disconnects.
func Huge(status, mebibytes int, begin string) Fault {
	return Fault{act: func(x *exchange) {
		x.w.Header().Set("Content-Type", contentType(begin))
		x.w.WriteHeader(status)
		_, _ = io.WriteString(x.w, begin)
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for range mebibytes {
			if _, err := x.w.Write(chunk); err != nil || x.r.Context().Err() != nil {
				panic(http.ErrAbortHandler)
			}
		}
	}}
}

// Skew forwards the request and responds with a Date that is off by this much.
func Skew(d time.Duration) Fault {
	return Fault{act: func(x *exchange) {
		answer := &recorder{discard: discard{header: x.w.Header(), status: http.StatusOK}}
		x.forward(answer, x.r)
		x.w.Header().Set("Date", time.Now().Add(d).UTC().Format(http.TimeFormat))
		x.w.WriteHeader(answer.status)
		_, _ = x.w.Write(answer.body)
	}}
}

func contentType(body string) string {
	start := strings.ToLower(strings.TrimSpace(body))
	switch {
	case strings.HasPrefix(start, "<!doctype html"), strings.HasPrefix(start, "<html"):
		return "text/html; charset=utf-8"
	case strings.HasPrefix(start, "<"):
		return "application/xml"
	case strings.HasPrefix(start, "{"):
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}

// discard is a response that no client receives.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

// recorder keeps a response to modify it.
type recorder struct {
	discard

	body []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.body = append(r.body, b...)
	return len(b), nil
}
