// SPDX-License-Identifier: Apache-2.0

package observed_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/observed"
)

func object(tb testing.TB, text string) compose.Object {
	tb.Helper()
	if text == "" {
		return nil
	}
	var o composetest.Object
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		tb.Fatal(err)
	}
	return o
}

func TestHTTPRoute(t *testing.T) {
	const spec = "{metadata: {generation: 2, namespace: shop}, spec: {parentRefs: [{name: shared}], " +
		"rules: [{backendRefs: [{name: b, weight: 100}]}, {backendRefs: [{name: a, weight: 80}, {name: b, weight: 20}]}]}"
	shares := map[string]int64{"a": 80, "b": 20}
	chosen := map[string]bool{"b": true}
	cases := map[string]struct {
		reason string
		route  string
		want   observed.HTTPRoute
	}{
		"Absent": {"what does not exist is the zero value", "", observed.HTTPRoute{}},
		"Unheard": {
			"no controller has reported anything", spec + "}",
			observed.HTTPRoute{Exists: true, Current: true, Weights: shares, Chosen: chosen},
		},
		"Served": {
			"the Gateway has accepted the latest spec",
			spec + `, status: {parents: [{parentRef: {name: shared}, conditions: [{type: Accepted, status: "True", observedGeneration: 2}]}]}}`,
			observed.HTTPRoute{Exists: true, Known: true, Current: true, Served: true, Weights: shares, Chosen: chosen},
		},
		"Refused": {
			"an earlier spec was refused",
			spec + `, status: {parents: [{parentRef: {name: shared, namespace: shop}, conditions: [{type: Accepted, status: "False", reason: Denied, message: why, observedGeneration: 1}]}]}}`,
			observed.HTTPRoute{Exists: true, Known: true, Reason: "Denied", Message: "why", Weights: shares, Chosen: chosen},
		},
		"AnotherParent": {
			"a Gateway that the route was for before does not count",
			spec + `, status: {parents: [{parentRef: {name: other}, conditions: [{type: Accepted, status: "True", observedGeneration: 2}]}]}}`,
			observed.HTTPRoute{Exists: true, Current: true, Weights: shares, Chosen: chosen},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, observed.NewHTTPRoute(object(t, tc.route))); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAnalysis(t *testing.T) {
	cases := map[string]struct {
		reason   string
		analysis string
		checks   []observev1alpha1.CanaryCheck
		findings []observev1alpha1.Finding
		epoch    int64
	}{
		"Absent": {reason: "what does not exist reports nothing"},
		"OfTheEpoch": {
			reason:   "evidence of the epoch that is asked about",
			analysis: `{status: {atProvider: {canary: {epoch: 7, checks: [{name: success, verdicts: PF, samples: 3, value: 0.5}]}}}}`,
			checks:   []observev1alpha1.CanaryCheck{{Name: "success", Verdicts: "PF", Samples: new(int64(3)), Value: new(0.5)}}, epoch: 7,
		},
		"OfAnotherEpoch": {
			reason:   "evidence of another epoch does not count",
			analysis: `{spec: {forProvider: {metrics: {canary: {epoch: 8}}}}, status: {atProvider: {canary: {epoch: 6, checks: [{name: success}]}}}}`, epoch: 8,
		},
		"Unreadable": {
			reason:   "what cannot be read is like what is absent, and hides nothing else",
			analysis: `{status: {atProvider: {scaling: 5, findings: [{reason: CrashLooping, slot: a}], canary: {epoch: 7, checks: 1}}}}`,
			findings: []observev1alpha1.Finding{{Reason: "CrashLooping", Slot: "a"}}, epoch: 7,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := observed.NewAnalysis(object(t, tc.analysis))
			if diff := cmp.Diff(tc.checks, a.Canary(7).Checks); diff != "" {
				t.Errorf("%s: checks: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.findings, a.Findings()); diff != "" {
				t.Errorf("%s: findings: -want, +got:\n%s", tc.reason, diff)
			}
			if got := a.Epoch(); got != tc.epoch {
				t.Errorf("%s: want epoch %d, got %d", tc.reason, tc.epoch, got)
			}
			if diff := cmp.Diff(observev1alpha1.ScalingObservation{}, a.Scaling()); diff != "" {
				t.Errorf("%s: scaling: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNeeds of the load, as an autoscaler reports it.
func TestNeeds(t *testing.T) {
	const (
		external = `{spec: {minReplicas: 9, metrics: [
			{type: External, external: {metric: {name: capstan_inflight}, target: {type: AverageValue, averageValue: "2"}}},
			{type: External, external: {metric: {name: capstan_latency_p95_ms}, target: {type: Value, value: "50"}}}]},
			status: {currentReplicas: 4, desiredReplicas: 9, currentMetrics: [
			{type: External, external: {metric: {name: capstan_inflight}, current: {averageValue: 2500m}}},
			{type: External, external: {metric: {name: capstan_latency_p95_ms}, current: {value: "500"}}}]}}`
		cpu = `{spec: {metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}]},
			status: {currentReplicas: 4, currentMetrics: [{type: Resource, resource: {name: cpu, current: {averageUtilization: 105, averageValue: 9m}}}]}}`
		failed = `{spec: {metrics: [{type: External, external: {metric: {name: capstan_inflight}, target: {type: AverageValue, averageValue: "2"}}}]},
			status: {currentReplicas: 4, currentMetrics: [{type: ""}]}}`
	)
	const (
		byLoad = `{spec: {forProvider: {reportNeeds: true, autoscaler: {metrics: [{type: External, external: {metric: {name: capstan_inflight}, target: {type: AverageValue, averageValue: "2"}}}]}}},
			status: {atProvider: {needs: 6.5}}}`
		byCPU = `{spec: {forProvider: {reportNeeds: true, autoscaler: {metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}]}}},
			status: {atProvider: {needs: 6}}}`
	)
	running := func(size, total, available int64) observed.Deployment {
		return observed.Deployment{Exists: true, Size: size, Total: total, Available: available}
	}
	cases := map[string]struct {
		reason          string
		managed, direct string
		deployment      observed.Deployment
		want            float64
	}{
		"Absent":    {"nothing is known without one", "", "", running(4, 4, 4), 0},
		"New":       {"nor by one that has not looked", "", "{spec: {minReplicas: 2}}", running(4, 4, 4), 0},
		"Load":      {"a mean over all replicas, whatever the bounds and the latency", "", external, running(4, 4, 4), 5},
		"Unready":   {"those that are not ready have no load, and count", "", external, running(4, 4, 1), 5},
		"Grown":     {"it looked before there were more", "", external, running(9, 9, 9), 5},
		"Refused":   {"those that were never made do not count", "", external, running(4, 2, 2), 2.5},
		"CPU":       {"a mean over those that are ready", "", cpu, running(4, 4, 4), 6},
		"CPUStarts": {"how many were ready is unknown", "", cpu, running(4, 4, 3), 0},
		"Failed":    {"it got no metric", "", failed, running(4, 4, 4), 0},

		"Unreported":       {"the provider has not reported any load", "{spec: {forProvider: {reportNeeds: true}}}", "", running(4, 4, 4), 0},
		"Reported":         {"the provider reports it", byLoad, "", running(4, 4, 4), 6.5},
		"ReportedUnready":  {"those that are not ready have no load, and count", byLoad, "", running(4, 4, 1), 6.5},
		"ReportedRefused":  {"the provider counts those that were never made", byLoad, "", running(4, 2, 2), 3.25},
		"ReportedCPU":      {"a mean over those that are ready", byCPU, "", running(4, 4, 4), 6},
		"ReportedStarting": {"how many were ready is unknown", byCPU, "", running(4, 4, 3), 0},
		"HandedOver":       {"the provider keeps it, whatever is still composed", byLoad, external, running(4, 4, 4), 6.5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := observed.NewAutoscaler(object(t, tc.managed), object(t, tc.direct)).Needs(tc.deployment)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
