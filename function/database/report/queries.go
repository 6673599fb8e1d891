// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/decision"
)

// queriesHealthy reports queries for metrics that fail. Each is named once, with the first member where it fails.
func queriesHealthy(s *decision.Pass) xpv2.Condition {
	m := s.Spec.Monitoring
	if m == nil || len(m.Queries) == 0 || !*m.Enabled || s.Asleep() {
		return xpv2.Condition{}
	}
	var failing []string
	named, unknownOf := map[string]bool{}, ""
	for _, letter := range s.Expected() {
		seen := s.SeenMember(letter)
		if seen.Queries == nil {
			unknownOf = seen.Name
			continue
		}
		for _, q := range seen.Queries.Failing {
			if !named[q.Name] {
				named[q.Name] = true
				failing = append(failing, fmt.Sprintf("spec.monitoring.queries[%s]: fails on member %s: %s", q.Name, seen.Name, q.Message))
			}
		}
	}
	switch {
	case len(failing) > 0:
		return no(v1alpha1.ReasonQueryFails, strings.Join(failing, "; ")+": correct its SQL, or grant what it reads to the role exporter; other metrics are not affected")
	case unknownOf != "":
		return unknown(v1alpha1.ReasonQueriesUnknown, fmt.Sprintf("member %s does not report its queries: see the condition Updated, and the container exporter of its pod", unknownOf))
	default:
		return yes(v1alpha1.ReasonQueriesSucceed, "every member runs every query without an error")
	}
}
