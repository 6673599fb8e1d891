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
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/volume"
)

const (
	// lookEvery is the time between two looks at the request.
	lookEvery = 3 * time.Second
	// limit of one look.
	limit = 20 * time.Second
)

// A Keeper carries out the request to stop its member. The gate of its server, which calls Check, keeps it stopped.
type Keeper struct {
	// Member that it keeps, and File on its volume, which has what became of the last request.
	Member, File string
	// Requested is the request that there is now; nil without one.
	Requested func() (*members.MemberFence, error)
	// Decide whether the member can stop now: an outcome, with a message unless that is FenceStopped. A request that has to wait is decided
	// again.
	Decide func(ctx context.Context) (outcome, message string, err error)
	// Runs reports whether a server runs, and Stop stops it, until the gate lets it start.
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
	request, err := k.Requested()
	if err != nil {
		return err
	}
	requested := idOf(request, k.Member)
	var last members.MemberFenceReport
	known, err := durable.ReadJSON(k.File, &last)
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
		outcome, message, err := k.Decide(ctx)
		if err != nil {
			return err
		}
		last = members.MemberFenceReport{ID: requested, Outcome: outcome, Message: message}
		if outcome == members.FenceWaiting {
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

// idOf a request to this member; "" when there is none.
func idOf(f *members.MemberFence, member string) string {
	if f != nil && f.Member == member {
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
	if err := durable.WriteJSON(k.File, r); err != nil {
		return fmt.Errorf("cannot keep what became of the request: %w", err)
	}
	return nil
}

func (k *Keeper) show(r members.MemberFenceReport) {
	k.Reporter.Change(func(m *members.Report) { m.Fence = r })
}

// Check returns a Wait while a member is kept stopped by a request that was decided, as File has it, and nil otherwise. The data that can
// be looked at is in a folder of its pod.
func Check(request *members.MemberFence, member, file, folder string) error {
	requested := idOf(request, member)
	if requested == "" {
		return nil
	}
	var last members.MemberFenceReport
	if _, err := durable.ReadJSON(file, &last); err != nil {
		return fmt.Errorf("cannot read the last request to stop this member: %w", err)
	}
	if last.ID != requested || last.Outcome != members.FenceStopped {
		return nil
	}
	return &volume.Wait{
		Reason:  members.ReasonStopped,
		Message: fmt.Sprintf("it is stopped, because spec.fence requests it (%s): its data is in %s of its pod; to start it again, remove spec.fence", requested, folder),
	}
}
