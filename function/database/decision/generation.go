// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/order"
)

// next memory, if it changes. It is called only when the memory of the last pass is known to be kept.
func (s *Pass) next() (memory.Memory, bool) {
	m := s.Memory.Copy()
	w := s.Restoring
	// A Database that is recreated from its manifest must not restore a second time.
	if len(s.Sets) == 0 && m.Step == nil {
		skipped := s.skipPromotion(&m)
		if w == nil || w.Undo {
			return m, skipped
		}
		m.Done = Remembered(s.Cluster, m.Done, memory.Done{ID: w.ID, State: v1alpha1.RestoreSkipped, When: s.Moment()})
		return m, true
	}
	if m.Step != nil {
		return s.advance(m)
	}
	if s.Promotion().Begins {
		m.Promoted = &memory.Promotion{ID: s.Spec.Promote.ID, When: s.Moment()}
		return m, true
	}
	if id := importEnds(s.Cluster); id != "" {
		m.Imported = &memory.Promotion{ID: id, When: s.Moment()}
		return m, true
	}
	if w != nil && !w.Closed() {
		m = begin(s.Cluster, m, memory.Step{ID: w.ID, Kind: memory.StepRestore, To: w.to, At: w.At, RestorePoint: w.Point})
		if w.Undo {
			m.Step.Kind = memory.StepUndo
		} else if len(m.Versions) > 0 {
			m.Versions[m.Step.To] = s.Data
		}
		return m, true
	}
	if u := s.Upgrading; u != nil && !u.Closed() {
		m = begin(s.Cluster, m, memory.Step{ID: u.ID, Kind: memory.StepUpgrade, To: u.back})
		if u.undo {
			m.Step.Kind = memory.StepUndoUpgrade
		} else {
			if m.Versions == nil {
				m.Versions = map[int]string{}
			}
			m.Versions[m.Step.From], m.Versions[m.Step.To] = s.Data, s.Spec.Version
		}
		return m, true
	}
	before := len(m.Kept)
	m.Kept = slices.DeleteFunc(m.Kept, func(k memory.Kept) bool { return !s.Now.Before(k.Until) })
	return m, len(m.Kept) != before
}

// begin a step. An undo goes back to a generation that is kept, any other step fills a new one.
func begin(s *facts.Cluster, m memory.Memory, step memory.Step) memory.Memory {
	m.Active = m.Generation()
	step.From, step.Phase, step.Since = m.Active, v1alpha1.RestoreFilling, s.Moment()
	if step.To == 0 {
		m.Last = max(m.Last, m.Active) + 1
		step.To = m.Last
	}
	m.Step = &step
	return m
}

// advance the step that is under way.
func (s *Pass) advance(m memory.Memory) (memory.Memory, bool) {
	step := m.Step
	to := s.Siblings[step.To]
	if step.Kind == memory.StepUpgrade {
		return s.advanceUpgrade(m)
	}
	if step.Decided {
		return s.advanceHandover(m)
	}
	switch {
	case !s.Requested(step):
		// The active generation continues to serve.
		m.Step = nil
		return m, true
	case step.Phase == v1alpha1.RestoreFilling && order.AllHealthy(to.Cluster, to.Before) && !s.SwitchGate(v1alpha1.ReasonRestoreWaiting).Closed():
		step.Phase, step.Since, step.Led = v1alpha1.RestoreFencing, s.Moment(), s.Seen.Leader
		// Without an offer, members have an image that leaves it to Capstan. Without a leader, none would say that it has stopped.
		step.Decided = step.Kind == memory.StepRestore && s.FenceRecord().State == apimembers.FenceOffered && s.Leads()
		return m, true
	case step.Phase == v1alpha1.RestoreFencing && s.down():
		return switchClients(s.Cluster, m), true
	default:
		return m, false
	}
}

// advanceHandover of a restore whose members decide the outcome by themselves. A fence that was withdrawn, or whose end was requested, never has
// effect any more, so the restore fails; with another id, it is tried again.
func (s *Pass) advanceHandover(m memory.Memory) (memory.Memory, bool) {
	step, to, record := m.Step, s.Siblings[m.Step.To], s.FenceRecord()
	switch {
	case record.State == apimembers.FenceCommitted && to.Leads():
		step.Led = cmp.Or(s.Seen.Leader, step.Led)
		return switchClients(s.Cluster, m), true
	case record.State != apimembers.FenceWithdrawn:
		return m, false
	case !s.Requested(step):
		m.Step = nil
		return m, true
	}
	m.Done = Remembered(s.Cluster, m.Done, memory.Done{
		ID: step.ID, State: v1alpha1.RestoreFailed, From: step.From, To: step.To, At: step.At, RestorePoint: step.RestorePoint, When: s.Moment(), Why: bounded(record.Why),
	})
	m.Step = nil
	return m, true
}

// switchClients is the memory once clients are switched to the other generation.
func switchClients(s *facts.Cluster, m memory.Memory) memory.Memory {
	step, now := m.Step, s.Moment()
	m.Active, m.Since, m.Step = step.To, &now, nil
	m.Kept = slices.DeleteFunc(m.Kept, func(k memory.Kept) bool { return k.Generation == step.To || k.Generation == step.From })
	m.Kept = append(m.Kept, memory.Kept{
		Generation: step.From, ID: step.ID, Until: now.Add(keepsFor(s, step)), Fenced: step.Kind == memory.StepUpgrade || step.Decided, Led: step.Led,
	})
	kind := ""
	if step.IsUpgrade() {
		kind = memory.StepUpgrade
	}
	if step.Kind == memory.StepUndo || step.Kind == memory.StepUndoUpgrade {
		for i := range m.Done {
			if m.Done[i].ID == step.ID && m.Done[i].Kind == kind {
				m.Done[i].State, m.Done[i].When = v1alpha1.RestoreUndone, now
			}
		}
		return m
	}
	m.Done = Remembered(s, m.Done, memory.Done{ID: step.ID, Kind: kind, State: v1alpha1.RestoreDone, From: step.From, To: step.To, At: step.At, RestorePoint: step.RestorePoint, When: now})
	return m
}

// Remembered requests: the last ones, and those that the spec still names, because they would be carried out again if forgotten.
// Why one failed is kept only as long as the spec names it.
func Remembered(s *facts.Cluster, all []memory.Done, d memory.Done) []memory.Done {
	named := func(o memory.Done) bool {
		if o.Kind == memory.StepUpgrade {
			return o.ID == s.UndoID() || o.ID == s.UpgradeID()
		}
		return o.ID == RestoreID(s)
	}
	for i := range all {
		if !named(all[i]) {
			all[i].Why = ""
		}
	}
	all = append(all, d)
	for len(all) > memory.DoneKept {
		oldest := slices.IndexFunc(all, func(o memory.Done) bool { return !named(o) })
		all = slices.Delete(all, oldest, oldest+1)
	}
	return all
}
