// SPDX-License-Identifier: Apache-2.0

package order

import (
	"slices"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/memory"
)

// AllHealthy reports whether every member of this generation that the spec asks for is healthy.
func AllHealthy(s *facts.Cluster, sit Situation) bool {
	return s.HasTopology && s.Leads() && !s.Seen.Paused && len(sit.Views) > 0 &&
		!slices.ContainsFunc(sit.Views, func(v View) bool { return v.Expected && !v.Healthy() })
}

// Hibernated reports whether no member runs any more, as the spec asks.
func Hibernated(s *facts.Cluster) bool {
	if !s.Asleep() || !s.Spec.Hibernated && len(s.Problems) == 0 {
		return false
	}
	return !slices.ContainsFunc(Of(s, "").Views, func(v View) bool { return v.Exists && !v.Away() })
}

// Of the members of a generation: the situation, with the target revision.
func Of(s *facts.Cluster, target string) Situation {
	sit := Situation{
		Known:       s.HasTopology,
		HasLeader:   s.Leads(),
		Paused:      s.Seen.Paused,
		Resume:      s.Traits.Resume,
		synchronous: s.Synchronous(false),
	}
	all := map[string]bool{}
	for _, letter := range s.Expected() {
		all[letter] = true
	}
	for letter := range s.Sets {
		all[letter] = true
	}
	for _, letter := range compose.SortedKeys(all) {
		o, exists := s.Sets[letter]
		m := s.SeenMember(letter)
		sit.Views = append(sit.Views, View{
			letter:         letter,
			Name:           s.Member(letter),
			Exists:         exists,
			Expected:       slices.Contains(s.Expected(), letter),
			Current:        exists && o.Revision == target,
			restarted:      exists && o.Restarted == target,
			Settled:        exists && o.Template != "" && o.Template == m.Revision,
			rolling:        exists && (o.Template == "" || !o.RolledOut || m.Revision != "" && o.Template != m.Revision),
			Stopped:        exists && (o.Stopped != "" || o.Replicas == 0),
			ledLast:        o.Stopped == facts.StoppedLeading,
			emptied:        exists && o.Emptied,
			TopologyMember: m,
		})
	}
	for _, m := range s.Seen.Members {
		if letter := s.LetterOf(m.Name); !all[letter] {
			sit.Leaving = append(sit.Leaving, m.Name)
		}
	}
	return sit
}

// UpgradeNext reports whether members are fenced for an upgrade next: its copy is ready, and no other change comes first.
func UpgradeNext(s *facts.Cluster, sit Situation) bool {
	step := s.Memory.Step
	return step != nil && step.Kind == memory.StepUpgrade && step.Phase == v1alpha1.RestoreFilling && s.Generation == step.From &&
		s.UpgradeReport().Phase == apimembers.UpgradeReady && len(sit.Outdated())+len(sit.Surplus()) == 0
}
