// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/json"
	"fmt"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
)

// UpgradeID names the upgrade that the spec asks for.
func (s *Cluster) UpgradeID() string {
	id := fmt.Sprintf("upgrade-%s-%s", s.Data, s.Spec.Version)
	if u := s.Spec.Upgrade; u != nil && u.Retry != "" {
		id += "-" + u.Retry
	}
	return id
}

// IsVersionLater reports whether the spec asks for a later version than the data has.
func (s *Cluster) IsVersionLater() bool {
	return s.Engine.CompareVersions(s.Spec.Version, s.Data) > 0 && s.UndoID() == ""
}

// IsUpgradeRequested reports whether the spec still requests a step of an upgrade.
func (s *Cluster) IsUpgradeRequested(step *memory.Step) bool {
	if step.Kind == memory.StepUndoUpgrade {
		return s.UndoID() == step.ID
	}
	return s.IsVersionLater() && s.UpgradeID() == step.ID
}

// Requested reports whether the spec still requests a step.
func (s *Cluster) Requested(step *memory.Step) bool {
	r := s.Spec.Restore
	switch {
	case step.IsUpgrade():
		return s.IsUpgradeRequested(step)
	case r == nil:
		return false
	case step.Kind == memory.StepUndo:
		return r.Undo == step.ID
	default:
		return r.ID == step.ID && r.At == step.At && r.RestorePoint == step.RestorePoint
	}
}

// handsOver is the step by which members of this generation hand over to another one; nil without one.
func (s *Cluster) handsOver() *memory.Step {
	if step := s.Memory.Step; step != nil && step.From == s.Generation && (step.Kind == memory.StepUpgrade || step.Kind == memory.StepRestore) {
		return step
	}
	return nil
}

// FenceRecord is what members recorded of the fence for the upgrade or the restore that is under way. A record of another one does not count.
func (s *Cluster) FenceRecord() apimembers.FenceRecord {
	step, o := s.handsOver(), s.Observed[s.In(names.DCS)]
	if o == nil || step == nil {
		return apimembers.FenceRecord{}
	}
	var r apimembers.FenceRecord
	text := compose.Text(o.Map(), "metadata", "annotations", apimembers.AnnotationFence)
	if json.Unmarshal([]byte(text), &r) != nil || r.ID != step.ID || r.To != names.BaseOf(s.Name, step.To) {
		return apimembers.FenceRecord{}
	}
	return r
}

// SharesClients reports whether clients reach the leader of another generation by the same Service. Members see to it that there is only one:
// during an upgrade, and in a restore as soon as the other generation has offered to ask before it has clients.
func (s *Cluster) SharesClients() bool {
	if !s.Known {
		return s.Coordinated().Followed || s.Coordinated().Fence.To != ""
	}
	step := s.handsOver()
	return step != nil && (step.Kind == memory.StepUpgrade || step.Decided || s.FenceRecord().State != "")
}

// Fence of the members for an upgrade or a restore, while this generation has to stop. While it is not known what is under way, the fence stays:
// without it, this generation would take writes that the next one does not have. Capstan requests its end from members that decide, and it is
// removed once they have: what was observed may be old, and the next generation may serve since.
func (s *Cluster) Fence() engine.Fence {
	if !s.Known {
		return s.Coordinated().Fence
	}
	step := s.handsOver()
	if step == nil || step.Phase != v1alpha1.RestoreFencing || step.Kind == memory.StepRestore && !step.Decided {
		return engine.Fence{}
	}
	state := s.FenceRecord().State
	switch {
	case state == apimembers.FenceWithdrawn:
		return engine.Fence{}
	case !step.Decided:
		return engine.Fence{ID: step.ID}
	}
	over := !s.Requested(step) || s.UpgradeReport().Phase == apimembers.UpgradeFailed || !s.Now.Before(step.FencedUntil())
	return engine.Fence{
		ID: step.ID, To: names.BaseOf(s.Name, step.To), Seconds: step.HeldFor(), Withdraw: over && state != apimembers.FenceCommitted,
	}
}
