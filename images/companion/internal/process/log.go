// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"log/slog"
	"time"
)

// Bounds of a log that takes nothing.
const (
	logQueue = 256
	logFlush = time.Second
)

// A queued handler passes records on in the background. A log that takes nothing any more, for instance on a node whose disk is full, must
// not keep a companion from killing its processes in time: what does not fit is lost.
type queued struct {
	slog.Handler

	queue chan<- func()
}

func (q queued) Handle(ctx context.Context, r slog.Record) error {
	select {
	case q.queue <- func() { _ = q.Handler.Handle(ctx, r) }:
	default:
	}
	return nil
}

func (q queued) WithAttrs(attrs []slog.Attr) slog.Handler {
	return queued{Handler: q.Handler.WithAttrs(attrs), queue: q.queue}
}

func (q queued) WithGroup(name string) slog.Handler {
	return queued{Handler: q.Handler.WithGroup(name), queue: q.queue}
}

// Patient makes a log that never waits, and a function that waits for what is left of it, for a second.
func Patient(log *slog.Logger) (*slog.Logger, func()) {
	queue := make(chan func(), logQueue)
	go func() {
		for write := range queue {
			write()
		}
	}()
	flush := func() {
		written := make(chan struct{})
		limit := time.After(logFlush)
		select {
		case queue <- func() { close(written) }:
		case <-limit:
			return
		}
		select {
		case <-written:
		case <-limit:
		}
	}
	return slog.New(queued{Handler: log.Handler(), queue: queue}), flush
}
