// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/facts"
)

func checkMaintenance(s *facts.Cluster) []check.Problem {
	m := s.Spec.Maintenance
	if m == nil {
		return nil
	}
	var ps []check.Problem
	for i, w := range m.Windows {
		field := fmt.Sprintf("spec.maintenance.windows[%d]", i)
		// An empty name is UTC, and Local is the zone of the machine that runs this.
		if _, err := time.LoadLocation(w.TimeZone); err != nil || strings.EqualFold(w.TimeZone, "local") {
			ps = append(ps, check.Invalid(field+".timeZone", w.TimeZone, "must be the name of a time zone, for instance Europe/Zurich"))
		}
	}
	return ps
}
