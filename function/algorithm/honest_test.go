// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"strings"
	"testing"
	"time"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

const tried = "{image: %, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {canaryWeight: 20, soak: 1m, deadline: 10m, bake: 10m}}"

func tryingImage(image string) string { return strings.Replace(tried, "%", image, 1) }

// TestHonestStart shows that no client meets a candidate before its checks were measured on the live revision.
func TestHonestStart(t *testing.T) {
	w := serving(t, tryingImage("x"))
	w.accept()
	w.unmeasured = "Prometheus scrapes no pod of this slot"
	w.edit(tryingImage("z"))
	expect := func(reason, phase string, weight int32, words ...string) {
		t.Helper()
		p := w.plan()
		r := rolloutOf(t, p)
		if got := string(r.Phase) + "/" + r.Reason; got != phase || r.Weight != weight {
			t.Fatalf("%s: want %s at %d %%, got %s at %d %%: %s", reason, phase, weight, got, r.Weight, r.Message)
		}
		for _, word := range words {
			if !strings.Contains(r.Message, word) {
				t.Errorf("%s: the message lacks %q: %s", reason, word, r.Message)
			}
		}
		if len(r.Failed) > 0 {
			t.Errorf("%s: nothing is known against the candidate, got %+v", reason, r.Failed)
		}
	}
	for range 4 {
		w.settle()
	}
	expect("what cannot be measured yet is waited for", "Preparing/Edited", 0, "scrapes no pod")
	w.later(2 * time.Minute)
	w.settle()
	expect("what cannot be measured holds", "Holding/EvidenceMissing", 0, "success", "scrapes no pod", "spec.rollout.promote")
	w.later(time.Hour)
	w.settle()
	expect("for as long as it lasts", "Holding/EvidenceMissing", 0)
	w.unmeasured = ""
	w.settle()
	expect("and then goes on by itself", "Stepping/Applying", 20)
	w.settle()
	w.settle()
	asked := compose.Map(w.request.Observed[names.Analysis].Map(), "spec", "forProvider", "metrics")
	if asked["trial"] != nil {
		t.Errorf("nothing needs to be tried in a step, got %v", asked["trial"])
	}
	w.judge("NNNNNNNNNN")
	expect("a candidate that is not measured, although the live revision was", "Stepping/Soaking", 20)
	w.later(10 * time.Minute)
	w.judge("NNNNNNNNNN")
	w.compose(w.plan())
	expect("has no requests after the deadline", "Holding/EvidenceMissing", 0, "spec.metrics.port", "spec.rollout.promote or abort")
	for range 4 {
		w.settle()
		w.later(time.Hour)
	}
	expect("and gets none by itself", "Holding/EvidenceMissing", 0)
}

// TestUncountedFailures shows that a server which counts no failures is rolled out by other checks, and that it says so.
func TestUncountedFailures(t *testing.T) {
	const words = "the pods run KServe, which counts no failures"
	for reason, tc := range map[string]struct{ lifecycle, want, missing string }{
		"a threshold that cannot be measured holds": {"{soak: 1m}", "success", ""},
		"without one and without another check nothing can pass": {
			"{soak: 1m, successThreshold: 0}", "", "no check of spec.lifecycle can be measured: " + words + ", or set spec.objectives.latencyMs, or add a check to spec.metrics.queries",
		},
		"other checks are enough": {"{soak: 1m, successThreshold: 0}, objectives: {latencyMs: 50}", "latency", ""},
	} {
		w := serving(t, "{image: x, replicas: 4, lifecycle: "+tc.lifecycle+"}")
		w.unmeasured = words
		w.measure(observev1alpha1.AnalysisObservation{Server: "KServe", UncountedFailures: words})
		w.edit("{image: z, replicas: 4, lifecycle: " + tc.lifecycle + "}")
		w.settle()
		w.measure(observev1alpha1.AnalysisObservation{Server: "KServe", UncountedFailures: words})
		w.settle()
		var got []string
		for _, v := range compose.List(object(t, w.plan(), names.Analysis), "spec", "forProvider", "metrics", "trial") {
			got = append(got, compose.Text(v.(map[string]any), "name"))
		}
		if tc.missing == "" && strings.Join(got, " ") != tc.want {
			t.Errorf("%s: want %q to be tried, got %q", reason, tc.want, got)
		}
		if r := rolloutOf(t, w.plan()); !strings.Contains(r.Message, tc.missing) {
			t.Errorf("%s: want %q, got %q", reason, tc.missing, r.Message)
		}
	}
}

// TestIncomparable shows that the comparison by default gives way where other clients reach the baseline, and one that the spec
// asks for does not.
func TestIncomparable(t *testing.T) {
	for reason, tc := range map[string]struct {
		ask  string
		want v1alpha1.RolloutPhase
	}{
		"the absolute check decides": {"", v1alpha1.RolloutPromoting},
		"what is asked for is":       {", maxFailureIncreasePercent: 10", v1alpha1.RolloutStepping},
	} {
		spec := func(image string) string {
			return strings.Replace(tryingImage(image), "soak: 1m", "soak: 1m"+tc.ask, 1)
		}
		w := serving(t, spec("x"))
		w.accept()
		w.edit(spec("z"))
		for range 4 {
			w.settle()
		}
		w.later(2 * time.Minute)
		w.judge("PPP")
		w.change(names.Analysis, func(o composetest.Object) {
			for _, v := range compose.List(o, "status", "atProvider", "canary", "checks") {
				if c := v.(map[string]any); c["name"] == "success-against-baseline" {
					c["verdicts"], c["incomparable"], c["message"] = "III", true, "other clients reach the baseline"
				}
			}
		})
		if r := rolloutOf(t, w.plan()); !strings.Contains(r.Measured, `through Gateway "shared"`) || !strings.Contains(r.Measured, "clients of the Service") {
			t.Errorf("%s: the status should say which requests are measured, got %q", reason, r.Measured)
		}
		for range 3 {
			w.compose(w.plan())
			w.runIn(names.SlotB, nil)
		}
		if r := rolloutOf(t, w.plan()); r.Phase != tc.want {
			t.Errorf("%s: want %s, got %s %s: %s", reason, tc.want, r.Phase, r.Reason, r.Message)
		}
	}
}

// TestRouteAcceptedForTwoMinutes shows that a Gateway which does not take a change is reported after a while.
func TestRouteAcceptedForTwoMinutes(t *testing.T) {
	const spec = "{image: x, route: {gateway: {name: shared, namespace: gateway}}}"
	for reason, tc := range map[string]struct {
		ago  time.Duration
		want string
	}{
		"a change of a moment ago is no news": {time.Minute, "True"},
		"one of some minutes ago is":          {2 * time.Minute, "False"},
	} {
		w := serving(t, spec)
		w.said("shared", "Accepted", "True", 0)
		w.told(w.plan())
		w.said("shared", "Accepted", "True", 1)
		w.change(names.Route, func(o composetest.Object) {
			compose.Map(o, "metadata")["managedFields"] = []any{
				map[string]any{"manager": "crossplane", "time": now.Add(-tc.ago).Format(time.RFC3339)},
				map[string]any{"manager": "gateway", "subresource": "status", "time": now.Format(time.RFC3339)},
			}
		})
		p := w.plan()
		if c := condition(p, v1alpha1.TypeRouteAccepted); string(c.Status) != tc.want {
			t.Errorf("%s: want %s, got %s %s: %s", reason, tc.want, c.Status, c.Reason, c.Message)
		}
		if tc.want == "True" && p.TTL > time.Minute {
			t.Errorf("%s: the function should be called again when it is, in a minute, got %s", reason, p.TTL)
		}
	}
}
