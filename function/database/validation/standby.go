// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// checkStandby holds what a standby cannot do: it has the data of its primary and no other.
func checkStandby(s *facts.Cluster) []check.Problem {
	if !s.Standby() {
		return nil
	}
	var ps []check.Problem
	if data := s.DataVersion(); data != "" && data != s.Spec.Version {
		ps = append(ps, check.Invalid("spec.version", s.Spec.Version, fmt.Sprintf(
			"a standby has the version of its primary: set %q; to upgrade, promote this Database first, or upgrade the primary and make another standby", data)))
	}
	if r := s.Spec.Restore; r != nil {
		ps = append(ps, check.Invalid("spec.restore.id", r.ID, "a standby follows its primary and is not restored: remove it, or promote this Database first"))
	}
	return ps
}
