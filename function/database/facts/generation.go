// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
)

// Fenced reports whether this generation is stopped, or being stopped, because clients are switched to another one.
func (s *Cluster) Fenced() bool {
	step := s.Memory.Step
	if step != nil && s.Generation == step.To {
		return false
	}
	if step != nil && s.Generation == step.From {
		// The members themselves hold a fence that they decide.
		return step.Phase == v1alpha1.RestoreFencing && step.Kind != memory.StepUpgrade && !step.Decided
	}
	// A generation about which nothing is known is not stopped.
	return s.Memory.Keeps(s.Generation)
}

// ComesUpBy reports whether this generation comes up by a step of a kind.
func (s *Cluster) ComesUpBy(kind string) bool {
	step := s.Memory.Step
	return step != nil && step.To == s.Generation && step.Kind == kind
}

// Moment of this pass, as it is written down.
func (s *Cluster) Moment() time.Time { return s.Now.UTC().Truncate(time.Second) }

// Generations whose objects stay: those that are known and those to come.
func (s *Cluster) Generations() []int {
	all := append(s.Memory.Generations(), s.ToCome...)
	if !s.Known {
		for resource := range s.Observed {
			if g, ok := names.GenerationOf(resource); ok {
				all = append(all, g)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// EveryMember selects the pods of the members of all generations that there are.
func (s *Cluster) EveryMember() *applymetav1.LabelSelectorApplyConfiguration {
	all := s.Generations()
	if len(all) == 1 {
		return applymetav1.LabelSelector().WithMatchLabels(s.Selector())
	}
	bases := make([]string, 0, len(all))
	for _, g := range all {
		bases = append(bases, names.BaseOf(s.Name, g))
	}
	return applymetav1.LabelSelector().WithMatchExpressions(applymetav1.LabelSelectorRequirement().
		WithKey(observev1alpha1.LabelDatabase).WithOperator(metav1.LabelSelectorOpIn).WithValues(bases...))
}

// VersionOf the data of a generation.
func (s *Cluster) VersionOf(generation int) string {
	return cmp.Or(s.Memory.Versions[generation], s.Data)
}

// UndoID names the upgrade that the spec undoes, if it does.
func (s *Cluster) UndoID() string {
	if s.Spec.Upgrade == nil {
		return ""
	}
	return s.Spec.Upgrade.Undo
}

// undoesTo reports whether the spec undoes an upgrade, back to a version.
func (s *Cluster) undoesTo(version string) bool {
	done, ok := s.Memory.Upgraded(s.UndoID())
	return ok && s.Memory.Versions[done.From] == version
}

// UpgradeReport is the report of the member that fills the generation of a later version. A report of another upgrade does not
// count.
func (s *Cluster) UpgradeReport() observev1alpha1.UpgradeReport {
	step := s.Memory.Step
	if step == nil || step.Kind != memory.StepUpgrade {
		return observev1alpha1.UpgradeReport{}
	}
	seen, _ := observeTopology(s.Observed[(&names.Names{Generation: step.To}).In(names.Topology)])
	if seen.Upgrade == nil || seen.Upgrade.ID != step.ID {
		return observev1alpha1.UpgradeReport{}
	}
	return *seen.Upgrade
}

// Followed reports whether a generation of a later version follows this one.
func (s *Cluster) Followed() bool {
	if !s.Known {
		return s.Coordinated().Followed
	}
	step := s.Memory.Step
	return step != nil && step.Kind == memory.StepUpgrade && step.From == s.Generation
}

// Coordinated is the coordination that members had before this pass.
func (s *Cluster) Coordinated() engine.Coordinated {
	if o := s.Observed[s.In(names.DCS)]; o != nil {
		return s.Engine.Coordinated(compose.Text(o.Map(), "metadata", "annotations", names.AnnotationConfig))
	}
	return engine.Coordinated{}
}

// Kept is how this generation is kept, if it is.
func (s *Cluster) Kept() memory.Kept {
	if i := slices.IndexFunc(s.Memory.Kept, func(k memory.Kept) bool { return k.Generation == s.Generation }); i >= 0 {
		return s.Memory.Kept[i]
	}
	return memory.Kept{}
}

// WaitsForStandby reports whether commits of a generation that came up by an upgrade wait until a standby has them, because the spec asks for
// that. It ends with the first standby, for good: if all are lost later, only the durability of the spec counts.
func (s *Cluster) WaitsForStandby() bool {
	if u := s.Spec.Upgrade; u == nil || u.Wait != v1alpha1.UpgradeWaitStandby {
		return false
	}
	switch {
	case !s.Known:
		return s.Coordinated().Strict
	case s.ComesUpBy(memory.StepUpgrade):
		return true
	}
	return s.cameByUpgrade() && s.Coordinated().Strict && !slices.ContainsFunc(s.Seen.Members, func(m observev1alpha1.TopologyMember) bool {
		return m.Role == observev1alpha1.RoleSyncStandby
	})
}

// cameByUpgrade reports whether this generation came up by an upgrade, or is about to.
func (s *Cluster) cameByUpgrade() bool {
	return s.ComesUpBy(memory.StepUpgrade) || slices.ContainsFunc(s.Memory.Done, func(d memory.Done) bool {
		return d.Kind == memory.StepUpgrade && d.State == v1alpha1.RestoreDone && d.To == s.Generation
	})
}

// AloneSinceUpgrade reports whether this generation came up by an upgrade and no second member has followed its leader yet.
// No client could write if commits had to wait for one.
func (s *Cluster) AloneSinceUpgrade() bool {
	if !s.cameByUpgrade() {
		return false
	}
	// Once commits wait, they continue to wait.
	return !s.Coordinated().Strict && !slices.ContainsFunc(s.Seen.Members, func(m observev1alpha1.TopologyMember) bool {
		return m.State == observev1alpha1.MemberStreaming
	})
}
