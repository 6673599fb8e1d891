// SPDX-License-Identifier: Apache-2.0

// Package notes passes notes to the running member from the programs that Patroni, PostgreSQL and the kubelet call beside it.
package notes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
)

// Subjects, which a note begins with, followed by a colon. Any other note is about the role.
const (
	// Backup: a backup ended.
	Backup = "backup"
	// Archive: the result of archiving changed.
	Archive = "archive"
	// Restore: a restore failed, for the reason that follows.
	Restore = "restore"
)

// limit of a note, in bytes.
const limit = 4096

// Send a note. It fails soon when no member runs.
func Send(ctx context.Context, text string) error {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unixgram", layout.Socket)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_, err = conn.Write([]byte(text[:min(len(text), limit)]))
	return err
}

// Receive notes until the context ends.
func Receive(ctx context.Context, receive func(text string)) error {
	if err := os.Remove(layout.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot listen to callbacks: %w", err)
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: layout.Socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("cannot listen to callbacks: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	buf := make([]byte, limit)
	for {
		n, err := conn.Read(buf)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // The socket was closed because the context ended.
		}
		if err != nil {
			return fmt.Errorf("cannot listen to callbacks: %w", err)
		}
		receive(string(buf[:n]))
	}
}
