// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/scrape/scrapetest"
)

// TestForgedNamespace has a program serve what the provider serves of another namespace's object. Alerts take the namespace from a label
// of the series, and Prometheus must not keep it.
func TestForgedNamespace(t *testing.T) {
	w := serving(t, `{image: registry.example.org/reco:1, metrics: {}}`)
	endpoints, _ := w.request.Observed[names.Monitor].Field("spec", "endpoints").([]any)
	if len(endpoints) != 1 {
		t.Fatalf("want one endpoint, got %v", endpoints)
	}
	raw, err := json.Marshal(endpoints[0])
	if err != nil {
		t.Fatal(err)
	}
	var endpoint monitoringv1.Endpoint
	if err := json.Unmarshal(raw, &endpoint); err != nil {
		t.Fatal(err)
	}
	rules := scrapetest.Rules(endpoint.MetricRelabelConfigs)
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
