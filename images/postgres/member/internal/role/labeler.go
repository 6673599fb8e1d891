// SPDX-License-Identifier: Apache-2.0

// Package role knows whether this member is the leader. It labels the member's pod with its role and observes the leader's lock.
package role

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/postmaster"
)

// How often the role is observed. Notes wake the loop in between; a label that others changed is found at the next check.
const (
	lookEvery    = 5 * time.Second
	retryEvery   = time.Second
	checkLeader  = 10 * time.Second
	checkStandby = time.Minute
	// fresh is how long an answer of Patroni may be acted upon.
	fresh = 4 * time.Second
	// cutOffFor is longer than the leader's lock lives in any profile.
	cutOffFor = 2 * time.Minute
	// keepFor is how long a former leader keeps the label for the next leader to take. Most take a second.
	keepFor = 10 * time.Second
)

// A Leadership is what is known of this member's role. Only the Labeler writes it.
type Leadership struct {
	// `leads` reports whether this member was the leader when last observed.
	leads atomic.Bool
}

// IsLeader reports whether this member is the leader.
func (l *Leadership) IsLeader() bool { return l.leads.Load() }

// A Labeler labels the pod with the member's role, and knows whether this member is the leader.
type Labeler struct {
	Pod     string
	Pods    *pods.Client
	Patroni *patroni.Client
	// Supervised reports whether a Patroni runs.
	Supervised func() bool
	Lock       *LockKeeper
	// Holds checks that this member holds the leader's lock at this moment.
	Holds pods.Holds
	// MayServe reports whether this generation may have clients, which depends on another one while a restore fills this one.
	MayServe func(ctx context.Context) (bool, error)
	Reporter *report.Reporter
	Role     *Leadership
	// Manage and Archive are called when this member becomes the leader or no longer is, and Fence while Patroni is paused.
	Manage, Archive, Fence loop.Wakeup
	// Wake this loop.
	Wake loop.Wakeup
	Log  *slog.Logger

	label label
	// disputed reports whether a pod has a label that contradicts this member's. Watch sets it, and Once clears it.
	disputed atomic.Bool
	// cutOff is since when this standby has lost its leader, demoted since when this leader is none any more.
	cutOff, demoted since
	// cleared reports whether the pod no longer says what the volume held before the Database began.
	cleared bool
	// failing reports whether the last try failed, and was logged.
	failing bool
}

// A label is what is known of the pod's label: the role that was written last, and when it was last checked.
type label struct {
	role    string
	known   bool
	checked time.Time
}

// since when a condition holds; zero while it does not.
type since struct{ time.Time }

// next is the value when the condition holds now, or does not.
func (s since) next(holds bool, now time.Time) since {
	switch {
	case !holds:
		return since{}
	case s.IsZero():
		return since{now}
	}
	return s
}

// within reports whether the condition holds, and has not for as long as the limit.
func (s since) within(limit time.Duration, now time.Time) bool {
	return !s.IsZero() && now.Sub(s.Time) < limit
}

// lostLeader reports whether a standby does not hear from its leader: another one may lead soon.
func lostLeader(role string, s patroni.State) bool {
	return role == members.RoleReplica && s.Replication != "streaming"
}

// handedOver reports whether a member with the label of the leader is none any more. Its PostgreSQL is stopped, so that clients
// are refused at once and try again.
func handedOver(role, label string, s patroni.State) bool {
	return role == "" && label == members.RoleLeader && s.Role == "demoted"
}

// Once observes the role and writes it if need be. It returns the pause before the next time.
func (l *Labeler) Once(ctx context.Context) time.Duration {
	at := time.Now()
	ctx, cancel := context.WithDeadline(ctx, at.Add(fresh))
	defer cancel()
	role, leads, s, ok := l.observe(ctx)
	if !ok {
		return lookEvery
	}
	pause := lookEvery
	// A standby that never finds a leader is left alone after a while.
	l.cutOff = l.cutOff.next(lostLeader(role, s), at)
	if l.cutOff.within(cutOffFor, at) {
		pause = retryEvery
	}
	if l.Role.leads.Swap(leads) != leads {
		l.Manage.Call()
		l.Archive.Call()
	}
	if role == members.RoleLeader {
		may, err := l.MayServe(ctx)
		if err != nil {
			if !l.failing {
				l.Log.Warn("cannot find out whether this generation may have clients, trying on", "error", err)
			}
			l.failing = true
			return retryEvery // the label stays as it is
		}
		if !may {
			role, pause = "", retryEvery
		}
	}
	// It keeps the label for the next leader to take.
	l.demoted = l.demoted.next(handedOver(role, l.label.role, s), at)
	if l.demoted.within(keepFor, at) {
		return retryEvery
	}
	every := checkStandby
	if role == members.RoleLeader {
		every = checkLeader
	}
	if l.disputed.Swap(false) {
		l.label.known = false
	}
	if l.label.known && role == l.label.role && at.Sub(l.label.checked) < every {
		return pause
	}
	return l.write(ctx, role, at, pause)
}

// Watch the labels of all pods, so that a leader takes its label back at once from any that took it wrongly.
func (l *Labeler) Watch(ctx context.Context) time.Duration {
	// Streams end every few minutes, and other loops complain when the API server is down.
	_ = l.Pods.WatchRoles(ctx, func(pod, role string) {
		if l.Role.IsLeader() && (pod == l.Pod) != (role == members.RoleLeader) {
			l.disputed.Store(true)
			l.Wake.Call()
		}
	})
	return retryEvery
}

// write the role, and return the pause before the next time: the one given, unless it fails.
func (l *Labeler) write(ctx context.Context, role string, at time.Time, pause time.Duration) time.Duration {
	wrote, err := l.Pods.SetRole(ctx, role, l.Holds)
	if err == nil && !l.cleared && role != "" {
		// A Database that begins again later must not take the annotation for what the volume holds then.
		err = l.Pods.ClearVolume(ctx)
		l.cleared = err == nil
	}
	if err != nil {
		if !l.failing { // each try has another port in its text
			l.Log.Warn("cannot label the pod, trying on", "role", role, "error", err)
		}
		l.failing = true
		return retryEvery
	}
	if wrote {
		l.Log.Info("labelled the pod", "role", role, "before", l.label.role, "took", time.Since(at).Round(time.Millisecond).String())
	}
	l.label, l.failing = label{role, true, at}, false
	return pause
}

// observe the role of the member by what Patroni reports, whether it is the leader, and whether both are known.
func (l *Labeler) observe(ctx context.Context) (role string, leads bool, s patroni.State, ok bool) {
	led := l.Role.IsLeader()
	if !l.Supervised() {
		// A PostgreSQL without Patroni continues in its role.
		_, running := postmaster.Find(pgmember.FolderData)
		return "", false, patroni.State{}, !running
	}
	s, err := l.Patroni.State(ctx)
	if err != nil {
		return "", false, patroni.State{}, false
	}
	if s.Paused {
		l.Fence.Call()
	}
	if s.Version > 0 {
		l.Reporter.Change(func(r *members.Report) { r.Version = fmt.Sprintf("%d.%d", s.Version/10000, s.Version%10000) })
	}
	holder, _, known := l.Lock.Observed()
	if s.Leads && !known {
		return "", false, patroni.State{}, false
	}
	// Patroni takes itself for the leader until its own time is up, and while it stops.
	s.Leads = s.Leads && holder == l.Pod
	hasLock := false
	if !s.Leads && holder == l.Pod {
		if hasLock, err = l.Patroni.HasLock(ctx); err != nil {
			return "", false, patroni.State{}, false
		}
	}
	role, leads = roleOf(s, led, hasLock)
	return role, leads, s, true
}

// roleOf a member for its label, and whether it is the leader. A leader keeps the label while it has the lock and its PostgreSQL
// is down: it is about to start it again, and no other member may become the leader. A member that has taken the lock
// gets the label while it is being promoted, for proxies take as long to learn of it.
func roleOf(s patroni.State, led, hasLock bool) (role string, leads bool) {
	switch {
	case s.Leads, hasLock && led:
		return members.RoleLeader, true
	case s.LeadsStandbys():
		return members.RoleReplica, false
	case s.Follows() && hasLock:
		return members.RoleLeader, false
	case s.Follows():
		return members.RoleReplica, false
	}
	return "", false
}
