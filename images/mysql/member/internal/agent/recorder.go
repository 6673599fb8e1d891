// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/record"
)

// recordEvery is how often a leader compares the record with its group.
const recordEvery = 10 * time.Second

// A Recorder records the leader and the members of its group, while this member is the leader.
type Recorder struct {
	pod    string
	store  *record.Client
	seen   func() Seen
	prove  func(context.Context) error
	status loop.Wakeup
	log    *slog.Logger

	transitions atomic.Int64
	// leader reports that the record may have this member as the leader; a program that just started does not know.
	leader, failing bool
	asked           bool
}

// Transitions is how often the leader changed, as far as this member recorded it.
func (r *Recorder) Transitions() int64 { return r.transitions.Load() }

// once writes the record if need be, and returns the pause before the next time.
func (r *Recorder) once(ctx context.Context) time.Duration {
	s := r.seen()
	leads := s.Role == members.RoleLeader
	if !leads && !r.leader && r.asked {
		return time.Hour // what the Keeper sees wakes it
	}
	ctx, cancel := context.WithTimeout(ctx, 2*kube.Timeout)
	defer cancel()
	if err := r.write(ctx, s, leads); err != nil {
		if !r.failing && !record.Conflict(err) {
			r.log.Warn("cannot record the group, trying on", "error", err)
		}
		r.failing = true
		return retryEvery
	}
	r.failing, r.asked, r.leader = false, true, leads
	if leads {
		return recordEvery
	}
	return time.Hour
}

func (r *Recorder) write(ctx context.Context, s Seen, leads bool) error {
	rec, err := r.store.Read(ctx)
	switch {
	case err != nil:
		return err
	case !leads && rec.Leader == r.pod:
		return r.store.Unlead(ctx, rec)
	case !leads:
		return nil
	}
	view := seats(s, rec.View, time.Now())
	if rec.Leader == r.pod && reflect.DeepEqual(rec.View, view) {
		r.transitions.Store(rec.Transitions)
		return nil
	}
	// After the reading: a member that was frozen must not write an older group over the one of the next leader.
	if err := r.prove(ctx); err != nil {
		return err
	}
	n, err := r.store.Lead(ctx, rec, r.pod, view, time.Now())
	if err != nil {
		return err
	}
	r.transitions.Store(n)
	r.status.Call()
	r.log.Info("recorded the group", "members", len(view), "transitions", n)
	return nil
}

// seats of the members of a group, and of members that are about to join it.
func seats(s Seen, before []record.Seat, now time.Time) []record.Seat {
	var out []record.Seat
	for _, p := range s.Group {
		out = append(out, record.Seat{Name: layout.MemberOf(p.Host), Server: p.Server})
	}
	for _, b := range before {
		known := func(s record.Seat) bool { return s.Name == b.Name }
		if b.Joining != nil && now.Sub(*b.Joining) < joiningFor && !slices.ContainsFunc(out, known) {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b record.Seat) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
