// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// TestForgedNamespace has a program serve what the provider serves of another namespace's object. Alerts take the namespace from a label
// of the series, and Prometheus must not keep it.
func TestForgedNamespace(t *testing.T) {
	w := serving(t, `{image: registry.example.org/reco:1, metrics: {}}`)
	endpoints, _ := w.request.Observed[names.Monitor].Field("spec", "endpoints").([]any)
	if len(endpoints) != 1 {
		t.Fatalf("want one endpoint, got %v", endpoints)
	}
	var rules []*relabel.Config
	written, _ := endpoints[0].(map[string]any)["metricRelabelings"].([]any)
	for _, r := range written {
		c := relabel.DefaultRelabelConfig
		c.NameValidationScheme = model.UTF8Validation
		c.Action = relabel.Action(r.(map[string]any)["action"].(string))
		c.Regex = relabel.MustNewRegexp(r.(map[string]any)["regex"].(string))
		rules = append(rules, &c)
	}
	for name, tc := range map[string]struct {
		reason       string
		series, want labels.Labels
	}{
		"Rollout": {
			reason: "an alert would be about another namespace",
			series: labels.FromStrings("__name__", "capstan_algorithm_rollout_phase", "algorithm_namespace", "ads", "phase", "Holding"),
			want:   labels.FromStrings("__name__", "capstan_algorithm_rollout_phase", "phase", "Holding"),
		},
		"Training": {
			reason: "alerts about other kinds read series of their own",
			series: labels.FromStrings("__name__", "capstan_training_phase", "training_namespace", "ads"),
			want:   labels.FromStrings("__name__", "capstan_training_phase"),
		},
		"Pipeline": {
			reason: "alerts about other kinds read series of their own",
			series: labels.FromStrings("__name__", "capstan_pipeline_phase", "pipeline_namespace", "ads"),
			want:   labels.FromStrings("__name__", "capstan_pipeline_phase"),
		},
		"Program": {
			reason: "what a program measures stays as it is",
			series: labels.FromStrings("__name__", "http_requests_total", "code", "200", "namespace", "shop"),
			want:   labels.FromStrings("__name__", "http_requests_total", "code", "200", "namespace", "shop"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			series := labels.NewBuilder(tc.series)
			relabel.ProcessBuilder(series, rules...)
			if diff := cmp.Diff(tc.want.String(), series.Labels().String()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
