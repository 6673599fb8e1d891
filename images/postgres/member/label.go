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
	// wakeFor is longer than the leader's lock lives in any profile.
	wakeFor = 2 * time.Minute
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
	role, s, ok := m.role(ctx, l.role)
	if !ok {
		return lookEvery
	}
	pause := lookEvery
	if l.hearsNothing(s, at) {
		pause = retryEvery
		if err := m.patroni.Wake(ctx); err != nil {
			m.log.Warn("cannot wake Patroni", "error", err)
		}
	}
	leads := role == members.RoleLeader
	if m.leads.Swap(leads) != leads {
		m.manage.Call()
	}
	every := checkReplica
	if leads {
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

// hearsNothing tells whether a replica has lately lost its leader. Patroni sees that the leader's lock has run out only when its loop
// turns, which is up to a turn too late for the clients who wait; so its loop is woken until another one leads. A replica that never
// finds a leader is left alone after a while.
func (l *labelled) hearsNothing(s patroni.State, now time.Time) bool {
	if roleOf(s, "", false) != members.RoleReplica || s.Replication == "streaming" {
		l.unled = time.Time{}
		return false
	}
	if l.unled.IsZero() {
		l.unled = now
	}
	return now.Sub(l.unled) < wakeFor
}

// role of the member by what Patroni says, and whether it is known.
func (m *member) role(ctx context.Context, before string) (string, patroni.State, bool) {
	if m.child.Load() == nil {
		// A PostgreSQL without Patroni goes on as what it was.
		if _, running := process.Postmaster(layout.Data); running {
			return before, patroni.State{}, false
		}
		return "", patroni.State{}, true
	}
	s, err := m.patroni.State(ctx)
	if err != nil {
		return before, patroni.State{}, false
	}
	if s.Paused {
		m.paused.Call()
	}
	if s.Version > 0 {
		m.told.version(fmt.Sprintf("%d.%d", s.Version/10000, s.Version%10000))
	}
	hasLock := false
	if !s.Leads && before == members.RoleLeader {
		if hasLock, err = m.patroni.HasLock(ctx); err != nil {
			return before, patroni.State{}, false
		}
	}
	return roleOf(s, before, hasLock), s, true
}

// roleOf a member for its label. One that led keeps the label while it has the lock and its PostgreSQL is down: it is about to start
// it again, and nobody else may lead.
func roleOf(s patroni.State, before string, hasLock bool) string {
	switch {
	case s.Leads, hasLock && before == members.RoleLeader:
		return members.RoleLeader
	case s.Role == "replica" && s.State == "running":
		return members.RoleReplica
	}
	return ""
}
