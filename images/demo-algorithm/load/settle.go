// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Nodes learn of a new pod one after the other, and each enforces network policies by itself: a client in a new pod reaches the
// replicas of one node while the replicas of another still refuse it. A Service picks a replica at random for each connection, so one
// answer proves nothing about the others. The path counts as settled after a second in which every connection was accepted: some
// 40 of them miss one replica of two with a probability of 1 to 10^12, and one of eight with 1 to 200.
const (
	settled     = time.Second
	settlePause = 25 * time.Millisecond
	// connectTimeout is as long as a kernel waits before it sends a lost SYN again.
	connectTimeout = time.Second
)

// await the first answer, and then a path that has settled. What still fails when the time is over counts.
func (o Options) await(ctx context.Context) error {
	if o.Wait == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.Wait)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: o.dial}, Timeout: o.Timeout}
	for {
		_, err := o.ask(ctx, client, 0)
		if err == nil {
			return o.settle(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer in %s: %w", o.Wait, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// settle connects without a request, so that neither a slow server nor what it counts is touched.
func (o Options) settle(ctx context.Context) error {
	address, err := o.address()
	if err != nil {
		return err
	}
	dial := o.dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	for since := time.Now(); time.Since(since) < settled; {
		if !connects(ctx, dial, address) {
			since = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settlePause):
		}
	}
	return nil
}

func connects(ctx context.Context, dial dialer, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// address that requests are sent to.
func (o Options) address() (string, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return "", fmt.Errorf("cannot call %q: %w", o.URL, err)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}
