// SPDX-License-Identifier: Apache-2.0

//go:build integration

package modelserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/test/outside"
)

// A promtoolTest is one of a file for promtool test rules.
type promtoolTest struct {
	Name     string           `json:"name"`
	Interval string           `json:"interval"`
	Input    []promtoolSeries `json:"input_series"`
	Queries  []promtoolQuery  `json:"promql_expr_test"`
}

type promtoolSeries struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type promtoolQuery struct {
	Expr string           `json:"expr"`
	At   string           `json:"eval_time"`
	Want []promtoolSample `json:"exp_samples"`
}

type promtoolSample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

// asked is a query with its result at 10m, or none.
func asked(expr string, want ...promtoolSample) []promtoolQuery {
	return []promtoolQuery{{Expr: expr, At: "10m", Want: want}}
}

// TestQueriesCount has Prometheus' own tool show what counters count in two minutes, scraped each 15 s, and when the latency is a
// guard.
func TestQueriesCount(t *testing.T) {
	const (
		of      = `{namespace="shop",pod="p",algorithm="reco",slot="b"}`
		failed  = `{namespace="shop",pod="p",algorithm="reco",slot="b",code="500"}`
		latency = `capstan:latency_p95_ms{namespace="demo",algorithm="reco",slot="a"}`
		zero    = `{namespace="demo",algorithm="reco",slot="a"}`
	)
	guard := ""
	for _, g := range composed(t)["latency"] {
		for _, r := range g.Rules {
			if r.Record == "capstan:latency_guard_ms" {
				guard = r.Expr
			}
		}
	}
	if guard == "" {
		t.Fatal("Example latency should record the guard")
	}
	counts, up := asked(Counts("x", "2m"), promtoolSample{failed, 4}), promtoolSeries{"up" + of, "1x40"}
	tests := []promtoolTest{
		{"born with the first failure, and failing once more", "15s", []promtoolSeries{up, {"x" + failed, "_x37 3 4 4"}}, counts},
		{"born at the last scrape", "15s", []promtoolSeries{up, {"x" + failed, "_x39 4"}}, counts},
		{"there before, with eight scrapes of two minutes", "15s", []promtoolSeries{up, {"x" + failed, "100x36 101 102 103 103.5"}}, counts},
		// Nobody knows when what it counted before it was scraped has happened.
		{"a pod that is new to Prometheus", "15s", []promtoolSeries{{"up" + of, "_x36 1x4"}, {"x" + failed, "_x36 900x4"}}, asked(Counts("x", "2m"), promtoolSample{failed, 0})},
		{"a failure of a new pod", "15s", []promtoolSeries{{"up" + of, "_x36 1x4"}, {"x" + failed, "_x38 4 4"}}, counts},
		{"a latency near the target of 50 ms", "15s", []promtoolSeries{{latency, "49x40"}}, asked(guard, promtoolSample{zero, 0})},
		{"one that is just above", "15s", []promtoolSeries{{latency, "52x40"}}, asked(guard, promtoolSample{zero, 0})},
		{"one that is too high", "15s", []promtoolSeries{{latency, "53x40"}}, asked(guard, promtoolSample{latency, 53})},
		{"none that is known", "15s", []promtoolSeries{{"other", "1x40"}}, asked(guard)},
	}
	tool, dir := outside.Promtool(t), t.TempDir()
	for _, test := range tests {
		raw, err := yaml.Marshal(map[string]any{"evaluation_interval": "15s", "fuzzy_compare": true, "tests": []promtoolTest{test}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "test.yaml")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), tool, "test", "rules", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", test.Name, err, out)
		}
	}
}
