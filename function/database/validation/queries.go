// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// checkQueries finds queries that no exporter would run, and results that collide.
func checkQueries(s *facts.Cluster) []check.Problem {
	m := s.Spec.Monitoring
	if m == nil || len(m.Queries) == 0 {
		return nil
	}
	if !*m.Enabled {
		return []check.Problem{check.Invalid("spec.monitoring.queries", block, "no exporter runs them, because spec.monitoring.enabled is false: set it to true, or remove them")}
	}
	var ps []check.Problem
	metrics := map[string]string{}
	for i, q := range m.Queries {
		at := fmt.Sprintf("spec.monitoring.queries[%d]", i)
		if !slices.ContainsFunc(s.Spec.Databases, func(d v1alpha1.LogicalDatabase) bool { return d.Name == q.Database }) {
			ps = append(ps, check.Invalid(at+".database", q.Database, "is not one of spec.databases: add it there, or choose another"))
		}
		for _, l := range q.Labels {
			if slices.Contains(q.Values, l) {
				ps = append(ps, check.Invalid(at+".labels", string(l), "is in values, too: a column is a value or a label, so remove it from one of them"))
			}
		}
		for _, v := range q.Values {
			metric := q.Name + "_" + string(v)
			if other := metrics[metric]; other != "" {
				ps = append(ps, check.Invalid(at+".values", string(v), fmt.Sprintf("query %q has the metric capstan_query_%s already: rename a query or a column", other, metric)))
			}
			metrics[metric] = q.Name
		}
	}
	return ps
}
