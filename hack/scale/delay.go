// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// A delayCmd stands before the API server and gives each of its answers late. It is a component of the machine.
type delayCmd struct {
	Listen string        `help:"Address that clients call."             required:""`
	To     string        `help:"Address of the API server."             required:""`
	By     time.Duration `help:"How much later each answer gets there." required:""`
}

// Run until the process is ended.
func (d delayCmd) Run(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", d.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		client, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot take a connection: %w", err)
		}
		go d.connect(ctx, client)
	}
}

func (d delayCmd) connect(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.To)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	late(client, server, d.By)
}

// late copies what comes from a connection, each part as much later as that. Order and rate stay.
func late(to io.Writer, from io.Reader, by time.Duration) {
	type part struct {
		at   time.Time
		data []byte
	}
	parts := make(chan part, 4096)
	go func() {
		defer close(parts)
		for buffer := make([]byte, 64<<10); ; {
			n, err := from.Read(buffer)
			if n > 0 {
				parts <- part{at: time.Now().Add(by), data: append([]byte(nil), buffer[:n]...)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range parts {
		time.Sleep(time.Until(p.at))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	for range parts {
		continue // Its reader may wait to write.
	}
}
