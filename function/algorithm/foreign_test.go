// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// TestForeignSeries keeps what is recorded as it is when somebody else wrote the status of the Analysis: Prometheus evaluates
// expressions with the rights to read the series of all namespaces.
func TestForeignSeries(t *testing.T) {
	const spec = "{image: x:1, metrics: {queries: [{name: latency, query: l}, {name: load, query: q}]}, scaling: {minReplicas: 1, maxReplicas: 4, signal: Query, perReplica: 5}, " +
		"objectives: {successRatio: 0.999, latencyMs: 50}, slo: {}}"
	slot := func(slot, series string) observev1alpha1.AnalysisObservation {
		o := spentTo(50)
		o.Scaling = &observev1alpha1.ScalingObservation{
			Signal:      observev1alpha1.SignalQuery,
			Expressions: []observev1alpha1.SlotExpression{{Slot: slot, Series: series, Expression: "sum(payments_total)"}},
		}
		return o
	}
	slo := slot(names.SlotA, "capstan:custom")
	slo.SLO.Expressions[1].Series = "capstan:requests_per_second"
	latency := slot(names.SlotA, "capstan:custom")
	latency.Latency = []observev1alpha1.SlotExpression{{Slot: names.SlotA, Series: "capstan:latency_p95_ms", Expression: "1"}}
	for name, tc := range map[string]struct {
		reason  string
		told    observev1alpha1.AnalysisObservation
		foreign string
	}{
		"Custom":        {"the query of the spec is recorded", slot(names.SlotB, "capstan:custom"), ""},
		"Own":           {"and so are queries in place of the platform's", slot(names.SlotB, "capstan:own_latency_ms"), ""},
		"Leak":          {"a series of any other name is not", slot(names.SlotA, "capstan:leak"), "capstan:leak"},
		"Platform":      {"nor one that the platform's rules record of all Algorithms", slot(names.SlotA, "capstan:inflight"), "capstan:inflight"},
		"NoSeries":      {"nor one without a name", slot(names.SlotA, " "), " "},
		"Slot":          {"nor one of a slot that there is not", slot("c", "capstan:custom"), "capstan:custom"},
		"Latency":       {"nor is the latency anything else", latency, "capstan:latency_p95_ms"},
		"Objective":     {"the objective is as strict", slo, "capstan:requests_per_second"},
		"OwnAsRequests": {"and so is the rest", slot(names.SlotA, "capstan:own_requests_per_second"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := serving(t, spec)
			w.measure(slot(names.SlotA, "capstan:custom"))
			p := w.plan()
			before := object(t, p, names.Rules)
			w.compose(p)
			w.measure(tc.told)
			after := object(t, w.plan(), names.Rules)
			c := condition(w.plan(), v1alpha1.TypeMetricsAvailable)
			said := c.Reason == v1alpha1.ReasonQueryFailed && strings.Contains(c.Message, `the series "`+tc.foreign+`"`)
			if said != (tc.foreign != "") {
				t.Errorf("%s: MetricsAvailable: got %s %q", tc.reason, c.Reason, c.Message)
			}
			if same := cmp.Diff(before["spec"], after["spec"]) == ""; tc.foreign != "" && !same {
				t.Errorf("%s: the rules change: %v", tc.reason, after)
			}
		})
	}
}
