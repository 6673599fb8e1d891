// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
)

// A StatusWriter writes the status of the server to the pod when it changes.
type StatusWriter struct {
	pods        *pods.Client
	state       func() string
	seen        func() Seen
	transitions func() int64
	restart     func() map[string]any
	log         *slog.Logger

	written *members.Status
	failing bool
}

// once writes the status if it changed, and returns the pause before the next look.
func (t *StatusWriter) once(ctx context.Context) time.Duration {
	s := statusOf(t.state(), t.seen(), t.transitions())
	s.PendingRestart = t.restart()
	if t.written != nil && reflect.DeepEqual(*t.written, s) {
		return lookEvery
	}
	ctx, cancel := context.WithTimeout(ctx, kube.Timeout)
	defer cancel()
	err := t.pods.Annotate(ctx, members.AnnotationStatus, s)
	if err != nil && !t.failing {
		t.log.Warn("cannot write the status, trying on", "error", err)
	}
	if t.failing = err != nil; !t.failing {
		t.written = &s
	}
	return lookEvery
}

// statusOf a server by its state and what was seen of it. A server runs when it answers as a part of its group.
func statusOf(state string, s Seen, transitions int64) members.Status {
	own := s.Own()
	if state == members.StateRunning && own.State != decision.Online {
		state = members.StateStarting
	}
	out := members.Status{State: state}
	switch {
	case s.Role == members.RoleLeader:
		out.Role, out.Timeline = members.StatusPrimary, transitions
	case own.State == decision.Online && own.Role == decision.Secondary:
		out.Role, out.Lag = members.StatusReplica, s.Lag
		if s.Majority() {
			out.Replication, out.Synchronous = members.Streaming, true
		}
	case own.State == decision.Recovering:
		out.Role = members.StatusReplica
	}
	return out
}
