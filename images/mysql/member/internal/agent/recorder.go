// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/record"
)

// recordEvery is how often a leader compares the record with its group.
const recordEvery = 10 * time.Second

// A Recorder records the leader and the members of its group, while this member is the leader. A member that joined without the API server
// it gives its seat.
type Recorder struct {
	pod   string
	store *record.Client
	seen  func() Seen
	// unrecorded is the seat of this member that it has to record, if there is one.
	unrecorded func() *record.Seat
	// look at the server and its group, and prove that it has a majority.
	look   func(context.Context) (decision.Look, error)
	prove  func(context.Context) error
	status loop.Wakeup
	log    *slog.Logger

	transitions atomic.Int64
	sat         atomic.Pointer[record.Seat]
	// leader reports that the record may have this member as the leader; a program that just started does not know.
	leader, failing bool
	asked           bool
}

// Transitions is how often the leader changed, as far as this member recorded it.
func (r *Recorder) Transitions() int64 { return r.transitions.Load() }

// Sat is the seat that was recorded last for a member that joined without the API server.
func (r *Recorder) Sat() *record.Seat { return r.sat.Load() }

// once writes the record if need be, and returns the pause before the next time.
func (r *Recorder) once(ctx context.Context) time.Duration {
	s := r.seen()
	leads, seat := s.Role == members.RoleLeader, r.unrecorded()
	if !leads && !r.leader && r.asked && seat == nil {
		return time.Hour // what the Keeper sees wakes it
	}
	ctx, cancel := context.WithTimeout(ctx, 2*kube.Timeout)
	defer cancel()
	if err := r.write(ctx, leads, seat); err != nil {
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

func (r *Recorder) write(ctx context.Context, leads bool, seat *record.Seat) error {
	rec, err := r.store.Read(ctx)
	switch {
	case err != nil:
		return err
	case seat != nil:
		return r.sit(ctx, rec, seat)
	case !leads && rec.Leader == r.pod:
		return r.store.Unlead(ctx, rec)
	case !leads:
		return nil
	}
	// After the reading: a member that was frozen must not write an older group over the one of the next leader. What it saw before may be
	// old, and it may have joined the next leader's group since.
	ofGroup, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	l, err := r.holds(ofGroup, rec)
	if err != nil {
		return err
	}
	view := seats(l, rec.View, time.Now())
	if rec.Leader == r.pod && reflect.DeepEqual(rec.View, view) {
		r.transitions.Store(rec.Transitions)
		return nil
	}
	if err := r.prove(ofGroup); err != nil {
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

// sit down: the member joined the group while the API server was down.
func (r *Recorder) sit(ctx context.Context, rec record.Record, seat *record.Seat) error {
	if err := sit(ctx, r.store, rec, *seat); err != nil {
		return err
	}
	r.sat.Store(seat)
	r.log.Info("recorded that this member is in the group")
	return nil
}

// holds checks that this member takes itself for the leader of the group that the record is of, and returns what it sees.
func (r *Recorder) holds(ctx context.Context, rec record.Record) (decision.Look, error) {
	l, err := r.look(ctx)
	switch {
	case err != nil:
		return l, err
	case rec.Begin.Group != "" && rec.Begin.Group != l.GroupName:
		return l, fmt.Errorf("member %s began another group, as a person decided, while this one was not heard of", rec.Begin.Member)
	case decision.Stand(l, true, false, "").Role != members.RoleLeader:
		return l, errors.New("this member is the leader no more")
	}
	return l, nil
}

// seats of the members of a group with its leader, and of members that are about to join it.
func seats(l decision.Look, before []record.Seat, now time.Time) []record.Seat {
	var out []record.Seat
	for _, p := range l.Group {
		out = append(out, record.Seat{Name: layout.MemberOf(p.Host), Server: p.Server, Leader: p.Role == decision.Primary})
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
