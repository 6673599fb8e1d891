// SPDX-License-Identifier: Apache-2.0

// Package standstill decides whether a member of PostgreSQL can stop because a person requests it.
package standstill

import (
	"context"
	"log/slog"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/standstill"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
)

// A Decision depends on what the member and the others are.
type Decision struct {
	Pod     string
	Pods    *pods.Client
	Patroni *patroni.Client
	// Runs reports whether a Patroni runs.
	Runs func() bool
	// Holder is the pod that has the leader's lock, as it was last observed.
	Holder func() string
	// Strict reports whether commits wait for a standby, even when there is none.
	Strict func(ctx context.Context) (bool, error)
}

// New Keeper of a member, which is stopped by a function.
func New(member string, d *Decision, stop func() error, r *report.Reporter, log *slog.Logger) *standstill.Keeper {
	return &standstill.Keeper{
		Member: member, File: layout.Stopped, Requested: requested, Decide: d.Next, Runs: d.Runs, Stop: stop, Reporter: r, Log: log,
	}
}

// Next outcome of a request, and its message.
func (d *Decision) Next(ctx context.Context) (outcome, message string, err error) {
	now := situation{holder: d.Holder(), pod: d.Pod}
	// One whose Patroni does not run, perhaps because of its data, is the leader only if it has the lock.
	if d.Runs() {
		state, err := d.Patroni.State(ctx)
		if err != nil {
			return "", "", err
		}
		now.leads = state.Leads || state.LeadsStandbys()
	}
	if now.strict, err = d.Strict(ctx); err != nil {
		return "", "", err
	}
	if now.others, err = d.Pods.List(ctx); err != nil {
		return "", "", err
	}
	outcome, message = now.next()
	return outcome, message, nil
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

// requested is the request that there is now; nil without one.
func requested() (*members.MemberFence, error) {
	config, err := layout.ReadConfig()
	return config.Fence, err
}

// Check returns a Wait while a member is kept stopped by a request that was decided, and nil otherwise.
func Check(member string) error {
	request, err := requested()
	if err != nil {
		return err
	}
	return standstill.Check(request, member, layout.Stopped, pgmember.FolderData)
}
