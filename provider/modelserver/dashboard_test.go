// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/test/grafana"
)

const dashboard = "../../package/monitoring/dashboard.json"

// chosen values of the dashboard's variables.
var chosen = strings.NewReplacer("${histogram}", "algorithm_prediction_score_bucket",
	"$namespace", "shop", "$algorithm", "reco", "$window", "30d")

// TestDashboardQueries shows that every query is PromQL, that it sees only what was chosen, and that the series it wants exist:
// the platform's rules record them, the rules of an Algorithm do, every scrape has them, or the demo server tells them.
func TestDashboardQueries(t *testing.T) {
	demo, err := os.ReadFile("../../images/demo-algorithm/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"up", v1alpha1.SeriesSLORequests, v1alpha1.SeriesSLOBad, "capstan:slo_objective"}
	for _, r := range append(Rules(), rolloutRules()...) {
		known = append(known, r.Record)
	}
	exists := func(name string) bool {
		return slices.Contains(known, name) || strings.Contains(string(demo), fmt.Sprintf("%q", strings.TrimSuffix(name, "_bucket")))
	}
	queries := grafana.Read(t, dashboard).Queries(t, chosen, func(p grafana.Panel, s *parser.VectorSelector) {
		if !exists(s.Name) {
			t.Errorf("%s: nobody tells %s", p.Title, s.Name)
		}
		for label, value := range map[string]string{LabelNamespace: "shop", LabelAlgorithm: "reco"} {
			if !grafana.Selects(s, label, value) {
				t.Errorf("%s: %s sees more than the chosen %s", p.Title, s, label)
			}
		}
	})
	if queries < 15 {
		t.Errorf("The dashboard should show something, got %d queries", queries)
	}
}

func TestDashboardPanels(t *testing.T) {
	grafana.Read(t, dashboard).Check(t, "datasource", "namespace", "algorithm", "window", "histogram")
}
