// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// checkRepository holds what the schema cannot say of the volume of backups: one that was moved away from and back to has no
// value before.
func checkRepository(s *facts.Cluster) []check.Problem {
	v := backup.RepositoryVolume(s)
	var ps []check.Problem
	if was := backup.RepositoryClaimed(s); v.Size != nil && v.Size.Cmp(was) < 0 {
		ps = append(ps, check.Invalid("spec.backup.to.volume.size", v.Size.String(),
			fmt.Sprintf("the volume has %s and cannot shrink: set that, or more", was.String())))
	}
	made := backup.RepositoryMade(s)
	if made == nil || v.StorageClassName == "" {
		return ps
	}
	if class := compose.Text(made, "spec", "storageClassName"); class != v.StorageClassName {
		ps = append(ps, check.Invalid("spec.backup.to.volume.storageClassName", v.StorageClassName, fmt.Sprintf(
			"the volume stays in the class it was made in, which is %q: set that, or leave the field out", class)))
	}
	return ps
}
