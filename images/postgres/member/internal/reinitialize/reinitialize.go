// SPDX-License-Identifier: Apache-2.0

// Package reinitialize copies a standby again from its leader when a person requests that, once for each id.
package reinitialize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
)

const (
	// lookEvery is the time between two looks at the request.
	lookEvery = 5 * time.Second
	// limit of one look.
	limit = 20 * time.Second
	// stale is in the data that a copy replaces, so that its absence proves the copy.
	stale = pgmember.FolderData + "/capstan.reinitialize"
)

// A Keeper carries out the request to copy its member again.
type Keeper struct {
	Member, Pod string
	Pods        *pods.Client
	Patroni     *patroni.Client
	// Holder is the pod that has the leader's lock, as it was last observed.
	Holder   func() string
	Reporter *report.Reporter
	Log      *slog.Logger
}

// Once looks at the request, and returns the pause before the next look.
func (k *Keeper) Once(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := k.look(ctx); err != nil && ctx.Err() == nil {
		k.Log.Warn("cannot copy this member again as requested", "error", err)
	}
	return lookEvery
}

func (k *Keeper) look(ctx context.Context) error {
	config, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	requested := ""
	if r := config.Reinitialize; r != nil && r.Member == k.Member {
		requested = r.ID
	}
	var last members.ReinitializeReport
	known, err := durable.ReadJSON(layout.Reinitialized, &last)
	if err != nil {
		return fmt.Errorf("cannot read the last request: %w", err)
	}
	if !known {
		return k.keep(report.FirstRequest(requested))
	}
	if requested == "" || requested == last.ID && last.Outcome != members.ReinitializeCopying {
		k.Reporter.Change(func(m *members.Report) { m.Reinitialize = last })
		return nil
	}
	now, err := k.situation(ctx)
	if err != nil {
		return err
	}
	next, copies := now.next(requested, last)
	if !copies {
		if next.Outcome == members.ReinitializeRefused {
			err = os.Remove(stale)
		}
		return errors.Join(ignoreMissing(err), k.keep(next, last))
	}
	// What is on the volume says that it has begun before it has: a request is carried out at most once.
	if err := errors.Join(durable.Write(stale, nil), k.keep(next, last)); err != nil {
		return err
	}
	k.Log.Warn("copying this standby again from the leader, as requested", "id", requested)
	return k.Patroni.Reinitialize(ctx)
}

// keep what became of the request, unless that is what there was, and report it. What only waits is not kept.
func (k *Keeper) keep(next members.ReinitializeReport, was ...members.ReinitializeReport) error {
	k.Reporter.Change(func(m *members.Report) { m.Reinitialize = next })
	if next.Outcome == members.ReinitializeWaiting || len(was) > 0 && was[0] == next {
		return nil
	}
	if err := durable.WriteJSON(layout.Reinitialized, next); err != nil {
		return fmt.Errorf("cannot keep what became of the request: %w", err)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// situation of a member that has a request.
type situation struct {
	patroni.State

	// stale reports whether the data is still the former, holder the pod of the leader, and other a member that is copied now.
	stale         bool
	holder, other string
}

func (k *Keeper) situation(ctx context.Context) (situation, error) {
	now := situation{holder: k.Holder()}
	var err error
	if now.State, err = k.Patroni.State(ctx); err != nil {
		return situation{}, err
	}
	if _, err := os.Stat(stale); err == nil {
		now.stale = true
	} else if ignoreMissing(err) != nil {
		return situation{}, fmt.Errorf("cannot look at the data: %w", err)
	}
	list, err := k.Pods.List(ctx)
	if err != nil {
		return situation{}, err
	}
	now.other = pods.Copying(list, k.Pod)
	return now, nil
}

// next outcome of a request, and whether the member is copied now.
func (s situation) next(id string, last members.ReinitializeReport) (members.ReinitializeReport, bool) {
	is := func(outcome, message string) members.ReinitializeReport {
		return members.ReinitializeReport{ID: id, Outcome: outcome, Message: message}
	}
	begun := last.ID == id && last.Outcome == members.ReinitializeCopying
	copying := is(members.ReinitializeCopying, "it is copied from the leader")
	switch streams := s.Follows() && s.Replication == "streaming"; {
	case begun && !s.stale && (streams || s.Leads):
		return is(members.ReinitializeDone, ""), false
	case s.Leads:
		return is(members.ReinitializeRefused, "it is the leader: switch over first, and choose another id"), false
	case begun:
		return copying, streams // Patroni has forgotten the request when it streams what it had.
	case s.holder == "":
		return is(members.ReinitializeWaiting, "there is no leader to copy from"), false
	case s.other != "":
		return is(members.ReinitializeWaiting, "member "+s.other+" is copied first"), false
	default:
		return copying, true
	}
}
