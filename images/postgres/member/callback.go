// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
)

// maxNote is how long a note to the running member may be, in bytes.
const maxNote = 4096

// callbackCmd tells the running member of a change.
type callbackCmd struct {
	Words []string `arg:"" help:"What Patroni says: the action, the role and the scope." optional:""`
}

// Run tells it, and does not fail: the running member looks by itself a few seconds later.
func (c *callbackCmd) Run(ctx context.Context, log *slog.Logger) error { //nolint:unparam // Kong wants it so.
	if err := note(ctx, strings.Join(c.Words, " ")); err != nil {
		log.Warn("cannot tell the running member", "error", err)
	}
	return nil
}

// note tells the running member something, which it logs and looks at its role for.
func note(ctx context.Context, text string) error {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unixgram", layout.Socket)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_, err = conn.Write([]byte(text[:min(len(text), maxNote)]))
	return err
}
