// SPDX-License-Identifier: Apache-2.0

// Package reach connects with servers from pods that were just started. What enforces network policies learns of a new pod a
// moment after it runs and refuses it before, which would be the end of a pod that asks only once.
package reach

import (
	"context"
	"net"
	"time"
)

// A server may take limit to be reached, and is tried again after each pause.
const (
	limit = 20 * time.Second
	pause = time.Second
)

// Dial an address, again and again while it refuses. The error is the one of the last answer.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var refused error
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() == nil || refused == nil {
			refused = err
		}
		select {
		case <-ctx.Done():
			return nil, refused
		case <-time.After(pause):
		}
	}
}
