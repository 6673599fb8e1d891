// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/facts"
)

func checkRestore(s *facts.Cluster) []check.Problem {
	r := s.Spec.Restore
	if r != nil && r.At != "" && facts.Moment(r.At) == nil {
		return []check.Problem{check.Invalid("spec.restore.at", string(r.At), "must be a time with its zone, for instance 2026-11-21T08:59:00Z")}
	}
	return nil
}
