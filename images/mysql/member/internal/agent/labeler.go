// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// How often a label is compared that nothing changed, and the pause after a try that failed.
const (
	checkLeader  = 10 * time.Second
	checkReplica = time.Minute
	retryEvery   = time.Second
)

// A Labeler labels the pod with the member's role.
type Labeler struct {
	pod    string
	pods   *pods.Client
	server *mysql.Server
	seen   func() Seen
	wake   loop.Wakeup
	log    *slog.Logger

	// role that was written last, and when it was compared last; zero while that is unknown.
	role    string
	checked time.Time
	// disputed reports whether a pod has a label that contradicts this member's. watch sets it, and once clears it.
	disputed atomic.Bool
	failing  bool
}

// once writes the role if need be, and returns the pause before the next time.
func (l *Labeler) once(ctx context.Context) time.Duration {
	begun := time.Now()
	s := l.seen()
	role := s.Role
	every := checkReplica
	if role == members.RoleLeader {
		every = checkLeader
	}
	if l.disputed.Swap(false) || role != l.role {
		l.checked = time.Time{}
	}
	if time.Since(l.checked) < every {
		return lookEvery
	}
	if role == "" && l.role == members.RoleReplica && s.becomes() {
		return soonAgain // a label in between would only be in the way of the next one
	}
	// A process that was frozen must not continue with an outdated role.
	ctx, cancel := context.WithTimeout(ctx, provenFor)
	defer cancel()
	wrote, err := l.pods.SetRole(ctx, role, l.holds)
	if err != nil {
		if !l.failing { // each try has another port in its text
			l.log.Warn("cannot label the pod, trying on", "role", role, "error", err)
		}
		l.failing = true
		return retryEvery
	}
	if wrote {
		l.log.Info("labelled the pod", "role", role, "before", l.role, "took", time.Since(begun).Round(time.Millisecond).String())
	}
	l.role, l.checked, l.failing = role, begun, false
	return lookEvery
}

// holds checks that this member is the leader at this moment.
func (l *Labeler) holds(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, proofLimit)
	defer cancel()
	if err := l.server.Prove(ctx); err != nil {
		if mysql.Refused(err) {
			err = errors.Join(err, pods.ErrNotHolder)
		}
		return err
	}
	look, err := l.server.Look(ctx)
	if err == nil && decision.Stand(look, true, false, "").Role != members.RoleLeader {
		err = pods.ErrNotHolder
	}
	return err
}

// watch the labels of all pods, so that a leader takes its label back at once from any that took it wrongly.
func (l *Labeler) watch(ctx context.Context) time.Duration {
	// Streams end every few minutes, and other loops complain when the API server is down.
	_ = l.pods.WatchRoles(ctx, func(pod, role string) {
		if l.seen().Role == members.RoleLeader && (pod == l.pod) != (role == members.RoleLeader) {
			l.disputed.Store(true)
			l.wake.Call()
		}
	})
	return retryEvery
}
