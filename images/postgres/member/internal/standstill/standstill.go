// SPDX-License-Identifier: Apache-2.0

// Package standstill keeps a standby stopped for as long as a person requests it, so that its data can be looked at. Each request is decided
// once: a leader refuses it, also if it is a standby later.
package standstill

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
)

const (
	// lookEvery is the time between two looks at the request.
	lookEvery = 3 * time.Second
	// limit of one look.
	limit = 20 * time.Second
)

// A Keeper carries out the request to stop its member. The gate keeps it stopped.
type Keeper struct {
	Member, Pod string
	Pods        *pods.Client
	Patroni     *patroni.Client
	// Holder is the pod that has the leader's lock, as it was last observed.
	Holder func() string
	// Strict reports whether commits wait for a standby, even when there is none.
	Strict func(ctx context.Context) (bool, error)
	// Runs reports whether a Patroni runs, and Stop stops it with its server, until the gate lets it start.
	Runs     func() bool
	Stop     func() error
	Reporter *report.Reporter
	Log      *slog.Logger
}

// Once looks at the request, and returns the pause before the next look.
func (k *Keeper) Once(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := k.look(ctx); err != nil && ctx.Err() == nil {
		k.Log.Warn("cannot stop this member as requested", "error", err)
	}
	return lookEvery
}

func (k *Keeper) look(ctx context.Context) error {
	config, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	requested := requestOf(config, k.Member)
	var last members.MemberFenceReport
	known, err := durable.ReadJSON(layout.Stopped, &last)
	if err != nil {
		return fmt.Errorf("cannot read the last request: %w", err)
	}
	switch {
	case !known:
		return k.keep(first(requested))
	case requested == "":
		k.show(members.MemberFenceReport{})
		if last.Outcome != members.FenceStopped {
			return nil
		}
		return k.write(ended(last.ID))
	case requested != last.ID:
		if last, err = k.decide(ctx, requested); err != nil {
			return err
		}
		if last.Outcome == members.FenceWaiting {
			k.show(last)
			return nil
		}
		if err := k.keep(last); err != nil {
			return err
		}
	}
	k.show(last)
	if last.Outcome == members.FenceStopped && k.Runs() {
		k.Log.Warn("stopping this member, as requested", "id", requested)
		return k.Stop()
	}
	return nil
}

// first is what becomes of a request that a volume has when its member first looks at one: the data is newer.
func first(requested string) members.MemberFenceReport {
	if requested == "" {
		return members.MemberFenceReport{}
	}
	return members.MemberFenceReport{
		ID: requested, Outcome: members.FenceSkipped, Message: "the member's data is newer than the request: to stop it, choose another id",
	}
}

// ended is what becomes of a request that was carried out and is there no more. When it comes again it was decided already, and this member may
// be the leader by then.
func ended(id string) members.MemberFenceReport {
	return members.MemberFenceReport{
		ID: id, Outcome: members.FenceSkipped, Message: "the member was stopped with this id before: to stop it again, choose another id",
	}
}

// requestOf a configuration to this member, by its ID; "" without one.
func requestOf(config pgmember.Config, member string) string {
	if f := config.Fence; f != nil && f.Member == member {
		return f.ID
	}
	return ""
}

// keep what became of the request, and report it.
func (k *Keeper) keep(r members.MemberFenceReport) error {
	if err := k.write(r); err != nil {
		return err
	}
	k.show(r)
	return nil
}

func (k *Keeper) write(r members.MemberFenceReport) error {
	if err := durable.WriteJSON(layout.Stopped, r); err != nil {
		return fmt.Errorf("cannot keep what became of the request: %w", err)
	}
	return nil
}

func (k *Keeper) show(r members.MemberFenceReport) {
	k.Reporter.Change(func(m *members.Report) { m.Fence = r })
}

// decide a request.
func (k *Keeper) decide(ctx context.Context, id string) (members.MemberFenceReport, error) {
	now := situation{holder: k.Holder(), pod: k.Pod}
	// One whose Patroni does not run, perhaps because of its data, is the leader only if it has the lock.
	if k.Runs() {
		state, err := k.Patroni.State(ctx)
		if err != nil {
			return members.MemberFenceReport{}, err
		}
		now.leads = state.Leads || state.LeadsStandbys()
	}
	var err error
	if now.strict, err = k.Strict(ctx); err != nil {
		return members.MemberFenceReport{}, err
	}
	if now.others, err = k.Pods.List(ctx); err != nil {
		return members.MemberFenceReport{}, err
	}
	outcome, message := now.next()
	return members.MemberFenceReport{ID: id, Outcome: outcome, Message: message}, nil
}

// situation of a member that is requested to stop.
type situation struct {
	leads, strict bool
	holder, pod   string
	others        []pods.Pod
}

// next outcome of the request, and its message.
func (s situation) next() (outcome, message string) {
	following := 0
	for _, p := range s.others {
		if p.Name == s.pod || !p.Started || p.Stopping {
			continue
		}
		if p.Reason == members.ReasonStopped {
			return members.FenceWaiting, "member " + p.Member + " is stopped already: one at a time"
		}
		if p.Name != s.holder && p.Streams {
			following++
		}
	}
	switch {
	case s.leads, s.holder == s.pod:
		return members.FenceRefused, "it is the leader: switch over first, and choose another id"
	case s.holder == "":
		return members.FenceWaiting, "there is no leader, and this member may become it"
	case s.strict && following == 0:
		return members.FenceWaiting, "commits would wait for it: spec.availability.durability is Strict, and no other standby follows the leader"
	default:
		return members.FenceStopped, ""
	}
}

// Check returns a Wait while this member is kept stopped by a request that was decided, and nil otherwise.
func Check(member string) error {
	config, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	requested := requestOf(config, member)
	if requested == "" {
		return nil
	}
	var last members.MemberFenceReport
	if _, err := durable.ReadJSON(layout.Stopped, &last); err != nil {
		return fmt.Errorf("cannot read the last request to stop this member: %w", err)
	}
	if last.ID != requested || last.Outcome != members.FenceStopped {
		return nil
	}
	return &volume.Wait{
		Reason:  members.ReasonStopped,
		Message: fmt.Sprintf("it is stopped, because spec.fence requests it (%s): its data is in %s of its pod; to start it again, remove spec.fence", requested, pgmember.FolderData),
	}
}
