// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// checkRepository holds what the schema cannot express about the volume of backups: the schema sees no previous value after a
// target was removed and added again.
func checkRepository(s *facts.Cluster) []check.Problem {
	v := backup.RepositoryVolume(s)
	var ps []check.Problem
	if was := backup.RepositoryClaimed(s); v.Size != nil && v.Size.Cmp(was) < 0 {
		ps = append(ps, check.Invalid("spec.backup.to.volume.size", v.Size.String(),
			fmt.Sprintf("the volume has %[1]s and cannot shrink: set %[1]s or more", was.String())))
	}
	made := backup.RepositoryMade(s)
	if made == nil || v.StorageClassName == "" {
		return ps
	}
	if class := compose.Text(made, "spec", "storageClassName"); class != v.StorageClassName {
		ps = append(ps, check.Invalid("spec.backup.to.volume.storageClassName", v.StorageClassName, fmt.Sprintf(
			"the volume exists with StorageClass %[1]q, which cannot change: set %[1]q, or remove the field", class)))
	}
	return ps
}
