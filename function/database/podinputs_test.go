// SPDX-License-Identifier: Apache-2.0

package database

import (
	"testing"

	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// Fields by what a change of them does. An entry stands for the fields below it as well.
var (
	// podInputs are in the revision of a member: another value recreates its pod.
	podInputs = []string{
		"availability.spread", "backup.enabled", "backup.encryption", "backup.to", "config{}", "databases[].name", "engine", "extensions[]",
		"from", "imagePullSecrets[].name", "logs.format", "monitoring", "plan", "pod", "podMetadata", "resources",
		"tls.issuerRef", "version", "walStorage", "workloadIdentity",
	}
	// managed fields reach no pod, or a running one without a restart.
	managed = []string{
		"availability.durability", "availability.profile", "backup.maxArchiveBacklog", "backup.now", "backup.onDelete", "backup.onExisting",
		"backup.restorePoint", "backup.retention", "backup.schedule", "backup.snapshots", "backup.verify", "consumers", "credentials", "cutOver", "deletionProtection",
		"expose", "fence", "hibernated", "maintenance", "network", "pooler", "promote", "reinitialize", "replicas", "replication", "restore", "storage", "storageGrowth", "switchover", "upgrade",
	}
)

// TestEveryFieldIsClassified fails for a field that nobody has decided about: whether another value of it restarts the members.
func TestEveryFieldIsClassified(t *testing.T) {
	composetest.Classified(t, theDefinition().Fields(), managed, podInputs)
}
