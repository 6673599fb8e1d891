// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

func TestQueriesAreValid(t *testing.T) {
	all := map[string]string{"Discovery": Discovery()}
	for _, s := range Servers() {
		all[s.Name], all[s.Name+" with tokens"] = s.Query("1m30s", false), s.Query("1m30s", true)
	}
	for name, query := range all {
		e, err := parser.NewParser(parser.Options{}).ParseExpr(query)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}

		// What belongs to no slot would be lost in the answer.
		parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
			if a, ok := n.(*parser.AggregateExpr); ok && !slices.Contains(a.Grouping, LabelSlot) {
				t.Errorf("%s: %s does not keep the slot", name, a)
			}
			return nil
		})
	}
}

// TestRulesSeeAlgorithmsOnly shows that no selector of a rule sees series of pods that belong to no Algorithm.
func TestRulesSeeAlgorithmsOnly(t *testing.T) {
	for _, r := range Rules() {
		e, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
		if err != nil {
			t.Errorf("%s: %v", r.Record, err)
			continue
		}
		parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
			s, ok := n.(*parser.VectorSelector)
			if !ok || strings.HasPrefix(s.Name, "capstan:") {
				return nil
			}
			for _, label := range []string{LabelAlgorithm, LabelSlot} {
				if !slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool {
					return m.Name == label && m.Type == labels.MatchNotEqual && m.Value == ""
				}) {
					t.Errorf("%s: %s sees series without the label %s", r.Record, s, label)
				}
			}
			return nil
		})
	}
}

func TestRecognise(t *testing.T) {
	cases := map[string]struct {
		reason string
		names  []string
		want   string
	}{
		"Own":     {reason: "The first in the table wins.", names: []string{"http_requests_total", "algorithm_inflight"}, want: "Algorithm"},
		"VLLM":    {reason: "It tells metrics of its HTTP server, too.", names: []string{"http_requests_total", "vllm:num_requests_running"}, want: "vLLM"},
		"HTTP":    {reason: "The last resort.", names: []string{"http_request_duration_seconds_bucket"}, want: "HTTP"},
		"SGLang":  {reason: "It counts its answers under a name of its own.", names: []string{"sglang:http_responses_total"}, want: "SGLang"},
		"TGI":     {reason: "It is recognised by its queue.", names: []string{"tgi_queue_size"}, want: "TGI"},
		"Sign":    {reason: "A sign is enough.", names: []string{"rest_server_requests_total"}, want: "MLServer"},
		"Unknown": {reason: "Other names are nobody's.", names: []string{"up", "predictions_total"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			names := map[string]bool{}
			for _, n := range tc.names {
				names[n] = true
			}
			got, ok := Recognise(names)
			if got.Name != tc.want || ok != (tc.want != "") {
				t.Errorf("\n%s\nRecognise(%v): want %q, got %q, %t", tc.reason, tc.names, tc.want, got.Name, ok)
			}
			if found, ok := Find(got.Name); ok && found.Name != got.Name {
				t.Errorf("Find(%q): got %q", got.Name, found.Name)
			}
		})
	}
}

// TestGenerated shows that the files are what the table gives, and that both hold the same rules.
func TestGenerated(t *testing.T) {
	for name, want := range map[string]string{FileRules: RuleFile(), FilePrometheusRule: PrometheusRule()} {
		got, err := os.ReadFile(filepath.Join("..", "..", "package", "monitoring", name))
		if err != nil || string(got) != want {
			t.Errorf("%s is not what the table of model servers gives: run make generate (%v)", name, err)
		}
	}
	type groups struct {
		Groups []struct {
			Rules []struct{ Record, Expr string }
		}
	}
	plain, object := groups{}, struct{ Spec groups }{}
	if err := yaml.Unmarshal([]byte(RuleFile()), &plain); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(PrometheusRule()), &object); err != nil {
		t.Fatal(err)
	}
	for i, r := range Rules() {
		if p, o := plain.Groups[0].Rules[i], object.Spec.Groups[0].Rules[i]; p != o || p.Record != r.Record || p.Expr != r.Expr {
			t.Errorf("Rule %d: want %+v, got %+v and %+v", i, r, p, o)
		}
	}
}
