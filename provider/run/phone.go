// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	// askEvery is the time between two requests to a coordinator that answers.
	askEvery = 15 * time.Second

	// askAgain is that time when an event of a pod comes between.
	askAgain = 5 * time.Second

	// tolerated is the number of refusals in a row after which they are reported. A companion begins to listen a moment after its container.
	tolerated = 3

	// askSilent is the longest time between two requests to a coordinator that does not answer. Each may block a worker for askTimeout, so
	// that many silent ones get fewer requests than others.
	askSilent = 2 * time.Minute
)

// A phone asks coordinators and remembers what they said. Nothing that matters is lost with it.
type phone struct {
	ask ask
	now func() time.Time

	mu    sync.Mutex
	calls map[types.UID]*call
}

// A call with a coordinator.
type call struct {
	pod     types.UID
	at      time.Time
	state   *crew.State
	refused int
	why     string
}

func newPhone(a ask, now func() time.Time) *phone {
	return &phone{ask: a, now: now, calls: map[types.UID]*call{}}
}

// call the coordinator of a Run in a pod, unless it was called a moment ago. The state is nil when it did not answer the last time;
// silent is why, once that is no accident. It errs when the cluster does not answer.
func (f *phone) call(ctx context.Context, cr *v1alpha1.Run, p *corev1.Pod) (state *crew.State, silent string, err error) {
	c := f.last(cr.GetUID())
	if c.pod != p.GetUID() {
		c = call{pod: p.GetUID()}
	}
	now := f.now()
	if c.at.IsZero() || !now.Before(c.at.Add(c.pause(askAgain))) {
		c.at = now
		c.state, err = f.ask(ctx, p, cr.Spec.ForProvider.Number)
		var r *refusal
		switch {
		case errors.As(err, &r) && r.certain:
			c.refused, c.why = max(c.refused+1, tolerated), r.why
		case errors.As(err, &r):
			c.refused, c.why = c.refused+1, r.why
		case err != nil:
			return nil, "", err
		default:
			c.refused, c.why = 0, ""
		}
		f.mu.Lock()
		f.calls[cr.GetUID()] = &c
		f.mu.Unlock()
	}
	if c.refused >= tolerated {
		silent = c.why
	}
	return c.state, silent, nil
}

// next is how long to wait before the coordinator of a Run is called again.
func (f *phone) next(of types.UID) time.Duration {
	c := f.last(of)
	return max(c.at.Add(c.pause(askEvery)).Sub(f.now()), time.Second)
}

func (f *phone) last(of types.UID) call {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.calls[of]; c != nil {
		return *c
	}
	return call{}
}

// forget a deleted Run.
func (f *phone) forget(of types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.calls, of)
}

// pause after the call, which is answered for one that was answered. It doubles with each refusal that is reported.
func (c *call) pause(answered time.Duration) time.Duration {
	if c.refused == 0 {
		return answered
	}
	return min(askEvery<<min(max(c.refused-tolerated, 0), 8), askSilent)
}
