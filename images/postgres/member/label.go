// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/process"
)

// How often the role is looked at. Callbacks wake the loop in between; a label that others changed is found at the next check.
const (
	lookEvery    = 5 * time.Second
	retryEvery   = time.Second
	checkLeader  = 10 * time.Second
	checkReplica = time.Minute
	// fresh is how long what Patroni said may be acted upon.
	fresh = 4 * time.Second
	// unledFor is longer than the leader's lock lives in any profile.
	unledFor = 2 * time.Minute
	// keepFor is how long one that handed the lead over keeps the label for the next leader to take. Most take a second.
	keepFor = 10 * time.Second
)

// A labelled is what is known of the pod's label.
type labelled struct {
	// role that was written last, once it is known.
	role  string
	known bool
	// checked is when the label was last seen to be right.
	checked time.Time
	// cleared tells that the pod no longer tells what the volume held before the Database began.
	cleared bool
	// complained tells that the last try failed, and was logged.
	complained bool
	// unled is since when a replica does not hear from its leader.
	unled time.Time
	// demoted is since when one that led is stopped to follow another.
	demoted time.Time
}

// label the pod with the member's role, for as long as the context lasts.
func (m *member) label(ctx context.Context) error {
	l := &labelled{}
	for {
		pause := m.labelOnce(ctx, l)
		select {
		case <-ctx.Done():
			return nil
		case <-m.look:
		case <-time.After(pause):
		}
	}
}

// labelOnce looks at the role and writes it if need be. It returns how long to wait for the next look.
func (m *member) labelOnce(ctx context.Context, l *labelled) time.Duration {
	at := time.Now()
	ctx, cancel := context.WithDeadline(ctx, at.Add(fresh))
	defer cancel()
	role, leads, s, ok := m.role(ctx, l.role)
	if !ok {
		return lookEvery
	}
	pause := lookEvery
	unled := l.hearsNothing(role, s, at)
	m.unled.Store(unled)
	if unled {
		pause = retryEvery
	}
	if m.leads.Swap(leads) != leads {
		m.manage.Call()
	}
	if l.keeps(s, role, at) {
		return retryEvery
	}
	every := checkReplica
	if role == members.RoleLeader {
		every = checkLeader
	}
	if l.known && role == l.role && at.Sub(l.checked) < every {
		return pause
	}
	wrote, err := m.pods.SetRole(ctx, role)
	if err == nil && !l.cleared && role != "" {
		// Whoever begins anew later must not take this for what the volume holds then.
		err = m.pods.ClearVolume(ctx)
		l.cleared = err == nil
	}
	if err != nil {
		if !l.complained { // each try has another port in its text
			m.log.Warn("cannot label the pod, trying on", "role", role, "error", err)
		}
		l.complained = true
		return retryEvery
	}
	if wrote {
		m.log.Info("labelled the pod", "role", role, "before", l.role, "took", time.Since(at).Round(time.Millisecond).String())
	}
	l.role, l.known, l.checked, l.complained = role, true, at, false
	return pause
}

// hearsNothing tells whether a replica has lately lost its leader, so that there may soon be another, or a lock to release. A replica
// that never finds a leader is left alone after a while.
func (l *labelled) hearsNothing(role string, s patroni.State, now time.Time) bool {
	if role != members.RoleReplica || s.Replication == "streaming" {
		l.unled = time.Time{}
		return false
	}
	if l.unled.IsZero() {
		l.unled = now
	}
	return now.Sub(l.unled) < unledFor
}

// keeps tells whether the member still has the label of the leader although it has handed the lead over: its PostgreSQL is stopped, so
// that clients are refused at once and try again, and whoever leads next takes the label.
func (l *labelled) keeps(s patroni.State, role string, now time.Time) bool {
	if role != "" || l.role != members.RoleLeader || s.Role != "demoted" {
		l.demoted = time.Time{}
		return false
	}
	if l.demoted.IsZero() {
		l.demoted = now
	}
	return now.Sub(l.demoted) < keepFor
}

// role of the member by what Patroni says, whether it leads, and whether both are known.
func (m *member) role(ctx context.Context, before string) (role string, leads bool, s patroni.State, ok bool) {
	led := m.leads.Load()
	if m.child.Load() == nil {
		// A PostgreSQL without Patroni goes on as what it was.
		if _, running := process.Postmaster(layout.Data); running {
			return before, led, patroni.State{}, false
		}
		return "", false, patroni.State{}, true
	}
	s, err := m.patroni.State(ctx)
	if err != nil {
		return before, led, patroni.State{}, false
	}
	if s.Paused {
		m.paused.Call()
	}
	if s.Version > 0 {
		m.told.version(fmt.Sprintf("%d.%d", s.Version/10000, s.Version%10000))
	}
	hasLock := false
	if !s.Leads && (led || m.locked().Holder == m.Pod) {
		if hasLock, err = m.patroni.HasLock(ctx); err != nil {
			return before, led, patroni.State{}, false
		}
	}
	role, leads = roleOf(s, led, hasLock)
	return role, leads, s, true
}

// roleOf a member for its label, and whether it leads. One that led keeps the label while it has the lock and its PostgreSQL is down:
// it is about to start it again, and nobody else may lead. One that has taken the lock gets the label while it is being promoted, for
// proxies take as long to learn of it.
func roleOf(s patroni.State, led, hasLock bool) (role string, leads bool) {
	switch {
	case s.Leads, hasLock && led:
		return members.RoleLeader, true
	case s.Follows() && hasLock:
		return members.RoleLeader, false
	case s.Follows():
		return members.RoleReplica, false
	}
	return "", false
}
