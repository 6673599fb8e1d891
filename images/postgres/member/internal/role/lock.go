// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dcs"
)

// lockEvery is the pause before the lock is watched again.
const lockEvery = time.Second

// A LockKeeper observes the leader's lock.
type LockKeeper struct {
	DCS *dcs.Client
	// Label wakes the Labeler.
	Label loop.Wakeup

	// lock as it was last observed. Only Watch writes it.
	lock atomic.Pointer[observedLock]
}

// An observedLock is the leader's lock, and since when this member has observed it so.
type observedLock struct {
	dcs.Lock

	since time.Time
}

// Observed is who holds the leader's lock, "" for no member, and when it was renewed last, as it was last observed. It reports
// whether anything was observed yet.
func (k *LockKeeper) Observed() (holder string, renewed time.Time, known bool) {
	l := k.lock.Load()
	if l == nil {
		return "", time.Time{}, false
	}
	return l.Holder, l.since, true
}

// Holder of the leader's lock as it was last observed; "" for none.
func (k *LockKeeper) Holder() string {
	holder, _, _ := k.Observed()
	return holder
}

// Watch the leader's lock until the stream ends, so that the role is observed as soon as another member has it.
func (k *LockKeeper) Watch(ctx context.Context) time.Duration {
	// Streams end every few minutes, and other loops complain when the API server is down.
	_ = k.DCS.Locks(ctx, func(l dcs.Lock) {
		before := k.lock.Load()
		if before != nil && before.Lock == l {
			return
		}
		k.lock.Store(&observedLock{l, time.Now()})
		if before == nil || before.Holder != l.Holder {
			k.Label.Call()
		}
	})
	return lockEvery
}
