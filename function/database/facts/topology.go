// SPDX-License-Identifier: Apache-2.0

package facts

import (
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/observed"
)

// observeTopology is what a Topology reports, and whether it reports anything yet.
func observeTopology(o compose.Object) (observev1alpha1.TopologyObservation, bool) {
	seen, _ := observed.Status[observev1alpha1.TopologyObservation](o)
	return seen, seen.Phase != ""
}

// Expected letters of the members that the spec asks for. In a generation that comes up by an upgrade there is one, until
// clients are switched to it: then the others copy it.
func (s *Cluster) Expected() []string {
	if s.ComesUpBy(memory.StepUpgrade) {
		return names.Letters[:1]
	}
	// A render without an API server also has numbers that the schema refuses.
	return names.Letters[:min(max(int(s.Spec.Replicas), 0), len(names.Letters))]
}

// SeenMember is what the Topology reports of a member.
func (s *Cluster) SeenMember(letter string) observev1alpha1.TopologyMember {
	for _, m := range s.Seen.Members {
		if m.Name == s.Member(letter) {
			return m
		}
	}
	return observev1alpha1.TopologyMember{Name: s.Member(letter), State: observev1alpha1.MemberUnknown, Lag: observev1alpha1.LagUnknown}
}

// Leads reports whether there is a leader, as far as is known.
func (s *Cluster) Leads() bool {
	return s.HasTopology && s.Seen.Leader != "" && s.Seen.Phase != observev1alpha1.TopologyNoLeader
}

// BackupReport is what members report of backups.
func (s *Cluster) BackupReport() observev1alpha1.BackupReport {
	if s.Seen.Backup == nil {
		return observev1alpha1.BackupReport{}
	}
	return *s.Seen.Backup
}
