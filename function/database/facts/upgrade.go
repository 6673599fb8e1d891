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

// FenceRecord is what members recorded of the fence for the upgrade that is under way. A record of another upgrade does not count.
func (s *Cluster) FenceRecord() apimembers.FenceRecord {
	step, o := s.Memory.Step, s.Observed[s.In(names.DCS)]
	if o == nil || !s.Followed() || step == nil {
		return apimembers.FenceRecord{}
	}
	var r apimembers.FenceRecord
	text := compose.Text(o.Map(), "metadata", "annotations", apimembers.AnnotationFence)
	if json.Unmarshal([]byte(text), &r) != nil || r.ID != step.ID || r.To != names.BaseOf(s.Name, step.To) {
		return apimembers.FenceRecord{}
	}
	return r
}

// Fence of the members for an upgrade, while this generation has to stop. While it is not known what is under way, the fence stays: without
// it, this generation would take writes that the next one does not have. Capstan requests its end from members that decide, and it is removed once
// they have: what was observed may be old, and the next generation may serve since.
func (s *Cluster) Fence() engine.Fence {
	if !s.Known {
		return s.Coordinated().Fence
	}
	step := s.Memory.Step
	if !s.Followed() || step.Phase != v1alpha1.RestoreFencing {
		return engine.Fence{}
	}
	state := s.FenceRecord().State
	switch {
	case state == apimembers.FenceWithdrawn:
		return engine.Fence{}
	case !step.Decided:
		return engine.Fence{ID: step.ID}
	}
	over := !s.IsUpgradeRequested(step) || s.UpgradeReport().Phase == apimembers.UpgradeFailed || !s.Now.Before(step.FencedUntil())
	return engine.Fence{
		ID: step.ID, To: names.BaseOf(s.Name, step.To), Seconds: step.HeldFor(), Withdraw: over && state != apimembers.FenceCommitted,
	}
}
