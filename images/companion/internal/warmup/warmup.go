// SPDX-License-Identifier: Apache-2.0

// Package warmup sends requests to a server whose first answers are slow, before clients reach it.
package warmup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// inARow is how many of the last answers must have been successes.
const inARow = 5

// Options of a warm-up.
type Options struct {
	// URL that requests are sent to, and whose port reports whether the server is there.
	URL *url.URL
	// Method, Body and ContentType of the requests.
	Method, ContentType string
	Body                []byte
	// Requests that must be answered with success.
	Requests int
	// Timeout of one request.
	Timeout time.Duration
	// Every is how often to look whether the server is there, and how long to wait after a failure.
	Every time.Duration
	// Agent is the User-Agent of the requests.
	Agent string
}

// A Warmer warms a server up, again each time that it was gone.
type Warmer struct {
	Options

	log    *slog.Logger
	client *http.Client
	host   string
	state  atomic.Pointer[string]
}

// warm is the state of a server that clients may reach. All others say why they may not.
const warm = "warm"

// New Warmer of a server that is cold.
func New(log *slog.Logger, o Options) *Warmer {
	w := &Warmer{Options: o, log: log, host: o.URL.Host}
	if o.URL.Port() == "" {
		w.host = net.JoinHostPort(o.URL.Hostname(), "80")
	}
	w.client = &http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: o.Timeout}).DialContext,
			// The warmer leaves nothing behind that the server would have to keep open.
			IdleConnTimeout: time.Second, MaxIdleConns: 1, DisableCompression: true, ResponseHeaderTimeout: o.Timeout,
		},
		// The target of a redirect is not what should be warmed up.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	w.become("nothing listens on " + w.host + " yet")
	return w
}

// ServeHTTP answers 200 while the server is warm, and 503 with the reason while it is not.
func (w *Warmer) ServeHTTP(rsp http.ResponseWriter, _ *http.Request) {
	state := *w.state.Load()
	rsp.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if state != warm {
		rsp.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(rsp, state+"\n")
}

// Run until ctx is done.
func (w *Warmer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if !w.await(ctx, true) {
			return
		}
		if !w.warmUp(ctx) {
			continue
		}
		w.become(warm)
		if !w.await(ctx, false) {
			return
		}
		w.become("the server has stopped listening on " + w.host)
	}
}

// await that the server listens, or no longer does. False when ctx is done before.
func (w *Warmer) await(ctx context.Context, listening bool) bool {
	for ctx.Err() == nil {
		if w.listens(ctx) == listening {
			return true
		}
		w.sleep(ctx)
	}
	return false
}

// listens reports whether a server accepts connections. A server that is too busy to accept is still there.
func (w *Warmer) listens(ctx context.Context) bool {
	limit, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(limit, "tcp", w.host)
	if err != nil {
		return isTimeout(err)
	}
	_ = conn.Close()
	return true
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// warmUp sends requests until enough of them, and all of the last ones, were answered with success. False when the server is gone
// before.
func (w *Warmer) warmUp(ctx context.Context) bool {
	w.log.Info("warming up", "url", w.URL.Redacted(), "requests", w.Requests)
	begun, answered, row := time.Now(), 0, 0
	for answered < w.Requests || row < min(inARow, w.Requests) {
		err := w.request(ctx)
		if ctx.Err() != nil {
			return false
		}
		if err == nil {
			answered++
			row++
			w.become(fmt.Sprintf("warming up: %d of %d requests were answered with success", min(answered, w.Requests), w.Requests))
			continue
		}
		row = 0
		w.become(fmt.Sprintf("requests to %s that warm the server up fail: %s", w.URL.Redacted(), err))
		w.sleep(ctx)
		if !w.listens(ctx) {
			return false
		}
	}
	w.log.Info("warm", "took", time.Since(begun).Round(time.Millisecond).String())
	return true
}

// request once.
func (w *Warmer) request(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(limit, w.Method, w.URL.String(), bytes.NewReader(w.Body))
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", w.Agent)
	if len(w.Body) > 0 {
		req.Header.Set("Content-Type", w.ContentType)
	}
	resp, err := w.client.Do(req)
	if err == nil {
		// The answer is complete when it has been read to its end.
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	switch {
	case err != nil && (isTimeout(err) || limit.Err() != nil):
		return fmt.Errorf("no complete answer within %s", w.Timeout)
	case err != nil:
		return errors.New("the connection broke")
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return fmt.Errorf("the answer is %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return nil
}

// become logs changes that are not mere counts.
func (w *Warmer) become(state string) {
	before := w.state.Swap(&state)
	if before == nil || *before != state && !strings.HasPrefix(state, "warming up") && state != warm {
		w.log.Info("not warm", "reason", state)
	}
}

func (w *Warmer) sleep(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(w.Every):
	}
}
