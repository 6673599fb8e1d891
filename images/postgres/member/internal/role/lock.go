// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dcs"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
)

const (
	// lockEvery is how often the age of the leader's lock is checked, and the pause before it is watched again.
	lockEvery = time.Second
	// askHolder is how long the holder of the lock gets to answer.
	askHolder = 2 * time.Second
)

// A LockKeeper observes the leader's lock. It releases the lock of a leader that is gone as soon as that leader is sure to have
// stepped down.
// Patroni's lock lives 20 s at least, also where the leader steps down after 15 s without it.
type LockKeeper struct {
	Pod  string
	Pods *pods.Client
	DCS  *dcs.Client
	Role *Leadership
	// Label wakes the Labeler.
	Label loop.Wakeup
	Log   *slog.Logger

	// lock as it was last observed. Only Watch writes it.
	lock atomic.Pointer[observedLock]
}

// An observedLock is the leader's lock, and since when this member has observed it so.
type observedLock struct {
	dcs.Lock

	since time.Time
}

// observed is the leader's lock as it was last observed.
func (k *LockKeeper) observed() observedLock {
	if l := k.lock.Load(); l != nil {
		return *l
	}
	return observedLock{}
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

// Once looks at the age of the lock.
func (k *LockKeeper) Once(ctx context.Context) time.Duration {
	l := k.observed()
	switch {
	case l.Holder == "" || l.Holder == k.Pod:
	case k.Role.cutOff.Load():
		if err := k.release(ctx, l); err != nil && ctx.Err() == nil {
			k.Log.Warn("cannot release the lock of a leader that is gone, trying on", "leader", l.Holder, "error", err)
		}
	case time.Since(l.since) > lookEvery+lockEvery && !k.Role.IsLeader():
		k.Label.Call() // it is not renewed as it should be: does replication from its holder still work?
	}
	return lockEvery
}

// release the lock of a leader that this standby lost, when it does not answer either and has not renewed the lock for so long
// that it takes no writes any more.
func (k *LockKeeper) release(ctx context.Context, l observedLock) error {
	ctx, cancel := context.WithTimeout(ctx, fresh+askHolder)
	defer cancel()
	if time.Since(l.since) < lookEvery {
		return nil
	}
	life, err := k.DCS.Lifetime(ctx)
	if err != nil || life == 0 || time.Since(l.since) < life-askHolder {
		return err
	}
	gone, err := k.silent(ctx, l.Holder)
	if err != nil || !gone {
		return err
	}
	loop.Sleep(ctx, life-time.Since(l.since))
	if k.observed() != l || !k.Role.cutOff.Load() || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := k.DCS.Release(ctx, l.Lock); err != nil {
		return err
	}
	k.Log.Info("released the lock of a leader that is gone", "leader", l.Holder, "after", time.Since(l.since).Round(time.Millisecond).String())
	return nil
}

// silent reports whether nothing answers where the Patroni of a pod should be, or the pod does not exist.
func (k *LockKeeper) silent(ctx context.Context, pod string) (bool, error) {
	list, err := k.Pods.List(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range list {
		if p.Name != pod || p.IP == "" {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, askHolder)
		defer cancel()
		_, err := patroni.At(p.IP).Alive(ctx)
		return patroni.Silent(err), nil
	}
	return true, nil
}
