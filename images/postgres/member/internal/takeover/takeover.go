// SPDX-License-Identifier: Apache-2.0

// Package takeover keeps clients from a generation of a Database that a restore fills, until the generation that serves has stopped. The
// members of both decide that by the record of a fence, as in an upgrade, so that it ends while Crossplane and Capstan are down.
//
// Both generations have a leader meanwhile. Clients reach a leader by its label, so the later one gets none before it has written Committed
// into the record. It offers to ask there before that has any effect: a member that has the label without having asked, because members of
// the former generation have an earlier image or no leader, never offers.
package takeover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dcs"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/fence"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
)

// A Keeper knows whether the leader of this generation may have clients. Only one loop uses it.
type Keeper struct {
	Names layout.Names
	Kube  kube.Client
	// Pods of this generation.
	Pods *pods.Client
	Log  *slog.Logger

	// served is the restore whose clients this generation has, which never changes, and warned what was logged last.
	served, warned string
}

// MayServe reports whether the leader may have clients. Only a member that holds the leader's lock calls it.
func (k *Keeper) MayServe(ctx context.Context) (bool, error) {
	config, err := layout.ReadConfig()
	if err != nil {
		return false, err
	}
	w := config.TakeOver
	if w == nil || w.ID == k.served {
		return true, nil
	}
	return k.mayTake(ctx, *w)
}

// mayTake reports whether the leader may have the clients of another generation.
func (k *Keeper) mayTake(ctx context.Context, w pgmember.TakeOver) (bool, error) {
	from := former{pods.New(k.Kube, k.Names.Namespace, k.Names.Pod, w.Database), dcs.New(k.Kube, k.Names.Namespace, w.Scope)}
	o, err := from.dcs.Fence(ctx)
	if err != nil {
		return false, err
	}
	if o.Outlived(k.Names.Database) {
		k.warnOnce("a later generation takes the place of this one: " + o.Record.To)
		return false, nil
	}
	if r := o.Record; r.ID != w.ID || r.To != k.Names.Database {
		offered, err := k.offer(ctx, from, w)
		return !offered && err == nil, err
	}
	// Members of the generation before do this as well, and all of them may be lost.
	if o, err = from.dcs.SettleFence(ctx, time.Now()); err != nil {
		return false, err
	}
	switch {
	case o.Record.State == members.FenceWithdrawn:
		k.warnOnce("the generation before continues: " + o.Record.Why)
		return false, nil
	case o.Record.State != members.FenceCommitted:
		stopped, err := from.stopped(ctx, o, w.ID)
		if !stopped || err != nil {
			return false, err
		}
		err = from.dcs.CommitFence(ctx, w.ID, k.Names.Database)
		if errors.Is(err, fence.ErrOpen) || errors.Is(err, fence.ErrWithdrawn) {
			return false, nil // it ended at the same moment
		}
		if err != nil {
			return false, err
		}
		k.Log.Info("this generation serves from now on", "id", w.ID)
	}
	// A member that is lost keeps its label, and clients of the Service would reach it.
	if err := from.pods.Unlead(ctx); err != nil {
		return false, fmt.Errorf("cannot take the label of the leader from the generation before: %w", err)
	}
	k.served = w.ID
	return true, nil
}

// offer to ask before this generation has clients, and report whether that is so. It is not when no leader of the generation before would
// stop for this one, or when a leader of this one has the label already.
func (k *Keeper) offer(ctx context.Context, from former, w pgmember.TakeOver) (bool, error) {
	own, err := k.Pods.List(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range own {
		if p.Role == members.RoleLeader {
			return false, nil
		}
	}
	before, err := from.pods.List(ctx)
	if err != nil {
		return false, err
	}
	if why := unready(before); why != "" {
		k.warnOnce("Capstan alone switches clients: " + why)
		return false, nil
	}
	switch err := from.dcs.OfferFence(ctx, w.ID, k.Names.Database); {
	case errors.Is(err, fence.ErrTaken):
		return true, nil // another fence is about to end
	case kerrors.IsForbidden(err):
		k.warnOnce("Capstan alone switches clients: " + err.Error())
		return false, nil
	default:
		return true, err
	}
}

// unready is why no leader of the generation before would stop for another one, or "".
func unready(list []pods.Pod) string {
	led := false
	for _, p := range list {
		if !p.Started || p.Stopping {
			continue
		}
		if !p.Yields {
			return p.Name + " runs an earlier image"
		}
		led = led || p.Role == members.RoleLeader
	}
	if !led {
		// Perhaps its data is why there is a restore.
		return "the generation before has no leader"
	}
	return ""
}

// warnOnce about what does not change soon.
func (k *Keeper) warnOnce(what string) {
	if k.warned != what {
		k.Log.Warn(what)
		k.warned = what
	}
}

// former is the generation that serves.
type former struct {
	pods *pods.Client
	dcs  *dcs.Client
}

// stopped reports whether the leader has stopped for the fence, and no other member is the leader.
func (f former) stopped(ctx context.Context, o fence.Object, id string) (bool, error) {
	if o.InForce() != id {
		return false, nil
	}
	list, err := f.pods.List(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range list {
		if p.Fenced != nil && p.Fenced.ID == id {
			holder, err := f.dcs.Holder(ctx)
			return holder == p.Name, err
		}
	}
	return false, nil
}
