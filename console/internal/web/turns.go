// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"time"

	"github.com/capstan-dev/capstan/console/internal/kube"
)

// turns of a work that takes more than a page does: few are under way, some wait, and more are refused.
type turns struct {
	wanted  streams
	slots   chan struct{}
	timeout time.Duration
	busy    *kube.Problem
}

// newTurns: most can be wanted at the same time, and so many at once under way. One user has at most a fifth, or two. The timeout is how
// long a browser waits, with the time in which others have their turn.
func newTurns(most, atOnce int, timeout time.Duration, busy *kube.Problem) *turns {
	return &turns{wanted: streams{most: most, of: map[string]int{}}, slots: make(chan struct{}, atOnce), timeout: timeout, busy: busy}
}

// take a turn, as soon as there is one.
func (t *turns) take(ctx context.Context, user string) (free func(), err error) {
	leave, err := t.wanted.take(user)
	if err != nil {
		return nil, t.busy
	}
	select {
	case t.slots <- struct{}{}:
		return func() { <-t.slots; leave() }, nil
	case <-ctx.Done():
		leave()

		return nil, ctx.Err()
	}
}
