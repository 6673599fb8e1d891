// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/capstan-dev/capstan/test/grafana"
)

// TestDashboards: each engine has one with the same number of panels. Every query is PromQL, and sees one Database only: by its labels, or by
// the names of its pods and volumes.
func TestDashboards(t *testing.T) {
	panels := map[string]int{}
	for _, name := range []string{"dashboard-database", "dashboard-database-mysql"} {
		t.Run(name, func(t *testing.T) {
			d := grafana.Read(t, "../../../package/monitoring/"+name+".json")
			panels[name] = len(d.Panels)
			d.Check(t, "datasource", "namespace", "database")
			queries := d.Queries(t, strings.NewReplacer("$namespace", "shop", "$database", "orders-db"), func(p grafana.Panel, s *parser.VectorSelector) {
				own := grafana.Selects(s, "database", "orders-db") || slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool {
					return (m.Name == "pod" || m.Name == "persistentvolumeclaim") && m.Type == labels.MatchRegexp && strings.Contains(m.Value, "orders-db-[")
				})
				if !own || !grafana.Selects(s, "namespace", "shop") {
					t.Errorf("%s: %s sees more than the chosen Database", p.Title, s)
				}
			})
			if queries < 12 {
				t.Errorf("it should show something, got %d queries", queries)
			}
		})
	}
	if panels["dashboard-database"] != panels["dashboard-database-mysql"] {
		t.Errorf("one engine shows more: %v", panels)
	}
}
