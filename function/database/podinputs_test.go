// SPDX-License-Identifier: Apache-2.0

package database

import (
	"slices"
	"strings"
	"testing"
)

// Fields by what a change of them does. An entry stands for the fields below it as well.
var (
	// podInputs are in the revision of a member: another value recreates its pod.
	podInputs = []string{
		"availability.spread", "backup.enabled", "backup.encryption", "backup.to", "config{}", "databases[].name", "engine", "extensions[]",
		"from", "imagePullSecrets[].name", "logs.format", "monitoring", "plan", "pod", "podMetadata", "resources",
		"tls.issuerRef", "version", "walStorage",
	}
	// managed fields reach no pod, or a running one without a restart.
	managed = []string{
		"availability.durability", "availability.profile", "backup.maxArchiveBacklog", "backup.now", "backup.onDelete", "backup.onExisting",
		"backup.restorePoint", "backup.retention", "backup.schedule", "backup.verify", "consumers", "credentials", "cutOver", "deletionProtection",
		"expose", "fence", "hibernated", "maintenance", "network", "pooler", "promote", "reinitialize", "replicas", "replication", "restore", "storage", "storageGrowth", "switchover", "upgrade",
	}
)

// TestEveryFieldIsClassified fails for a field that nobody has decided about: whether another value of it restarts the members.
func TestEveryFieldIsClassified(t *testing.T) {
	covers := func(list []string, path string) bool {
		return slices.ContainsFunc(list, func(entry string) bool {
			return path == entry || strings.HasPrefix(path, entry+".") || strings.HasPrefix(path, entry+"[")
		})
	}
	fields := theDefinition().Fields()
	for path := range fields {
		switch reaches, isManaged := covers(podInputs, path), covers(managed, path); {
		case reaches && isManaged:
			t.Errorf("spec.%s is both in managed and in podInputs: remove it from one of them", path)
		case !reaches && !isManaged:
			t.Errorf("spec.%s is neither in managed nor in podInputs. Must a change of it recreate the pods of members? Then add it to what a "+
				"revision is made of, left out while it means what was before the field, and to podInputs of this test. Otherwise add it to managed", path)
		}
	}
	for _, entry := range slices.Concat(podInputs, managed) {
		used := false
		for path := range fields {
			used = used || covers([]string{entry}, path)
		}
		if !used {
			t.Errorf("the schema has no field spec.%s: remove it from the lists of this test", entry)
		}
	}
}
