// SPDX-License-Identifier: Apache-2.0

// Package database plans one Database: from its spec and the objects that exist,
// what should exist and what is to be told. It is pure, and knows nothing of gRPC
// or protobuf. Start reading at the steps in this file.
package database

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/compose"
)

// A step of a plan. It adds objects or words, and takes none away.
type step struct {
	name string
	do   func(*state) error
}

// composing is what an accepted spec becomes, in order.
var composing = []step{
	{"Order", ordered},
	{"Generations", generations},
	{"AccessCredential", accessCredential},
	{"Certificates", certificates},
	{"Topology", topology},
	{"Account", account},
	{"Config", config},
	{"Services", services},
	{"Poolers", poolers},
	{"External", external},
	{"Backup", backup},
	{"Storage", storage},
	{"Members", members},
	{"OtherGenerations", otherGenerations},
	{"DisruptionBudget", disruptionBudget},
	{"NetworkPolicy", networkPolicy},
	{"Hooks", hooks},
	{"Access", access},
	{"Consumers", consumers},
	{"Monitor", monitor},
	{"Rules", rules},
	{"Lingering", lingering},
}

// keeping is all that happens to a spec that cannot be carried out.
var keeping = []step{
	{"Observed", lingering},
}

// telling is what people and Crossplane learn of either.
var telling = []step{
	{"Accepted", accepted},
	{"Composed", composed},
	{"Available", available},
	{"HighlyAvailable", highlyAvailable},
	{"TopologySafe", topologySafe},
	{"StorageHealthy", storageHealthy},
	{"ConsumersReady", consumersReady},
	{"CredentialsFresh", credentialsFresh},
	{"Pooled", poolersReady},
	{"Exposed", reachable},
	{"DeletionProtected", deletionProtected},
	{"BackupFresh", backupsFresh},
	{"ArchiveHealthy", archiveHealthy},
	{"PITRContinuous", pitrContinuous},
	{"BackupVerified", backupVerified},
	{"BackupEncrypted", backupEncrypted},
	{"RestorePointMade", restorePointMade},
	{"Restored", restored},
	{"Upgraded", upgraded},
	{"Updated", updated},
	{"SwitchedOver", switchedOver},
	{"Status", status},
	{"Readiness", readiness},
	{"TTL", ttl},
	{"Settle", settle},
}

// Planner of Databases, of the function of a version. It errs only for a
// composite resource that has no name or namespace; whatever a user can write
// becomes a condition.
func Planner(version string) compose.Planner {
	return func(r compose.Request) (*compose.Plan, error) {
		s, err := gather(r, version)
		if err != nil {
			return nil, err
		}

		doing := composing
		if len(s.problems) > 0 {
			doing = keeping
		}

		for _, steps := range [][]step{doing, telling} {
			for _, st := range steps {
				if err := st.do(s); err != nil {
					return nil, fmt.Errorf("cannot plan %s: %w", st.name, err)
				}
			}
		}

		return s.plan, nil
	}
}

// lingering objects are kept: what exists and no step has decided about stays as
// it is. A step that lets something go says so (see letGo).
func lingering(s *state) error {
	for resource := range s.Observed {
		if _, planned := s.plan.Objects[resource]; !planned && !s.gone[resource] {
			s.keep(resource)
		}
	}

	return nil
}
