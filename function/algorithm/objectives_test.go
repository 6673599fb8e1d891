// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// TestObjectives shows which checks the live revision and a candidate get of one spec.
func TestObjectives(t *testing.T) {
	const none = "lifecycle: {soak: 1m}"
	for name, tc := range map[string]struct {
		reason, spec    string
		live, candidate []string
	}{
		"None": {
			"a candidate is compared also where nothing is asked of the live revision", none,
			nil,
			[]string{"success 0.99"},
		},
		"Both": {
			"an objective is one of the live revision and of a candidate", none + ", objectives: {successRatio: 0.95, latencyMs: 50, latencyPercentile: 99}",
			[]string{"success 0.95", "latency p99 50"},
			[]string{"success 0.95", "latency p99 50"},
		},
		"Threshold": {
			"a candidate may have another share", "lifecycle: {soak: 1m, successThreshold: 0.9}, objectives: {successRatio: 0.95}",
			[]string{"success 0.95"},
			[]string{"success 0.9"},
		},
		"Increase": {
			"the comparison has the percentile of the objective", "lifecycle: {soak: 1m, maxLatencyIncreasePercent: 10}, objectives: {latencyPercentile: 50}",
			nil,
			[]string{"success 0.99", "latency-against-baseline p50 1.1"},
		},
		"Scaling": {
			"what the autoscaler keeps is an objective", "lifecycle: {soak: 1m}, scaling: {minReplicas: 4, maxReplicas: 9, targetLatencyMs: 40}",
			[]string{"latency p95 40"},
			[]string{"success 0.99", "latency p95 40"},
		},
		"Another": {
			"unless the objective is another", "lifecycle: {soak: 1m}, objectives: {latencyMs: 50}, scaling: {minReplicas: 4, maxReplicas: 9, targetLatencyMs: 40}",
			[]string{"latency p95 50"},
			[]string{"success 0.99", "latency p95 50"},
		},
		"Checks": {
			"a check is for both, unless it says so",
			none + ", metrics: {queries: [{name: b, query: q, max: 1}, {name: l, query: q, max: 2, appliesTo: Live}, " +
				"{name: c, query: q, max: 3, appliesTo: Candidate}, {name: r, query: q, max: 4, appliesTo: Ratio}]}",
			[]string{"b 1", "l 2"},
			[]string{"success 0.99", "b 1", "c 3", "r 4"},
		},
		"Drift": {
			"drift that is only reported is measured all the same", "lifecycle: {soak: 1m, rollbackOnDrift: false, drift: {}}, metrics: {queries: [{name: outputs, query: q}]}",
			nil,
			[]string{"success 0.99", "drift 0.2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := "{image: %s, replicas: 4, " + tc.spec + "}"
			w := serving(t, fmt.Sprintf(spec, "x"))
			w.settle()
			w.edit(fmt.Sprintf(spec, "z"))
			metrics := compose.Map(object(t, w.plan(), names.Analysis), "spec", "forProvider", "metrics")
			if diff := cmp.Diff(tc.live, bounded(compose.List(metrics, "checks"))); diff != "" {
				t.Errorf("%s: checks of the live revision: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.candidate, bounded(compose.List(metrics, "trial"))); diff != "" {
				t.Errorf("%s: checks of a candidate: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// bounded checks of an Analysis in words, but for the comparison that there always is.
func bounded(checks []any) []string {
	var words []string
	for _, v := range checks {
		c := v.(map[string]any)
		bound := c["min"]
		if bound == nil {
			bound = c["max"]
		}
		if bound == nil || c["name"] == "success-against-baseline" {
			continue
		}
		text := fmt.Sprint(c["name"])
		if p := c["percentile"]; p != nil {
			text += fmt.Sprintf(" p%v", p)
		}
		words = append(words, fmt.Sprintf("%s %v", text, bound))
	}
	return words
}

// TestReportedDrift shows that drift which only reports does not roll back, not even while the spec cannot be carried out.
func TestReportedDrift(t *testing.T) {
	for reason, tc := range map[string]struct {
		lifecycle string
		invalid   bool
		want      v1alpha1.RolloutPhase
	}{
		"drift implies a rollback":                         {"soak: 1m, drift: {}", false, v1alpha1.RolloutRollingBack},
		"unless it only reports":                           {"soak: 1m, drift: {}, rollbackOnDrift: false", false, v1alpha1.RolloutStepping},
		"also while another mistake is in the spec":        {"soak: 1m, drift: {}, rollbackOnDrift: false", true, v1alpha1.RolloutStepping},
		"where a revision that has drifted is rolled back": {"soak: 1m, drift: {}", true, v1alpha1.RolloutRollingBack},
	} {
		spec := "{image: %s, replicas: 4, metrics: {queries: [{name: outputs, query: q}]}, lifecycle: {" + tc.lifecycle + "}}"
		w := serving(t, fmt.Sprintf(spec, "x"))
		w.settle()
		w.edit(fmt.Sprintf(spec, "z"))
		for range 4 {
			w.settle()
		}
		w.later(10 * time.Second)
		w.judge("PPP")
		w.change(names.Analysis, func(o composetest.Object) {
			for _, v := range compose.List(o, "status", "atProvider", "canary", "checks") {
				if c := v.(map[string]any); c["name"] == "drift" {
					c["verdicts"] = "FFF"
				}
			}
		})
		if tc.invalid {
			w.edit(strings.Replace(fmt.Sprintf(spec, "z"), "replicas: 4", "replicas: 4, port: 0", 1))
		}
		w.compose(w.plan())
		l, _ := rollout.ParseLedger(ledgerText(w.request.Observed[names.Service]))
		if l.Standing() != tc.want {
			t.Errorf("%s: want %s, got %s", reason, tc.want, l.Standing())
		}
	}
}
