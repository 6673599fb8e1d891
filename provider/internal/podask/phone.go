// SPDX-License-Identifier: Apache-2.0

package podask

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Every is the time between two requests to a companion that answers.
	Every = 15 * time.Second

	// again is that time when an event of a pod comes between.
	again = 5 * time.Second

	// tolerated is the number of refusals in a row after which they are reported. A companion begins to listen a moment after its container.
	tolerated = 3

	// silentEvery is the longest time between two requests to a companion that does not answer. Each may block a worker for askTimeout, so
	// that many silent ones get fewer requests than others.
	silentEvery = 2 * time.Minute
)

// A Phone asks companions and remembers what they said. Nothing that matters is lost with it.
type Phone[S any] struct {
	ask func(ctx context.Context, p *corev1.Pod, number int32) (*S, error)
	now func() time.Time

	mu    sync.Mutex
	calls map[types.UID]*call[S]
}

// A call with a companion.
type call[S any] struct {
	pod     types.UID
	at      time.Time
	state   *S
	refused int
	why     string
}

// NewPhone that asks in a way. The number is passed on as it is.
func NewPhone[S any](ask func(ctx context.Context, p *corev1.Pod, number int32) (*S, error), now func() time.Time) *Phone[S] {
	return &Phone[S]{ask: ask, now: now, calls: map[types.UID]*call[S]{}}
}

// Call the companion in a pod for the object with this UID, unless it was called a moment ago. The state is nil when it did not answer the last time;
// silent is why, once that is no accident. It errs when the cluster does not answer.
func (f *Phone[S]) Call(ctx context.Context, of types.UID, p *corev1.Pod, number int32) (state *S, silent string, err error) {
	c := f.last(of)
	if c.pod != p.GetUID() {
		c = call[S]{pod: p.GetUID()}
	}
	now := f.now()
	if c.at.IsZero() || !now.Before(c.at.Add(c.pause(again))) {
		c.at = now
		c.state, err = f.ask(ctx, p, number)
		var r *Refusal
		switch {
		case errors.As(err, &r) && r.Certain:
			c.refused, c.why = max(c.refused+1, tolerated), r.Why
		case errors.As(err, &r):
			c.refused, c.why = c.refused+1, r.Why
		case err != nil:
			return nil, "", err
		default:
			c.refused, c.why = 0, ""
		}
		f.mu.Lock()
		f.calls[of] = &c
		f.mu.Unlock()
	}
	if c.refused >= tolerated {
		silent = c.why
	}
	return c.state, silent, nil
}

// Next is how long to wait before the companion is called again.
func (f *Phone[S]) Next(of types.UID) time.Duration {
	c := f.last(of)
	return max(c.at.Add(c.pause(Every)).Sub(f.now()), time.Second)
}

func (f *Phone[S]) last(of types.UID) call[S] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.calls[of]; c != nil {
		return *c
	}
	return call[S]{}
}

// Forget a deleted object.
func (f *Phone[S]) Forget(of types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.calls, of)
}

// pause after the call, which is answered for one that was answered. It doubles with each refusal that is reported.
func (c *call[S]) pause(answered time.Duration) time.Duration {
	if c.refused == 0 {
		return answered
	}
	return min(Every<<min(max(c.refused-tolerated, 0), 8), silentEvery)
}
