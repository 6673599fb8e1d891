// SPDX-License-Identifier: Apache-2.0

// Package loop has what loops of a member's program have in common: how they pause, and how others wake them.
package loop

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// A Wakeup holds one call at most.
type Wakeup chan struct{}

// NewWakeup without a call.
func NewWakeup() Wakeup { return make(Wakeup, 1) }

// Call wakes the loop that waits, or lets it not wait the next time.
func (w Wakeup) Call() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Repeat do until the context ends: at once, and again after the pause that it returns or when it is woken. A nil Wakeup never
// wakes.
func Repeat(ctx context.Context, wake Wakeup, do func(context.Context) time.Duration) {
	for {
		timer := time.NewTimer(do(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// Every is a loop of Repeat.
func Every(wake Wakeup, do func(context.Context) time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		Repeat(ctx, wake, do)
		return nil
	}
}

// Sleep for a while or until the context ends.
func Sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Outlast runs loops beside a main function, and ends them when it returns. The context, which a signal ends, is the main
// function's; loops that observe and answer continue while it stops. A loop that fails ends everything.
func Outlast(ctx context.Context, main func(context.Context) error, loops ...func(context.Context) error) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, life := errgroup.WithContext(life)
	for _, run := range loops {
		group.Go(func() error { return run(life) })
	}
	group.Go(func() error {
		defer end()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		context.AfterFunc(life, stop)
		return main(ctx)
	})
	return group.Wait()
}
