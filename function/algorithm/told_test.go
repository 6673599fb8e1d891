// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// measure sets what the observed Analysis tells.
func (w *world) measure(observation observev1alpha1.AnalysisObservation) {
	w.change(names.Analysis, func(o composetest.Object) {
		raw, _ := json.Marshal(map[string]any{"atProvider": observation})
		var status map[string]any
		_ = json.Unmarshal(raw, &status)
		o["status"] = status
	})
	w.try()
}

// parents of the observed route say so.
func (w *world) parents(conditionType, status, reason, message string) {
	w.change(names.Route, func(o composetest.Object) {
		o["status"] = map[string]any{"parents": []any{map[string]any{"conditions": []any{map[string]any{
			"type": conditionType, "status": status, "reason": reason, "message": message,
			"observedGeneration": compose.Map(o, "metadata")["generation"],
		}}}}}
	})
}

// scaler sets the condition ScalingActive of the observed autoscaler.
func (w *world) scaler(status, reason string, since time.Time) {
	w.change(names.ComposedAutoscaler(names.SlotA), func(o composetest.Object) {
		o["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "ScalingActive", "status": status, "reason": reason, "message": "no metrics returned",
			"lastTransitionTime": since.Format(time.RFC3339),
		}}}
	})
}

func TestParticularConditions(t *testing.T) {
	const (
		routed  = "{image: x:1, route: {host: h.example.org, gateway: {name: shared, namespace: gateway}}}"
		checked = "{image: x:1, objectives: {successRatio: 0.99}, metrics: {queries: [{name: queue, query: q, max: 3}]}}"
		scaled  = "{image: x:1, scaling: {maxReplicas: 4, targetLatencyMs: 50}}"
		queried = "{image: x:1, scaling: {maxReplicas: 4, signal: Query, perReplica: 3}, metrics: {queries: [{name: load, query: q}]}}"
		byCPU   = "{image: x:1, scaling: {maxReplicas: 4}}"
	)
	value := func(v float64) *float64 { return &v }
	metrics := func(ms ...observev1alpha1.MetricObservation) observev1alpha1.AnalysisObservation {
		for i := range ms {
			ms[i].Slot = names.SlotA
		}
		return observev1alpha1.AnalysisObservation{
			Metrics: ms, Scaling: &observev1alpha1.ScalingObservation{Signal: observev1alpha1.SignalInFlight, PerReplica: value(4)},
		}
	}
	pass := func(name string) observev1alpha1.MetricObservation {
		return observev1alpha1.MetricObservation{Name: name, Verdict: observev1alpha1.VerdictPass, Value: value(1)}
	}
	cases := map[string]struct {
		reason string
		spec   string
		do     func(w *world)
		of     xpv2.ConditionType
		status string
		why    xpv2.ConditionReason
		words  string
	}{
		"Digest":     {"a digest never moves", "{image: 'r/x@sha256:00'}", nil, v1alpha1.TypeImagePinned, "True", v1alpha1.ReasonByDigest, ""},
		"Tag":        {"a version is taken to stay", "{image: 'r:5000/x:1.2'}", nil, v1alpha1.TypeImagePinned, "True", v1alpha1.ReasonByTag, ""},
		"Untagged":   {"no tag is latest, and a port is no tag", "{image: 'r:5000/x'}", nil, v1alpha1.TypeImagePinned, "False", v1alpha1.ReasonMutableTag, "spec.image"},
		"Latest":     {"latest moves", "{image: 'x:latest'}", nil, v1alpha1.TypeImagePinned, "False", v1alpha1.ReasonMutableTag, "digest"},
		"NoRoute":    {"without a route nothing is told of one", "{image: x:1}", nil, v1alpha1.TypeRouteAccepted, "", "", ""},
		"Pending":    {"nobody took the route", routed, nil, v1alpha1.TypeRouteAccepted, "False", v1alpha1.ReasonRoutePending, `Gateway "shared" of namespace "gateway"`},
		"Accepted":   {"a Gateway took it", routed, func(w *world) { w.accept() }, v1alpha1.TypeRouteAccepted, "True", v1alpha1.ReasonRouteAccepted, ""},
		"NotAllowed": {"a Gateway refused it", routed, func(w *world) { w.parents("Accepted", "False", "NotAllowedByListeners", "no") }, v1alpha1.TypeRouteAccepted, "False", v1alpha1.ReasonRouteRefused, "NotAllowedByListeners: no"},
		"Backends":   {"a Gateway does not find what it leads to", routed, func(w *world) { w.parents("ResolvedRefs", "False", "BackendNotFound", "no") }, v1alpha1.TypeRouteAccepted, "False", v1alpha1.ReasonRouteRefused, "BackendNotFound"},
		"NoGatewayAPI": {"the cluster has no Gateway API", routed, func(w *world) {
			w.request.Kinds[RouteGVK] = compose.Unavailable
			delete(w.request.Observed, names.Route)
		}, v1alpha1.TypeRouteAccepted, "False", v1alpha1.ReasonGatewayAPIMissing, "spec.route"},
		"NotMeasured": {"nobody asked for metrics", "{image: x:1}", nil, v1alpha1.TypeMetricsAvailable, "", "", ""},
		"Measuring":   {"Prometheus has not been queried yet", checked, nil, v1alpha1.TypeMetricsAvailable, "Unknown", v1alpha1.ReasonMeasuring, ""},
		"Measured":    {"all is known", checked, func(w *world) { w.measure(metrics(pass("success"), pass("queue"))) }, v1alpha1.TypeMetricsAvailable, "True", v1alpha1.ReasonMeasured, ""},
		"NoProvider":  {"nobody asks", checked, func(w *world) { withKind(w, compose.Unavailable); delete(w.request.Observed, names.Analysis) }, v1alpha1.TypeMetricsAvailable, "False", v1alpha1.ReasonProviderMissing, "provider-capstan"},
		"QueryFailed": {"one query is wrong", checked, func(w *world) {
			w.measure(metrics(pass("success"), observev1alpha1.MetricObservation{Name: "queue", Verdict: "Error", Message: "no PromQL"}))
		}, v1alpha1.TypeMetricsAvailable, "False", v1alpha1.ReasonQueryFailed, "queue: no PromQL"},
		"NoData": {"one metric is not there", checked, func(w *world) {
			w.measure(metrics(pass("success"), observev1alpha1.MetricObservation{Name: "queue", Verdict: "NoData", Message: "no series"}))
		}, v1alpha1.TypeMetricsAvailable, "False", v1alpha1.ReasonNoData, "queue: no series"},
		"NoDataOfLoad": {"what is only shown may be missing", checked, func(w *world) {
			w.measure(metrics(pass("success"), observev1alpha1.MetricObservation{Name: "in-flight", Verdict: "NoData"}))
		}, v1alpha1.TypeMetricsAvailable, "True", v1alpha1.ReasonMeasured, ""},
		"LoadGone": {"the load of pods is not there", scaled, func(w *world) {
			o := metrics(pass("latency"))
			o.Scaling = &observev1alpha1.ScalingObservation{Signal: "InFlight", PerReplica: value(2), Message: "no pod is scraped"}
			w.learn(o)
		}, v1alpha1.TypeMetricsAvailable, "False", v1alpha1.ReasonNoData, "spec.scaling: no pod is scraped"},
		"WrongLoad": {"the load is a query that is wrong", queried, func(w *world) {
			o := metrics()
			o.Scaling = &observev1alpha1.ScalingObservation{Signal: "Query", Message: "no PromQL"}
			w.learn(o)
		}, v1alpha1.TypeMetricsAvailable, "False", v1alpha1.ReasonQueryFailed, "spec.scaling: no PromQL"},
		"NotScaling": {"the autoscaler gets nothing", scaled, func(w *world) {
			w.learn(metrics(pass("latency")))
			w.scaler("False", "FailedGetExternalMetric", now.Add(-time.Hour))
		}, v1alpha1.TypeMetricsAvailable, "False", v1alpha1.ReasonNotScaling, "as it is"},
		"NotScalingYet": {"a new autoscaler knows nothing at first", scaled, func(w *world) {
			w.learn(metrics(pass("latency")))
			w.scaler("False", "FailedGetExternalMetric", now.Add(-time.Second))
		}, v1alpha1.TypeMetricsAvailable, "True", v1alpha1.ReasonMeasured, ""},
		"Disabled": {"at zero an autoscaler is switched off", scaled, func(w *world) {
			w.learn(metrics(pass("latency")))
			w.scaler("False", "ScalingDisabled", now.Add(-time.Hour))
		}, v1alpha1.TypeMetricsAvailable, "True", v1alpha1.ReasonMeasured, ""},
		"NoOperator":   {"nobody records the query", queried, func(w *world) { w.request.Kinds[PrometheusRuleGVK] = compose.Unavailable }, v1alpha1.TypeMetricsAvailable, "False", v1alpha1.ReasonOperatorMissing, "spec.metrics.queries"},
		"NoCPUMetrics": {"an autoscaler by CPU has no metrics", byCPU, func(w *world) { w.scaler("False", "FailedGetResourceMetric", now.Add(-time.Hour)) }, v1alpha1.TypeMetricsAvailable, "False", v1alpha1.ReasonNotScaling, "metrics server"},
		"CPUMetrics":   {"and is not told of while it has", byCPU, func(w *world) { w.scaler("True", "ValidMetricFound", now) }, v1alpha1.TypeMetricsAvailable, "", "", ""},
		"Within":       {"every target is met", checked, func(w *world) { w.measure(metrics(pass("success"), pass("queue"))) }, v1alpha1.TypeWithinTargets, "True", v1alpha1.ReasonTargetsMet, ""},
		"Insufficient": {"too few requests", checked, func(w *world) {
			w.measure(metrics(pass("queue"), observev1alpha1.MetricObservation{Name: "success", Verdict: "Insufficient"}))
		}, v1alpha1.TypeWithinTargets, "Unknown", v1alpha1.ReasonTooLittleData, ""},
		"Missed": {"a target is missed, with value and target", checked, func(w *world) {
			w.measure(metrics(pass("success"), observev1alpha1.MetricObservation{Name: "queue", Verdict: "Fail", Value: value(7)}))
		}, v1alpha1.TypeWithinTargets, "False", v1alpha1.ReasonTargetMissed, "queue: 7, must be at most 3"},
		"OtherSlot": {"what another slot's pods do is another matter", checked, func(w *world) {
			w.measure(observev1alpha1.AnalysisObservation{Metrics: []observev1alpha1.MetricObservation{{Slot: names.SlotB, Name: "queue", Verdict: "Fail", Value: value(7)}}})
		}, v1alpha1.TypeWithinTargets, "Unknown", v1alpha1.ReasonTooLittleData, ""},
		"LoadIndependent": {"more replicas would not help", scaled, func(w *world) {
			o := metrics(observev1alpha1.MetricObservation{Name: "latency", Verdict: "Fail", Value: value(80)})
			o.Scaling.LoadIndependent = true
			w.learn(o)
		}, v1alpha1.TypeWithinTargets, "False", v1alpha1.ReasonTargetMissed, "more of them would not help"},
		"NoTargets": {"nothing was asked", "{image: x:1, metrics: {}}", nil, v1alpha1.TypeWithinTargets, "", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, tc.spec)
			if tc.do != nil {
				tc.do(w)
			}
			c := condition(w.plan(), tc.of)
			if string(c.Status) != tc.status || c.Reason != tc.why || !strings.Contains(c.Message, tc.words) {
				t.Errorf("%s\n%s: got %s %s %q, want %s %s with %q", tc.reason, tc.of, c.Status, c.Reason, c.Message, tc.status, tc.why, tc.words)
			}
		})
	}
}

// learn what the Analysis tells, and have the autoscaler that follows from it.
func (w *world) learn(o observev1alpha1.AnalysisObservation) {
	w.measure(o)
	w.compose(w.plan())
	w.measure(o)
}

func TestAutoscaler(t *testing.T) {
	const spec = "{image: x, scaling: {minReplicas: 2, maxReplicas: 9, targetLatencyMs: 50}, objectives: {latencyPercentile: 99}}"
	metrics := func(w *world) string {
		o := object(t, w.plan(), names.ComposedAutoscaler(names.SlotA))
		if o == nil {
			return "none"
		}
		raw, err := json.Marshal(compose.List(o, "spec", "metrics"))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	const (
		latency  = `{"external":{"metric":{"name":"capstan_latency_p99_ms","selector":{"matchLabels":{"algorithm":"reco","slot":"a"}}},"target":{"type":"Value","value":"50"}},"type":"External"}`
		guard    = `{"external":{"metric":{"name":"capstan_latency_guard_ms","selector":{"matchLabels":{"algorithm":"reco","slot":"a"}}},"target":{"type":"Value","value":"50"}},"type":"External"}`
		inFlight = `{"external":{"metric":{"name":"capstan_inflight","selector":{"matchLabels":{"algorithm":"reco","slot":"a"}}},"target":{"averageValue":"6400m","type":"AverageValue"}},"type":"External"}`
		custom   = `{"external":{"metric":{"name":"capstan_custom","selector":{"matchLabels":{"algorithm":"reco","slot":"a"}}},"target":{"averageValue":"3","type":"AverageValue"}},"type":"External"}`
		cpu      = `{"resource":{"name":"cpu","target":{"averageUtilization":70,"type":"Utilization"}},"type":"Resource"}`
	)
	learned := func(signal observev1alpha1.Signal, per float64, independent bool) observev1alpha1.AnalysisObservation {
		return observev1alpha1.AnalysisObservation{Scaling: &observev1alpha1.ScalingObservation{Signal: signal, PerReplica: &per, LoadIndependent: independent}}
	}
	cases := map[string]struct {
		reason string
		world  func() *world
		want   string
	}{
		"NotKnown": {"what the load is told by is not known yet: the size stays", func() *world { return serving(t, spec) }, "none"},
		"Learned": {"the load, with the latency as guard", func() *world {
			w := serving(t, spec)
			w.measure(learned(observev1alpha1.SignalInFlight, 6.4, false))
			return w
		}, "[" + inFlight + "," + guard + "]"},
		"NotRecorded": {"without the operator the latency itself is the guard", func() *world {
			w := newWorld(t, spec)
			w.request.Kinds[PrometheusRuleGVK] = compose.Unavailable
			w.compose(w.plan())
			w.measure(learned(observev1alpha1.SignalInFlight, 6.4, false))
			return w
		}, "[" + inFlight + "," + latency + "]"},
		"LoadIndependent": {"a latency that the load does not cause is no guard", func() *world {
			w := serving(t, spec)
			w.measure(learned(observev1alpha1.SignalInFlight, 6.4, true))
			return w
		}, "[" + inFlight + "]"},
		"Untold": {"a server that tells no load is followed by its CPU", func() *world {
			w := serving(t, spec)
			w.measure(observev1alpha1.AnalysisObservation{Scaling: &observev1alpha1.ScalingObservation{Signal: observev1alpha1.SignalCPU}})
			return w
		}, "[" + cpu + "," + guard + "]"},
		"Forgotten": {"what scales goes on while nothing is known any more", func() *world {
			w := serving(t, spec)
			w.learn(learned(observev1alpha1.SignalInFlight, 6.4, false))
			w.measure(observev1alpha1.AnalysisObservation{})
			return w
		}, "[" + inFlight + "," + guard + "]"},
		"Query": {"a load of one's own", func() *world {
			return serving(t, "{image: x, scaling: {maxReplicas: 9, signal: Query, perReplica: 3}, metrics: {queries: [{name: load, query: q}]}}")
		}, "[" + custom + "]"},
		"CPU": {"as asked", func() *world { return serving(t, "{image: x, scaling: {maxReplicas: 9}}") }, "[" + cpu + "]"},
		"NoProvider": {"nobody learns, and the CPU is always there", func() *world {
			w := newWorld(t, spec)
			return withKind(w, compose.Unavailable)
		}, "[" + cpu + "," + latency + "]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := metrics(tc.world()); got != tc.want {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestRegistry resolves a version before there is a revision, and goes on with it while the registry is away.
func TestRegistry(t *testing.T) {
	const spec = "{image: x:1, model: {uri: models:/m@champion, liveAlias: live}}"
	w := newWorld(t, spec)
	says := func(version, synced string) {
		w.change(names.ModelVersionPrefix+hashOf("m"), func(o composetest.Object) {
			o["status"] = map[string]any{
				"conditions": []any{
					map[string]any{"type": "Synced", "status": synced, "message": "the registry is away", "observedGeneration": compose.Map(o, "metadata")["generation"]},
					map[string]any{"type": "Ready", "status": "True", "observedGeneration": compose.Map(o, "metadata")["generation"]},
				},
				"atProvider": map[string]any{"model": "m", "version": version, "status": "READY", "artifactUri": "s3://bucket/m/" + version},
			}
		})
	}
	expect := func(reason, want string, resolved, updated xpv2.ConditionReason) {
		t.Helper()
		p := w.plan()
		got := scene(t, p)
		if a := object(t, p, names.ModelAliasPrefix+hashOf("m", "live")); a != nil {
			got += " live=" + compose.Text(a, "spec", "forProvider", "version")
		}
		r, u := condition(p, v1alpha1.TypeModelResolved).Reason, condition(p, v1alpha1.TypeUpdated).Reason
		if got != want || r != resolved || u != updated {
			t.Fatalf("%s: got %s (%s, %s), want %s (%s, %s)", reason, got, r, u, want, resolved, updated)
		}
	}
	next := func() {
		p := w.plan()
		w.compose(p)
		w.told(p)
		w.update()
	}
	expect("nothing runs before the version is known", "callers=a", v1alpha1.ReasonResolving, v1alpha1.ReasonAwaitingModel)
	w.compose(w.plan())
	says("7", "True")
	expect("the version is in the status first", "callers=a", v1alpha1.ReasonResolved, v1alpha1.ReasonAwaitingModel)
	w.told(w.plan())
	expect("and then in a revision", "a=x:1*1 callers=a", v1alpha1.ReasonResolved, v1alpha1.ReasonPreparing)
	next()
	says("7", "True")
	expect("the alias follows what callers reach", "a=x:1*1 callers=a live=7", v1alpha1.ReasonResolved, v1alpha1.ReasonLive)
	d := object(t, w.plan(), names.ModelAliasPrefix+hashOf("m", "live"))
	if e := compose.Map(d, "spec", "forProvider", "evidence"); e["algorithm"] != "shop/reco" || e["image"] != "x:1" {
		t.Errorf("evidence: %v", e)
	}
	says("7", "False")
	w.told(w.plan())
	w.told(w.plan())
	w.edit(strings.Replace(spec, "x:1", "x:2", 1))
	expect("an image needs no registry", "a=x:1*1 b=x:2*1 callers=a live=7", v1alpha1.ReasonRegistryFailed, v1alpha1.ReasonPreparing)
	w.edit(strings.Replace(spec, "champion", "other", 1))
	expect("another alias does", "a=x:1*1 callers=a live=7", v1alpha1.ReasonResolving, v1alpha1.ReasonAwaitingModel)
	w.edit(spec)
	w.compose(w.plan())
	says("8", "True")

	// Conditions first, then the rest of the status (see compose.Settle).
	for range 3 {
		w.told(w.plan())
	}
	expect("when the alias moves, a revision follows, and the live alias stays", "a=x:1*1 b=x:1*1 callers=a live=7", v1alpha1.ReasonResolved, v1alpha1.ReasonPreparing)
	next()
	says("8", "True")
	expect("until callers have gone over", "a=x:1*1 b=x:1*1 callers=b live=8", v1alpha1.ReasonResolved, v1alpha1.ReasonLive)
	w.edit(strings.Replace(spec, "models:/m@", "models:/other@", 1))
	expect("another model is asked for, and what serves keeps its alias", "a=x:1*1 b=x:1*1 callers=b live=8", v1alpha1.ReasonResolving, v1alpha1.ReasonAwaitingModel)
	if v := object(t, w.plan(), names.ModelVersionPrefix+hashOf("other")); compose.Text(v, "spec", "forProvider", "model") != "other" {
		t.Errorf("asked of the registry: %v", v)
	}
}

// TestRollingSecrets makes a revision of a changed Secret, once it is known.
func TestRollingSecrets(t *testing.T) {
	const spec = "{image: x, secrets: [{name: license, rotate: Rolling}, {name: other}]}"
	w := newWorld(t, spec)
	seen := func(fingerprint string) {
		w.measure(observev1alpha1.AnalysisObservation{Secrets: []observev1alpha1.SecretObservation{{Name: "license", Fingerprint: fingerprint}}})
	}
	if c := condition(w.plan(), v1alpha1.TypeUpdated); c.Reason != v1alpha1.ReasonAwaitingSecret || !strings.Contains(c.Message, "license") {
		t.Errorf("before it is known: %s %q", c.Reason, c.Message)
	}
	w.compose(w.plan())
	seen("aa")
	first := statusOf(w.plan()).Revision.Candidate
	w.update()
	seen("aa")
	if got := scene(t, w.plan()); got != "a=x*1 callers=a" || first == "" {
		t.Errorf("got %s, revision %q", got, first)
	}
	seen("bb")
	if got := scene(t, w.plan()); got != "a=x*1 b=x*1 callers=a" {
		t.Errorf("after a change: got %s", got)
	}
	w.measure(observev1alpha1.AnalysisObservation{})
	if got := scene(t, w.plan()); got != "a=x*1 callers=a" {
		t.Errorf("while it is gone: got %s", got)
	}

	// The other makes no revisions, but pods do not start without it.
	if a := object(t, w.plan(), names.Analysis); len(compose.List(a, "spec", "forProvider", "secrets")) != 2 {
		t.Errorf("watched: %v", compose.Map(a, "spec", "forProvider"))
	}
}
