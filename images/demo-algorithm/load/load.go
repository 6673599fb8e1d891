// SPDX-License-Identifier: Apache-2.0

// Package load calls the demo server as its users would, and counts what became of every request. Tests call it from outside of a
// cluster, and `demo-algorithm call` from inside.
package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options say how to call.
type Options struct {
	// URL of predictions.
	URL string
	// Host that requests are for. The host of the URL when empty.
	Host string
	// Concurrency is how many clients there are. Each waits for its answer before it asks again.
	Concurrency int
	// Rate of requests per second of all clients together. As many as are answered when 0.
	Rate float64
	// Timeout of a request.
	Timeout time.Duration
	// NoKeepAlive makes a connection for each request.
	NoKeepAlive bool
	// Wait is how long to try for a first answer, and for a path on which every connection is accepted, before anything counts.
	// It is for clients that are not let in at once.
	Wait time.Duration

	// dial connects, in tests. A net.Dialer when nil.
	dial dialer
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// users that there are. Their inputs come one after the other, so that scores have the same distribution at
// any time. Their number is a prime: a Gateway that sends every fifth request elsewhere sends each of them there in time.
const users = 997

// input of a prediction, by its number. Requests with a body are not sent a second time behind the client's back when a
// connection breaks, so that one that got lost is counted.
func input(n int64) string { return fmt.Sprintf(`{"user":%d}`, n%users) }

// Run calls until the context is done, waits for the last answers, and reports.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Concurrency < 1 || o.Rate < 0 || o.Timeout <= 0 {
		return nil, fmt.Errorf("cannot call with %d clients, %v requests per second, and a timeout of %s: there must be a client, and time",
			o.Concurrency, o.Rate, o.Timeout)
	}
	if _, err := o.request(ctx, 0); err != nil {
		return nil, err
	}
	if err := o.await(ctx); err != nil {
		return nil, err
	}
	r := newReport()
	var asked atomic.Int64
	var clients sync.WaitGroup
	for i := range o.Concurrency {
		clients.Go(func() {
			// Each has its own connection, as clients in different places have.
			transport := &http.Transport{DisableKeepAlives: o.NoKeepAlive, DialContext: o.dial}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: o.Timeout}

			// Clients take turns.
			for pause := o.pace(i); ; {
				if !pause(ctx) {
					return
				}
				// A request that began is finished.
				r.count(o.once(context.WithoutCancel(ctx), client, asked.Add(1)))
			}
		})
	}
	clients.Wait()
	r.finish()
	return r, nil
}

// pace of a client: what it returns waits for the time of the next request, and reports whether there is one.
func (o Options) pace(number int) func(context.Context) bool {
	if o.Rate == 0 {
		return func(ctx context.Context) bool { return ctx.Err() == nil }
	}
	every := time.Duration(float64(o.Concurrency) / o.Rate * float64(time.Second))
	next := time.Now().Add(every * time.Duration(number) / time.Duration(o.Concurrency))
	return func(ctx context.Context) bool {
		// What was missed is not made up for: a burst would measure the client.
		if late := time.Since(next); late > every {
			next = next.Add(late.Truncate(every))
		}
		timer := time.NewTimer(time.Until(next))
		defer timer.Stop()
		next = next.Add(every)
		select {
		case <-timer.C:
			return ctx.Err() == nil
		case <-ctx.Done():
			return false
		}
	}
}

func (o Options) request(ctx context.Context, n int64) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.URL, strings.NewReader(input(n)))
	if err != nil {
		return nil, fmt.Errorf("cannot call %q: %w", o.URL, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if o.Host != "" {
		req.Host = o.Host
	}
	return req, nil
}

// once sends the nth request.
func (o Options) once(ctx context.Context, client *http.Client, n int64) outcome {
	began := time.Now()
	version, err := o.ask(ctx, client, n)
	return outcome{version: version, took: time.Since(began), at: began, err: err}
}

// ask for a prediction. It returns the version that made it.
func (o Options) ask(ctx context.Context, client *http.Client, n int64) (string, error) {
	req, err := o.request(ctx, n)
	if err != nil {
		return "", err
	}
	rsp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = rsp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(rsp.Body, 1<<20))
	if err != nil {
		return "", err
	}
	if rsp.StatusCode != http.StatusOK {
		return "", statusError(rsp.StatusCode)
	}
	var answer struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", fmt.Errorf("cannot read an answer: %w", err)
	}
	return answer.Version, nil
}
