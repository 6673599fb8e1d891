// SPDX-License-Identifier: Apache-2.0

// Package grafana checks the dashboards of Grafana that this repository has.
package grafana

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Dashboard is one of Grafana, as far as it matters whether it shows anything.
type Dashboard struct {
	Templating struct {
		List []struct {
			Name string `json:"name"`
		} `json:"list"`
	} `json:"templating"`
	Panels []Panel `json:"panels"`
}

// A Panel of a Dashboard.
type Panel struct {
	ID          int     `json:"id"`
	Type        string  `json:"type"`
	Title       string  `json:"title"`
	Description string  `json:"description"`
	Datasource  source  `json:"datasource"`
	GridPos     place   `json:"gridPos"`
	Targets     []query `json:"targets"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
}

type query struct {
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
	Datasource   source `json:"datasource"`
}

type source struct {
	UID string `json:"uid"`
}

type place struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

// Read a dashboard from a file.
func Read(tb testing.TB, file string) Dashboard {
	tb.Helper()
	raw, err := os.ReadFile(file) //nolint:gosec // Tests name it.
	if err != nil {
		tb.Fatal(err)
	}
	d := Dashboard{}
	if err := json.Unmarshal(raw, &d); err != nil {
		tb.Fatalf("cannot understand %s: %v", file, err)
	}
	return d
}

// Queries calls a function for each series that a panel asks for, once the values of variables are in their places. It fails where a query is
// no PromQL or has another variable, and returns how many queries there are.
func (d Dashboard) Queries(tb testing.TB, chosen *strings.Replacer, each func(p Panel, s *parser.VectorSelector)) int {
	tb.Helper()
	queries := 0
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			queries++
			text := chosen.Replace(q.Expr)
			if strings.Contains(text, "$") {
				tb.Errorf("%s: %s has a variable that the dashboard does not have", p.Title, q.Expr)
			}
			e, err := parser.NewParser(parser.Options{}).ParseExpr(text)
			if err != nil {
				tb.Errorf("%s: %s: %v", p.Title, text, err)
				continue
			}
			parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
				if s, ok := n.(*parser.VectorSelector); ok {
					each(p, s)
				}
				return nil
			})
		}
	}
	return queries
}

// Selects reports whether a selector takes only series with a value of a label.
func Selects(s *parser.VectorSelector, label, value string) bool {
	return slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool {
		return m.Name == label && m.Type == labels.MatchEqual && m.Value == value
	})
}

// Check that panels do not lie on each other, explain themselves, and take the Prometheus that was chosen, and which variables there are.
func (d Dashboard) Check(tb testing.TB, variables ...string) {
	tb.Helper()
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			tb.Errorf("%s: the number %d is there twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					tb.Fatalf("%s lies on %q, or beyond the 24 columns", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" {
			p.check(tb)
		}
	}
	names := make([]string, 0, len(d.Templating.List))
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
	}
	if !slices.Equal(names, variables) {
		tb.Errorf("Variables: want %v, got %v", variables, names)
	}
}

func (p Panel) check(tb testing.TB) {
	tb.Helper()
	if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
		tb.Errorf("%s should have a title, a description, a unit and a query", p.Title)
	}
	for _, q := range p.Targets {
		if p.Datasource.UID != "${datasource}" || q.Datasource.UID != "${datasource}" {
			tb.Errorf("%s should ask the Prometheus that was chosen", p.Title)
		}
		if len(p.Targets) > 1 && q.LegendFormat == "" {
			tb.Errorf("%s: no reader knows which line is which", p.Title)
		}
	}
}
