// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
)

// gpuCanary is the spec of an example.
func gpuCanary(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../examples/algorithm/gpu-canary/xr.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, spec, _ := strings.Cut(string(raw), "spec:\n")
	return spec
}

// canaryChecks that the composed Analysis is asked about the candidate, in words.
func canaryChecks(w *world) []string {
	w.t.Helper()
	var words []string
	for _, v := range compose.List(w.request.Observed[names.Analysis].Map(), "spec", "forProvider", "metrics", "canary", "checks") {
		c := v.(map[string]any)
		words = append(words, strings.TrimSpace(compose.Text(c, "name")+" "+compose.Text(c, "query")))
	}
	return words
}

// TestGPUCanary rolls a second revision of an example out: GPUs without a size of CPU and memory, a canary without a Gateway, a
// latency that only scaling names, and drift without a query.
func TestGPUCanary(t *testing.T) {
	observation := func(distribution string) observev1alpha1.AnalysisObservation {
		return observev1alpha1.AnalysisObservation{
			Server: "Algorithm", Distribution: distribution,
			Scaling: &observev1alpha1.ScalingObservation{Signal: observev1alpha1.SignalInFlight, PerReplica: new(4.0)},
			Metrics: []observev1alpha1.MetricObservation{
				{Slot: names.SlotA, Name: "latency", Verdict: observev1alpha1.VerdictPass, Value: new(40.0)},
			},
		}
	}
	cases := map[string]struct {
		reason       string
		distribution string
		checks       []string
		available    xpv2.ConditionReason
	}{
		"Conventional": {
			"what the pods are known to have is compared", "algorithm_prediction_score_bucket",
			[]string{"success", "success-against-baseline", "latency", "drift increase(algorithm_prediction_score_bucket[$window])"},
			v1alpha1.ReasonMeasured,
		},
		"None": {
			"without a histogram the rollout goes on, and a condition says so", "",
			[]string{"success", "success-against-baseline", "latency"},
			v1alpha1.ReasonDriftNotMeasured,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := gpuCanary(t)
			w := serving(t, spec)
			w.measure(observation(tc.distribution))
			if got := w.plan(); condition(got, v1alpha1.TypeAccepted).Status != "True" {
				t.Fatalf("it should be accepted: %+v", condition(got, v1alpha1.TypeAccepted))
			}
			if diff := cmp.Diff(tc.available, condition(w.plan(), v1alpha1.TypeMetricsAvailable).Reason); diff != "" {
				t.Errorf("%s: reason of MetricsAvailable: -want, +got:\n%s", tc.reason, diff)
			}
			w.edit(strings.Replace(spec, "2.1.4", "2.1.5", 1))
			for range 4 {
				w.settle()
			}
			st := rolloutOf(t, w.plan())
			if got := string(st.Phase) + "/" + st.Reason; got != "Stepping/Soaking" || st.Weight != 20 || st.Share == nil || *st.Share != 25 {
				t.Errorf("one pod beside three should be tried, got %s with %d %%, share %v", got, st.Weight, st.Share)
			}
			if want := "(25 %"; !strings.Contains(st.Message, want) {
				t.Errorf("the true share should be in the message, got %q", st.Message)
			}
			if diff := cmp.Diff(tc.checks, canaryChecks(w)); diff != "" {
				t.Errorf("%s: checks of the candidate: -want, +got:\n%s", tc.reason, diff)
			}
			w.later(2 * time.Minute)
			w.judge("PPP")
			for range 4 {
				w.settle()
			}
			if st := rolloutOf(t, w.plan()); st.Phase != v1alpha1.RolloutBaking {
				t.Errorf("it should be promoted, got %s: %s", st.Phase, st.Message)
			}
		})
	}
}

// TestLatencyGate shows which latency a candidate has to reach.
func TestLatencyGate(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"Scaling":   {"what the autoscaler keeps a candidate keeps as well", "scaling: {maxReplicas: 9, targetLatencyMs: 50}, objectives: {latencyPercentile: 99}, lifecycle: {}", "p99 max 50"},
		"Objective": {"unless the objective is another", "scaling: {maxReplicas: 9, targetLatencyMs: 50}, objectives: {latencyMs: 80}, lifecycle: {}", "p95 max 80"},
		"None":      {"without a target there is none", "scaling: {maxReplicas: 9}, lifecycle: {}", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "{image: x, "+tc.spec+"}")
			_, s, problems := read(w.request)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got := ""
			if o := s.Objectives; o.LatencyMs != nil {
				got = "p" + number(float64(o.LatencyPercentile)) + " max " + number(float64(*o.LatencyMs))
			}
			if got != tc.want {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestGPUScaling shows that replicas with a GPU keep their number until their load is known.
func TestGPUScaling(t *testing.T) {
	const gpu = "{image: x, resources: {gpu: nvidia.com/gpu}, scaling: {maxReplicas: 9%s}}"
	byCPU := observev1alpha1.ScalingObservation{Signal: observev1alpha1.SignalCPU, Message: "no series of a known name"}
	inFlight := observev1alpha1.ScalingObservation{Signal: observev1alpha1.SignalInFlight, PerReplica: new(4.0)}
	cases := map[string]struct {
		reason  string
		scaling string
		learned *observev1alpha1.ScalingObservation
		follows []string
		told    xpv2.ConditionReason
	}{
		"Plain":   {"nothing is named", "", nil, nil, v1alpha1.ReasonNoSignal},
		"CPU":     {"a person may know better", ", signal: CPU", nil, []string{"Resource"}, ""},
		"Unknown": {"a server that reports no load", ", targetLatencyMs: 50", &byCPU, nil, v1alpha1.ReasonNoSignal},
		"Known":   {"a server that does", ", targetLatencyMs: 50", &inFlight, []string{"External", "External"}, v1alpha1.ReasonMeasured},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, strings.Replace(gpu, "%s", tc.scaling, 1))
			if tc.learned != nil {
				w.learn(observev1alpha1.AnalysisObservation{Scaling: tc.learned, Metrics: []observev1alpha1.MetricObservation{
					{Slot: names.SlotA, Name: "latency", Verdict: observev1alpha1.VerdictPass, Value: new(40.0)},
				}})
			}
			p := w.plan()
			var follows []string
			for _, m := range compose.List(object(t, p, names.ComposedAutoscaler(names.SlotA)), "spec", "metrics") {
				follows = append(follows, compose.Text(m.(map[string]any), "type"))
			}
			if !slices.Equal(tc.follows, follows) {
				t.Errorf("%s: the autoscaler should follow %v, got %v", tc.reason, tc.follows, follows)
			}
			if got := condition(p, v1alpha1.TypeMetricsAvailable).Reason; got != tc.told {
				t.Errorf("%s: reason of MetricsAvailable: want %q, got %q", tc.reason, tc.told, got)
			}
		})
	}
}

// TestGPUAutoscalerOfBefore shows that an autoscaler that followed the CPU of replicas with a GPU ends.
func TestGPUAutoscalerOfBefore(t *testing.T) {
	w := serving(t, "{image: x, resources: {gpu: nvidia.com/gpu}, scaling: {maxReplicas: 9, signal: CPU}}")
	w.scale(5)
	w.run(nil)
	w.edit("{image: x, resources: {gpu: nvidia.com/gpu}, scaling: {maxReplicas: 9}}")
	p := w.plan()
	if o := object(t, p, names.ComposedAutoscaler(names.SlotA)); o != nil {
		t.Errorf("nothing should follow the CPU of a GPU, got %v", o)
	}
	if got := scene(t, p); got != "a=x*auto callers=a" && got != "a=x*5 callers=a" {
		t.Errorf("the number of replicas should stay, got %s", got)
	}
}
