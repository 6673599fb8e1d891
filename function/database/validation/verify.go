// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// checkVerify holds what the schema cannot express about verifications.
func checkVerify(s *facts.Cluster) []check.Problem {
	if s.Spec.Backup == nil || s.Spec.Backup.Verify == nil {
		return nil
	}
	v := s.Spec.Backup.Verify
	ps := checkSchedule(s, "spec.backup.verify.schedule", v.Schedule)
	for i, a := range v.Assertions {
		if !slices.ContainsFunc(s.Spec.Databases, func(d v1alpha1.LogicalDatabase) bool { return d.Name == a.Database }) {
			ps = append(ps, check.Invalid(fmt.Sprintf("spec.backup.verify.assertions[%d].database", i), a.Database, "must be one of spec.databases: add it there, or name another database"))
		}
	}
	return ps
}
