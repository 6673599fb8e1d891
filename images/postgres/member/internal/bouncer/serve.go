// SPDX-License-Identifier: Apache-2.0

package bouncer

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/web"
)

// pausePath is where members ask poolers to wait.
const pausePath = "/pause"

// DrainLimit is how long a member waits for transactions to end, at most.
const DrainLimit = 2 * time.Second

// An Answer to a member that asked.
type Answer struct {
	// Waits reports that clients wait, and Drained that no transaction is under way any more.
	Waits   bool `json:"waits"`
	Drained bool `json:"drained"`
}

// Serve members until the context ends. Config has the certificate to show and to verify members with, and is read again for
// each connection. Only a certificate of the given common name is listened to.
func Serve(ctx context.Context, address string, config func() (*tls.Config, error), member string, ask func(context.Context) (waits, drained bool)) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pausePath, func(w http.ResponseWriter, r *http.Request) {
		if certificate.CallerOf(r) != member {
			http.Error(w, "only members may ask for that", http.StatusForbidden)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), DrainLimit)
		defer cancel()
		var a Answer
		a.Waits, a.Drained = ask(ctx)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a)
	})
	l, err := certificate.Listen(address, config)
	if err != nil {
		return err
	}
	return web.Serve(ctx, l, &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10})
}

// reachLimit is how long a pooler may take to be reached. One that cannot be does not hold up a leader that stops.
const reachLimit = time.Second

// Pause asks the pooler at an address to let its clients wait.
func Pause(ctx context.Context, address string, config *tls.Config) (Answer, error) {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: reachLimit}, Config: config}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			// The handshake is part of reaching it.
			ctx, cancel := context.WithTimeout(ctx, reachLimit)
			defer cancel()
			return dialer.DialContext(ctx, network, address)
		},
		ResponseHeaderTimeout: DrainLimit + reachLimit,
	}}
	status, raw, err := web.Send(ctx, client, http.MethodPost, "https://localhost"+pausePath, nil)
	if err != nil {
		return Answer{}, fmt.Errorf("cannot ask pooler %s to wait: %w", address, err)
	}
	if status != http.StatusOK {
		return Answer{}, fmt.Errorf("pooler %s refuses to wait: %s", address, bytes.TrimSpace(raw))
	}
	var a Answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return Answer{}, fmt.Errorf("cannot understand pooler %s: %w", address, err)
	}
	return a, nil
}
