// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// A dashboard of Grafana, as far as it matters whether it shows anything.
type dashboard struct {
	Templating struct {
		List []struct {
			Name string `json:"name"`
		} `json:"list"`
	} `json:"templating"`
	Panels []dashboardPanel `json:"panels"`
}

type dashboardPanel struct {
	ID          int              `json:"id"`
	Type        string           `json:"type"`
	Title       string           `json:"title"`
	Description string           `json:"description"`
	Datasource  dashboardSource  `json:"datasource"`
	GridPos     dashboardPlace   `json:"gridPos"`
	Targets     []dashboardQuery `json:"targets"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
}

type dashboardQuery struct {
	Expr         string          `json:"expr"`
	LegendFormat string          `json:"legendFormat"`
	Datasource   dashboardSource `json:"datasource"`
}

type dashboardSource struct {
	UID string `json:"uid"`
}

type dashboardPlace struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	raw, err := os.ReadFile("../../package/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	d := dashboard{}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

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
	queries := 0
	for _, p := range readDashboard(t).Panels {
		for _, q := range p.Targets {
			queries++
			text := chosen.Replace(q.Expr)
			if strings.Contains(text, "$") {
				t.Errorf("%s: %s has a variable that the dashboard does not have", p.Title, q.Expr)
			}
			e, err := parser.ParseExpr(text)
			if err != nil {
				t.Errorf("%s: %s: %v", p.Title, text, err)
				continue
			}
			parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
				s, ok := n.(*parser.VectorSelector)
				if !ok {
					return nil
				}
				if !exists(s.Name) {
					t.Errorf("%s: nobody tells %s", p.Title, s.Name)
				}
				for label, value := range map[string]string{LabelNamespace: "shop", LabelAlgorithm: "reco"} {
					if !slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool {
						return m.Name == label && m.Type == labels.MatchEqual && m.Value == value
					}) {
						t.Errorf("%s: %s sees more than the chosen %s", p.Title, s, label)
					}
				}
				return nil
			})
		}
	}
	if queries < 15 {
		t.Errorf("The dashboard should show something, got %d queries", queries)
	}
}

// TestDashboardPanels shows that panels do not lie on each other, explain themselves, and take the Prometheus that was chosen.
func TestDashboardPanels(t *testing.T) {
	d := readDashboard(t)
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: the number %d is there twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies on %q, or beyond the 24 columns", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("%s should have a title, a description, a unit and a query", p.Title)
		}
		for _, q := range p.Targets {
			if p.Datasource.UID != "${datasource}" || q.Datasource.UID != "${datasource}" {
				t.Errorf("%s should ask the Prometheus that was chosen", p.Title)
			}
			if len(p.Targets) > 1 && q.LegendFormat == "" {
				t.Errorf("%s: nobody knows which line is which", p.Title)
			}
		}
	}
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
	}
	if want := []string{"datasource", "namespace", "algorithm", "window", "histogram"}; !slices.Equal(names, want) {
		t.Errorf("Variables: want %v, got %v", want, names)
	}
}
