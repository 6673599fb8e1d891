// SPDX-License-Identifier: Apache-2.0

package order

import (
	"fmt"
	"slices"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
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
		synchronous: s.Synchronous(false) && !s.Standby(), // nothing is committed on a standby
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
			Lacks:          lacks(s, letter, o),
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

// lacks is why the pod of a member that exists could not start with the volume for its log, or "".
func lacks(s *facts.Cluster, letter string, o facts.Set) string {
	if s.Spec.WALStorage == nil || o.LogVolume {
		return ""
	}
	switch v, found := s.WALVolume(letter); {
	case !found:
		return fmt.Sprintf("waiting for provider-capstan to make volume claim %q: check that provider-capstan runs and has the same version", s.WALClaim(letter))
	case v.State == storagev1alpha1.VolumeFailed && v.Granted == "": // One that only cannot grow is there.
		return fmt.Sprintf("volume claim %q cannot be made, and Capstan tries again: %s", v.Name, v.Message)
	default:
		return ""
	}
}

// UpgradeNext reports whether members are fenced for an upgrade next: its copy is ready, and no other change comes first.
func UpgradeNext(s *facts.Cluster, sit Situation) bool {
	step := s.Memory.Step
	return step != nil && step.Kind == memory.StepUpgrade && step.Phase == v1alpha1.RestoreFilling && s.Generation == step.From &&
		s.UpgradeReport().Phase == apimembers.UpgradeReady && len(sit.Outdated())+len(sit.Surplus()) == 0
}

// CanLead reports whether a member can become the leader at once: it has every commit, and its node takes pods.
func (s Situation) CanLead(v View) bool {
	return v.Exists && v.Expected && !v.Stopped && !v.Leading() && v.Healthy() && !v.Cordoned &&
		(!s.synchronous || v.Role == observev1alpha1.RoleSyncStandby)
}

// HoldsLeader is why the leader does not hand over by Capstan's doing, with the way out, or "". Another leader archives what it has
// itself, and what waits on this volume may not be among it. Acts are what a person may set instead of correcting the archive.
func (s Situation) HoldsLeader(acts string) string {
	if s.Unarchived == "" {
		return ""
	}
	return fmt.Sprintf("when changes reach the archive again, which now wait on the leader's volume (%s). Correct what the condition ArchiveHealthy "+
		"names; to continue without it, set %s", s.Unarchived, acts)
}

// Acts by which a person decides that the leader hands over although archiving fails.
const (
	// ActBackupsOff ends the archive, and the gap is reported.
	ActBackupsOff = "spec.backup.enabled to false"
	// ActMove is a switchover, or that.
	ActMove = "spec.switchover to a new id, or " + ActBackupsOff
)

// cannotLead is why a member cannot become the leader now, with the remedy, or "" when it can.
func (s Situation) cannotLead(to string) string {
	i := slices.IndexFunc(s.Views, func(v View) bool { return v.Name == to })
	switch {
	case i < 0:
		names := make([]string, 0, len(s.Views))
		for _, v := range s.Views {
			names = append(names, v.Name)
		}
		return fmt.Sprintf("spec.switchover.to: %q: is not one of the members %v: choose one of them, and another id", to, names)
	case s.CanLead(s.Views[i]):
		return ""
	}
	switch v := s.Views[i]; {
	case !v.Expected:
		return fmt.Sprintf("member %s will be removed: choose another member", to)
	case v.Blocked():
		return fmt.Sprintf("member %s is blocked: %s", to, v.Message)
	case v.apart():
		return "members have to hear from each other first: " + v.Message
	case !v.Healthy():
		return fmt.Sprintf("member %s is not ready, or does not have every commit yet: wait, or choose another member", to)
	case v.Cordoned:
		return fmt.Sprintf("member %s is on node %s, which is cordoned: choose another member, or run kubectl uncordon %s", to, v.Node, v.Node)
	default:
		return fmt.Sprintf("member %s is not a synchronous standby: wait, or choose another member", to)
	}
}

// Candidate for a move is the member that is named, or else the first that can lead; or why there is none.
func (s Situation) Candidate(from, to string) (candidate, why string) {
	switch i := slices.IndexFunc(s.Views, s.CanLead); {
	case to != "" && to == from:
		return to, "" // It is the leader already, which is recorded.
	case to != "":
		return to, s.cannotLead(to)
	case i < 0:
		return "", "no standby with every commit is on a node that accepts pods: wait, or raise spec.replicas"
	default:
		return s.Views[i].Name, ""
	}
}
