// SPDX-License-Identifier: Apache-2.0

// Package decision puts together what happens to every generation of a Database in one pass, before anything is composed.
package decision

import (
	"cmp"
	"slices"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/hooks"
	"github.com/capstan-dev/capstan/function/database/maintenance"
	"github.com/capstan-dev/capstan/function/database/order"
	"github.com/capstan-dev/capstan/function/database/podinputs"
	"github.com/capstan-dev/capstan/function/database/switchover"
)

// DecideAll of a Database: what happens to its generations, before anything is composed.
func DecideAll(c *facts.Cluster) *Pass {
	s := &Pass{Decision: decide(c), Remember: cmp.Or(c.Pending, c.Told), Siblings: map[int]*Decision{}}
	for _, g := range c.Generations() {
		if g != c.Generation {
			s.Siblings[g] = decideSibling(c.Sibling(g))
		}
	}
	s.Restoring, s.Upgrading = s.restoreRequest(), s.upgradeRequest()
	if s.Known && s.Pending == "" {
		if next, changed := s.next(); changed {
			s.Remember = next.Text()
		}
	}
	return s
}

// decideSibling is what happens to a generation that is not the active one.
func decideSibling(c *facts.Cluster) *Decision {
	target := podinputs.Revision(c)
	sit := order.Of(c, target)
	sit.Freeze, sit.Fenced = maintenance.Frozen(c.Spec.Maintenance, c.Signals.Hold(), c.Now), c.Fenced()
	d := &Decision{Cluster: c, Target: target, Before: sit}
	switch {
	case sit.Fenced && sit.Paused && c.Kept().Fenced:
		d.Order = sit.Halt()
	case sit.Fenced:
		d.Order = sit.Fence()
	case c.Asleep():
		d.Order = sit.Wake()
	default:
		d.Order = order.Order{Done: true}
	}
	return d
}

// down reports whether no member of this generation runs, and none can before its StatefulSet is changed: no client writes there
// any more.
func (s *Decision) down() bool {
	return s.HasTopology && len(s.Before.Leaving) == 0 &&
		!slices.ContainsFunc(s.Before.Views, func(v order.View) bool { return v.Exists && !v.Away() })
}

// decide what happens to the active generation. It comes before anything is composed: what members are configured with depends on
// it.
func decide(c *facts.Cluster) *Decision {
	target := podinputs.Revision(c)
	sit := order.Of(c, target)
	m := switchover.Requested(c, sit)
	sit.Applied, sit.Hibernated, sit.Moving, sit.Fenced, sit.Handing = podinputs.CoordinationApplied(c), c.Spec.Hibernated, switchover.Moving(c, m), c.Fenced(), c.Fence().ID != ""
	sit.Unarchived = unarchived(c)
	id := changeHash(c, target, sit, m)
	hold := c.Signals.Hold()
	sit.Gate, sit.Freeze = maintenance.GateOf(c.Spec.Maintenance, hold, id, c.Now), maintenance.Frozen(c.Spec.Maintenance, hold, c.Now)
	var held hooks.State
	held, sit.Hooks = hooks.Decide(c, sit, target, id)
	o := sit.Decide()
	d := &Decision{
		Cluster: c, Before: sit, Order: o, Target: target, ChangeID: id, Hooks: held,
		Holds: (sit.Gate.Closed() || sit.Hooks.Closed()) && !o.Touches() && !o.Done,
	}
	if m != nil {
		d.Move = switchover.Judge(c, *m, sit, o)
	}
	if c.Identity != "" {
		d.Planned = podinputs.Effects(c, target, d.Holds)
	}
	return d
}

// unarchived is why changes that the leader has do not reach the archive, or "". A change of the place of backups does not wait for the
// place that it replaces.
func unarchived(c *facts.Cluster) string {
	b := c.BackupReport()
	if !c.TakesBackups() || b.Archive != observev1alpha1.ArchiveFailing || podinputs.MovesArchive(c) {
		return ""
	}
	return cmp.Or(b.Message, "archiving fails")
}

// IsMemoryPending reports that the memory has to be recorded before there are members.
func (s *Pass) IsMemoryPending() bool { return s.Known && s.Remember != s.Told }

// A Decision is what happens to a generation in this pass.
type Decision struct {
	*facts.Cluster

	// Before is the situation that the order was given in.
	Before order.Situation
	Order  order.Order

	// Target is the revision that the spec asks for, ChangeID names the change to it, and Planned are its effects.
	Target, ChangeID string
	Planned          []v1alpha1.ChangeEffect

	// Holds reports that restarts are desired and blocked.
	Holds bool

	// Hooks around the change.
	Hooks hooks.State

	// Move is the switchover that is requested, if any.
	Move *switchover.Move
}

// A Pass is what was decided for every generation.
type Pass struct {
	*Decision

	// Remember is what the Secret of the first Credential should hold.
	Remember string

	// Siblings are the other generations, by number.
	Siblings map[int]*Decision

	// Restoring and Upgrading are requests that are not carried out yet.
	Restoring *Restoring
	Upgrading *Upgrading
}

// changeHash names the next change of members that serve: what they run, how many remain, and without either, a switchover or an
// upgrade.
func changeHash(s *facts.Cluster, target string, sit order.Situation, m *switchover.Move) string {
	key, value := "", ""
	switch {
	case m != nil && m.Own && len(sit.Outdated()) == 0 && len(sit.Surplus()) == 0:
		key, value = "switchover", m.ID
	case order.UpgradeNext(s, sit):
		key, value = "upgrade", s.Memory.Step.ID
	}
	return podinputs.ChangePrefix + podinputs.HashOf(s, target, key, value)
}

// Switchover for the Topology: the requested one, as soon as it can begin, or the last one, so that nothing changes when it is
// done.
func (s *Decision) Switchover() *observev1alpha1.TopologySwitchover {
	h := switchover.Handed(s.Cluster)
	switch {
	case s.Move != nil && s.Move.Asked:
		return h
	case s.Move != nil && s.Move.Begin:
		return &observev1alpha1.TopologySwitchover{ID: s.Move.ID, From: s.Move.From, To: s.Move.To}
	case h != nil && switchover.Ended(s.Cluster, h.ID):
		return h
	default:
		return nil
	}
}
