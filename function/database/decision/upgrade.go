// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"fmt"
	"slices"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/maintenance"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/order"
)

// Upgrading is an upgrade, or its undoing, that the spec asks for and that is neither under way nor carried out.
type Upgrading struct {
	// Gate that blocks it now, if any.
	maintenance.Gate

	ID   string
	undo bool

	// From and To are major versions, and back is the generation that an undo goes back to.
	From, To string
	back     int
}

// upgradeRequest of the spec, unless it was carried out or is under way.
func (s *Decision) upgradeRequest() *Upgrading {
	u := &Upgrading{ID: s.UndoID(), undo: s.UndoID() != "", From: s.Data, To: s.Spec.Version}
	if step := s.Memory.Step; step != nil && step.IsUpgrade() || !u.undo && !s.IsVersionLater() {
		return nil
	}
	if !u.undo {
		u.ID = s.UpgradeID()
	}
	done, ended := s.Memory.Upgraded(u.ID)
	if ended && (!u.undo || done.State != v1alpha1.RestoreDone) {
		return nil
	}
	waits := func(message string) maintenance.Gate {
		return maintenance.Gate{Reason: v1alpha1.ReasonUpgradeWaiting, Message: message}
	}
	u.Gate = memoryGate(s.Cluster, v1alpha1.ReasonUpgradeWaiting)
	switch {
	case u.Closed():
		return u
	case len(s.Sets) == 0:
		u.Gate = waits(noMembers)
		return u
	}
	u.Gate = cmp.Or(upgradeGate(s.Cluster, u, done, ended), s.SwitchGate(v1alpha1.ReasonUpgradeWaiting))
	switch {
	case u.Closed(), u.undo:
	case !s.Leads():
		u.Gate = waits("there is no leader to copy data from: see the condition Available")
	case len(s.Memory.Kept) >= mostKept:
		u.Gate = waits(fmt.Sprintf("%d generations are kept already: the upgrade starts when one of them is removed (see status.generation.kept)", mostKept))
	}
	return u
}

// upgradeGate is closed when an upgrade or its undoing is impossible.
func upgradeGate(s *facts.Cluster, u *Upgrading, done memory.Done, ended bool) maintenance.Gate {
	impossible := func(format string, of ...any) maintenance.Gate {
		return maintenance.Gate{Reason: v1alpha1.ReasonUpgradeImpossible, Message: fmt.Sprintf(format, of...)}
	}
	if u.undo {
		u.back = done.From
		u.From, u.To = s.Memory.Versions[done.From], s.Memory.Versions[done.To]
		switch {
		case !ended:
			return impossible("spec.upgrade.undo: %q: no upgrade with this id switched clients: see status.upgrade.id", u.ID)
		case !s.Memory.Keeps(done.From) || s.Memory.Generation() != done.To:
			return impossible("spec.upgrade.undo: %q: generation %d is no longer kept, or clients were switched again since then: remove spec.upgrade.undo; "+
				"its backups are in the bucket for as long as spec.backup.retention says, in stanza %s; another Database can restore them with spec.from.backup", u.ID, done.From, backup.StanzaOf(s, done.From))
		default:
			return maintenance.Gate{}
		}
	}
	next, _ := s.Find(s.Spec.Version)
	if next.Name != s.Image.Name {
		return impossible("spec.version: %q: image %s of this version has no programs of version %s, which the data needs: ask the platform team for an image that has both versions (database.images of the settings)",
			s.Spec.Version, next.Name, s.Data)
	}
	// One version may refuse what another accepts.
	fields := s.Fields()
	fields.Version, fields.Image = s.Spec.Version, next.Version
	if ps := slices.Concat(s.Engine.CheckConfig(fields), s.ExtensionProblems(fields)); len(ps) > 0 {
		return impossible("spec.version: %q: the spec does not fit this version: %s", s.Spec.Version, ps[0].Message)
	}
	return maintenance.Gate{}
}

// advanceUpgrade that is under way. Clients are switched once the new generation has a leader, which it gets only after the former
// leader has stopped for the fence. Until that is decided, the generation before can continue at any time, because no client has used the
// new one. Members decide it: while they have not, the fence is only asked to end.
func (s *Pass) advanceUpgrade(m memory.Memory) (memory.Memory, bool) {
	step, to, r := m.Step, s.Siblings[m.Step.To], s.UpgradeReport()
	fails := func(why string) (memory.Memory, bool) {
		m.Done = Remembered(s.Cluster, m.Done, memory.Done{
			ID: step.ID, Kind: memory.StepUpgrade, State: v1alpha1.RestoreFailed, From: step.From, To: step.To, When: s.Moment(), Why: bounded(why),
		})
		m.Step = nil
		return m, true
	}
	fencing, record := step.Phase == v1alpha1.RestoreFencing, s.FenceRecord()
	open := fencing && step.Decided && record.State != apimembers.FenceWithdrawn
	switch {
	case fencing && to.Leads() && to.Seen.SystemIdentifier != "" && s.Coordinated().Fence.ID == step.ID:
		step.Led = cmp.Or(s.Seen.Leader, step.Led)
		return switchClients(s.Cluster, m), true
	case open:
		return m, false
	case !s.Requested(step):
		m.Step = nil
		return m, true
	case r.Phase == apimembers.UpgradeFailed:
		return fails(r.Message)
	case record.State == apimembers.FenceWithdrawn:
		return fails(record.Why)
	case fencing && !s.Now.Before(step.FencedUntil()):
		return fails(fmt.Sprintf("no member of generation %d became the leader in time: the log of member %s has the cause", step.To, to.Member(names.Letters[0])))
	case fencing:
		return m, false
	}
	if g := s.MayFence(); g.Closed() {
		return m, false
	}
	step.Phase, step.Since, step.Gap, step.Led = v1alpha1.RestoreFencing, s.Moment(), r.GapSeconds, s.Seen.Leader
	step.Decided = record.State == apimembers.FenceOffered
	return m, true
}

// bounded text, because it is remembered.
func bounded(why string) string {
	const most = 300
	if r := []rune(why); len(r) > most {
		return string(r[:most]) + "…"
	}
	return why
}

// MayFence is what the fence of an upgrade waits for.
func (s *Decision) MayFence() maintenance.Gate {
	waits := func(message string) maintenance.Gate {
		return maintenance.Gate{Reason: v1alpha1.ReasonUpgradeWaiting, Message: message}
	}
	switch {
	case s.UpgradeReport().Phase != apimembers.UpgradeReady:
		return waits("the copy is not ready")
	case !order.UpgradeNext(s.Cluster, s.Before):
		return waits("another change of the members comes first: see the condition Updated")
	case s.Before.Gate.Closed():
		return s.Before.Gate
	case s.Before.Hooks.Closed():
		return s.Before.Hooks
	case s.SwitchGate(v1alpha1.ReasonUpgradeWaiting).Closed():
		return s.SwitchGate(v1alpha1.ReasonUpgradeWaiting)
	case s.Before.Unarchived != "":
		return maintenance.Gate{Reason: v1alpha1.ReasonAwaitingArchive, Message: "clients are switched " + s.Before.HoldsLeader(order.ActBackupsOff)}
	case s.Seen.Paused:
		return waits("failover is paused by hand: " + s.Traits.Resume)
	case !order.AllHealthy(s.Cluster, s.Before):
		return waits("every member must be healthy first: see the condition HighlyAvailable")
	default:
		return maintenance.Gate{}
	}
}
