// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pods"
)

const (
	// lockEvery is how often it is looked how old the leader's lock is, and the pause before it is watched again.
	lockEvery = time.Second
	// askHolder is how long the holder of the lock gets to answer.
	askHolder = 2 * time.Second
)

// A seenLock is the leader's lock, and since when this member has seen it so.
type seenLock struct {
	pods.Lock

	since time.Time
}

// watchLock follows the leader's lock, so that the role is looked at as soon as another member has it.
func (m *member) watchLock(ctx context.Context) error {
	for {
		// Streams end every few minutes, and where the API server is away others complain.
		_ = m.pods.Locks(ctx, m.Scope, func(l pods.Lock) {
			before := m.lock.Load()
			if before != nil && before.Lock == l {
				return
			}
			m.lock.Store(&seenLock{l, time.Now()})
			if before == nil || before.Holder != l.Holder {
				m.look.Call()
			}
		})
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lockEvery):
		}
	}
}

// locked returns the leader's lock as it was last seen.
func (m *member) locked() seenLock {
	if l := m.lock.Load(); l != nil {
		return *l
	}
	return seenLock{}
}

// releaseLock of a leader that is gone as soon as it is sure to have given up. Patroni's lock lives 20 s at least, also where the leader
// has to give up after 15 s without it.
func (m *member) releaseLock(ctx context.Context) error {
	for {
		if l := m.locked(); l.Holder != "" && l.Holder != m.Pod {
			switch {
			case m.unled.Load():
				if err := m.releaseOf(ctx, l); err != nil && ctx.Err() == nil {
					m.log.Warn("cannot release the lock of a leader that is gone, trying on", "leader", l.Holder, "error", err)
				}
			case time.Since(l.since) > lookEvery+lockEvery && !m.leads.Load():
				m.look.Call() // it is not renewed as it should be: do we still hear from its holder?
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lockEvery):
		}
	}
}

// releaseOf a leader that this member does not hear from by replication, when it does not answer either and has not renewed the lock for
// so long that it takes no writes any more.
func (m *member) releaseOf(ctx context.Context, l seenLock) error {
	ctx, cancel := context.WithTimeout(ctx, fresh+askHolder)
	defer cancel()
	if time.Since(l.since) < lookEvery {
		return nil
	}
	life, err := m.pods.Lifetime(ctx, m.Scope)
	if err != nil || life == 0 || time.Since(l.since) < life-askHolder {
		return err
	}
	gone, err := m.silent(ctx, l.Holder)
	if err != nil || !gone {
		return err
	}
	sleep(ctx, life-time.Since(l.since))
	if m.locked() != l || !m.unled.Load() || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := m.pods.Release(ctx, m.Scope, l.Lock); err != nil {
		return err
	}
	m.log.Info("released the lock of a leader that is gone", "leader", l.Holder, "after", time.Since(l.since).Round(time.Millisecond).String())
	return nil
}

// silent tells whether nothing answers where the Patroni of a pod should be, or the pod is not there.
func (m *member) silent(ctx context.Context, pod string) (bool, error) {
	list, err := m.pods.List(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range list {
		if p.Name != pod || p.IP == "" {
			continue
		}
		ask, cancel := context.WithTimeout(ctx, askHolder)
		defer cancel()
		_, err := patroni.New(net.JoinHostPort(p.IP, strconv.Itoa(layout.PortPatroni)), layout.TLS).Alive(ask)
		return patroni.Silent(err), nil
	}
	return true, nil
}
