// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// standsAt is the phase and, where it tells more, the reason of a plan's rollout.
func standsAt(tb testing.TB, p *compose.Plan) string {
	tb.Helper()
	st := rolloutOf(tb, p)
	switch st.Phase {
	case v1alpha1.RolloutStepping, v1alpha1.RolloutHolding, v1alpha1.RolloutRollingBack, v1alpha1.RolloutRolledBack:
		return string(st.Phase) + "/" + st.Reason
	default:
		return string(st.Phase)
	}
}

// soaking world: a share of callers tries image z beside x.
func soaking(tb testing.TB, spec string) *world {
	tb.Helper()
	w := serving(tb, fmt.Sprintf(spec, "x"))
	w.settle()
	w.edit(fmt.Sprintf(spec, "z"))
	for range 8 {
		if standsAt(tb, w.plan()) == "Stepping/Soaking" {
			w.settle()
			return w
		}
		w.settle()
	}
	tb.Fatalf("it does not soak: %s", standsAt(tb, w.plan()))
	return nil
}

// pods of a slot that are available.
func (w *world) available(slot string, n float64) {
	w.runIn(slot, func(s map[string]any) { s["availableReplicas"], s["readyReplicas"] = n, n })
}

// sizeIn a slot that a plan asks for, or -1 when it asks for no Deployment.
func sizeIn(tb testing.TB, p *compose.Plan, slot string) int64 {
	tb.Helper()
	d := object(tb, p, names.Deployment(slot))
	if d == nil {
		return -1
	}
	return compose.Number(d, 1, "spec", "replicas")
}

// TestRolloutByReplicas keeps callers of what shares them out by replicas, whatever happens to their number.
func TestRolloutByReplicas(t *testing.T) {
	const plain = "{image: %s, replicas: 4, lifecycle: {canaryWeight: 20, soak: 1m, bake: 10m}}"
	t.Run("Shrunk", func(t *testing.T) {
		w := soaking(t, plain)
		w.edit(strings.Replace(fmt.Sprintf(plain, "z"), "replicas: 4", "replicas: 2", 1))
		for range 4 {
			p := w.plan()
			both := compose.Text(object(t, p, names.Service), "spec", "selector", names.LabelSlot) == ""
			if n := sizeIn(t, p, names.SlotB); both && n == 0 {
				t.Fatalf("callers may reach slot b, and its pods end: %s", scene(t, p))
			}
			if len(rolloutOf(t, p).Failed) > 0 {
				t.Fatalf("who asks for fewer replicas condemns the candidate: %s", rolloutOf(t, p).Failed[0].Message)
			}
			w.settle()
		}
	})
	t.Run("RouteRemoved", func(t *testing.T) {
		const routed = "{image: %s, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {steps: [10, 50], soak: 1m, bake: 10m}}"
		w := soaking(t, routed)
		w.edit(strings.Replace(fmt.Sprintf(routed, "z"), "route: {gateway: {name: shared, namespace: gateway}}, ", "", 1))
		for range 4 {
			p := w.plan()
			if both := compose.Text(object(t, p, names.Service), "spec", "selector", names.LabelSlot) == ""; both && rolloutOf(t, p).Weight < 20 && sizeIn(t, p, names.SlotB) > 1 {
				t.Fatalf("one replica is the least share, and more than that is above %d %% of requests: %s", rolloutOf(t, p).Weight, scene(t, p))
			}
			if len(rolloutOf(t, p).Failed) > 0 {
				t.Fatalf("who removes the route condemns the candidate: %s", rolloutOf(t, p).Failed[0].Message)
			}
			w.settle()
		}
	})
	t.Run("LivePodsMissing", func(t *testing.T) {
		w := serving(t, fmt.Sprintf(plain, "x"))
		w.settle()
		w.edit(fmt.Sprintf(plain, "z"))
		w.settle()
		w.available(names.SlotA, 1)
		if p := w.plan(); compose.Text(object(t, p, names.Service), "spec", "selector", names.LabelSlot) == "" {
			t.Fatalf("one replica beside one that serves has half of the callers instead of a fifth: %s", scene(t, p))
		}
	})
	t.Run("ShareNotInForce", func(t *testing.T) {
		const steps = "{image: %s, replicas: 4, lifecycle: {steps: [20, 50], soak: 1m, bake: 10m}}"
		w := soaking(t, steps)
		w.judge("PPP")
		w.later(time.Minute)
		w.judge("PPP")
		w.compose(w.plan()) // to 50 %: four replicas beside four
		w.available(names.SlotB, 1)
		w.compose(w.plan())
		w.available(names.SlotB, 1)
		if st := rolloutOf(t, w.plan()); st.Reason == string(v1alpha1.ReasonSoaking) && st.Weight == 50 {
			t.Errorf("evidence for 50 %% of callers is gathered while one of five replicas is the candidate's")
		}
	})
	t.Run("ServiceNotWritten", func(t *testing.T) {
		const atOnce = "{image: %s, replicas: 1, lifecycle: {canaryWeight: 100, bake: 10m}}"
		w := serving(t, fmt.Sprintf(atOnce, "x"))
		w.settle()
		w.edit(fmt.Sprintf(atOnce, "z"))
		before := w.request.Observed[names.Service]
		for range 40 {
			p := w.plan()
			if n := sizeIn(t, p, names.SlotA); n == 0 {
				t.Fatalf("the Service still sends callers to slot a, and its pods end: %s", scene(t, p))
			}

			// The API server refuses the Service, the status is written.
			w.told(p)
			w.settle()
			w.request.Observed[names.Service] = before
			w.later(time.Minute)
			w.judges("PPP")
		}
	})
}

// TestRolloutHeldOn says what becomes of what is held when something else changes.
func TestRolloutHeldOn(t *testing.T) {
	const plain = "{image: %s, replicas: 4, lifecycle: {canaryWeight: 20, soak: 1m, bake: 10m, %s}}"
	t.Run("ContinueWithoutMetrics", func(t *testing.T) {
		w := soaking(t, strings.Replace(plain, "%s}}", "onNoData: Continue}}", 1))
		for range 40 {
			w.later(10 * time.Minute)
			w.settle()
			w.settle()
		}

		// Nobody looks at all, and the spec says to go on.
		if got := standsAt(t, w.plan()); strings.HasPrefix(got, "Stepping") || rolloutOf(t, w.plan()).Held == v1alpha1.RolloutStepping {
			t.Errorf("after 6 hours with a deadline of one: %s: %s", got, rolloutOf(t, w.plan()).Message)
		}
	})
	t.Run("ContinueOnceApproved", func(t *testing.T) {
		w := soaking(t, strings.Replace(plain, "%s}}", "deadline: 10m, onNoData: Continue, approval: BeforePromotion}}", 1))
		for range 10 {
			w.later(5 * time.Minute)
			w.settle()
		}
		before := rolloutOf(t, w.plan()).Epoch
		for range 10 {
			w.later(5 * time.Minute)
			w.settle()
		}
		if st := rolloutOf(t, w.plan()); st.Reason != string(v1alpha1.ReasonAwaitingApproval) || st.Epoch > before+1 {
			t.Errorf("nobody looks and nobody agrees, and in 50 minutes it moves %d times and stands at %s: %s", st.Epoch-before, st.Reason, st.Message)
		}
	})
	t.Run("PromotionWithdrawn", func(t *testing.T) {
		w := soaking(t, strings.Replace(plain, "%s}}", "onNoData: Hold}}", 1))
		spec := fmt.Sprintf(strings.Replace(plain, "%s}}", "onNoData: Hold}}", 1), "z")
		hash := rolloutOf(t, w.plan()).Candidate
		w.edit(strings.Replace(spec, "}}", acts("promote: "+hash)+"}}", 1))
		w.compose(w.plan()) // its replicas start for all callers
		w.available(names.SlotB, 1)
		w.edit(spec)
		w.settle()
		w.settle()
		if st := rolloutOf(t, w.plan()); st.Weight == 100 {
			t.Errorf("nobody promotes it any more and nothing is known of it, and all callers go over: %s", st.Phase)
		}
	})
	t.Run("NoCapacityIsNoFailure", func(t *testing.T) {
		w := serving(t, fmt.Sprintf(plain, "x", ""))
		w.settle()
		w.edit(fmt.Sprintf(plain, "z", ""))
		w.compose(w.plan())
		w.available(names.SlotB, 0)
		w.find(observev1alpha1.Finding{Reason: "Unschedulable", Message: "no node", Slot: "b"})
		w.later(3 * time.Minute)
		w.compose(w.plan())
		w.later(time.Hour)
		w.runIn(names.SlotB, func(s map[string]any) {
			s["availableReplicas"], s["readyReplicas"] = 0.0, 0.0
			s["conditions"] = []any{map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}}
		})
		if got := standsAt(t, w.plan()); got != "Holding/NoCapacity" {
			t.Errorf("no room is not the fault of the revision: got %s", got)
		}
	})
	t.Run("TroubleAfterALongStart", func(t *testing.T) {
		w := serving(t, fmt.Sprintf(plain, "x", ""))
		w.settle()
		w.edit(fmt.Sprintf(plain, "z", ""))
		w.compose(w.plan())
		w.available(names.SlotB, 0)
		w.find(observev1alpha1.Finding{Reason: "ModelFetching", Message: "a third", Slot: "b"})
		w.later(10 * time.Minute)
		w.compose(w.plan())
		w.available(names.SlotB, 0)
		w.find(observev1alpha1.Finding{Reason: "CrashLooping", Message: "it ended once", Slot: "b"})
		if got := standsAt(t, w.plan()); strings.HasPrefix(got, "RollingBack") {
			t.Errorf("trouble that has just begun has had no time to pass: %s", got)
		}
	})
	t.Run("ApprovedAndThenTooLittle", func(t *testing.T) {
		spec := strings.Replace(plain, "%s}}", "approval: BeforePromotion}}", 1)
		w := soaking(t, spec)
		w.judge("PPP")
		w.later(time.Minute)
		w.judge("PPP")
		w.settle()
		if got := standsAt(t, w.plan()); got != "Holding/AwaitingApproval" {
			t.Fatalf("got %s", got)
		}
		hash := rolloutOf(t, w.plan()).Candidate
		w.edit(strings.Replace(fmt.Sprintf(spec, "z"), "}}", acts("approve: ["+hash+"]")+"}}", 1))
		for range 20 {
			w.judge("PPPIIIIIII")
			w.settle()
			w.later(10 * time.Minute)
		}
		w.judge("IIIIIIIIII")
		if got := standsAt(t, w.plan()); got != "Holding/Inconclusive" {
			t.Errorf("it was agreed to, and what is missing is data: got %s: %s", got, rolloutOf(t, w.plan()).Message)
		}
	})
	t.Run("BakingWithoutMetrics", func(t *testing.T) {
		const atOnce = "{image: %s, replicas: 1, lifecycle: {canaryWeight: 100, bake: 10m, onNoData: Continue}}"
		w := serving(t, fmt.Sprintf(atOnce, "x"))
		w.settle()
		w.edit(fmt.Sprintf(atOnce, "z"))
		for range 60 {
			w.settle()
			w.later(5 * time.Minute)
		}
		if got := standsAt(t, w.plan()); got != "Stable" {
			t.Errorf("metrics may be unavailable for the deadline of an hour, and then it goes on; after five hours: %s", got)
		}
	})
}

// TestRolloutBakesHonestly: what fails has not baked.
func TestRolloutBakesHonestly(t *testing.T) {
	const atOnce = "{image: %s, replicas: 1, lifecycle: {canaryWeight: 100, bake: 10m}}"
	w := serving(t, fmt.Sprintf(atOnce, "x"))
	w.settle()
	w.edit(fmt.Sprintf(atOnce, "z"))
	for range 6 {
		w.settle()
	}
	if got := standsAt(t, w.plan()); got != "Baking" {
		t.Fatalf("got %s", got)
	}
	w.available(names.SlotA, 0)
	w.judge("PPFF")
	w.later(time.Minute)
	w.judge("FFFF")
	w.later(10 * time.Minute)
	w.judge("FFFFFF")
	w.available(names.SlotA, 0)
	if got := standsAt(t, w.plan()); got == "Draining" {
		t.Errorf("the candidate fails and nothing could take callers back yet: got %s (%s)", got, rolloutOf(t, w.plan()).LastDecision.Reason)
	}
	w.compose(w.plan())
	w.runIn(names.SlotA, nil)
	w.judge("FFFFFF")
	if got := standsAt(t, w.plan()); got != "RollingBack/MetricFailed" {
		t.Errorf("now something can: got %s", got)
	}
}

// TestRolloutOtherInSlot: callers are sent to nothing that ends, even where the ledger that is left speaks of another candidate
// than the one that runs.
func TestRolloutOtherInSlot(t *testing.T) {
	const routed = "{image: %s, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {steps: [10, 50], soak: 1m, bake: 10m}}"
	w := soaking(t, routed)
	w.change(names.Deployment(names.SlotB), func(o composetest.Object) {
		compose.Map(o, "metadata", "annotations")[names.AnnotationRevision] = "0123456789"
	})
	for range 3 {
		p := w.plan()
		if words := scene(t, p); sizeIn(t, p, names.SlotB) == 0 && !strings.Contains(words, "reco-slot-b:0") {
			t.Fatalf("a share of callers is sent to pods that end: %s", words)
		}
		w.compose(p)
	}
}

// TestRolloutLifecycleRemoved: what was rolled back stays back when nothing is asked about how callers go over any more, and what
// was not goes live.
func TestRolloutLifecycleRemoved(t *testing.T) {
	const (
		plain   = "{image: %s, replicas: 4, lifecycle: {canaryWeight: 20, soak: 1m, bake: 10m%s}}"
		bare    = "{image: %s, replicas: 4}"
		stopped = "{image: %s, replicas: 0, lifecycle: {canaryWeight: 20, soak: 1m, bake: 10m}}"
	)
	rolledBack := func(t *testing.T) *world {
		t.Helper()
		w := soaking(t, strings.Replace(plain, "%s}}", "}}", 1))
		w.judge("FF")
		for range 4 {
			w.settle()
			w.later(time.Minute)
		}
		if got := standsAt(t, w.plan()); got != "RolledBack/RolledBack" {
			t.Fatalf("got %s", got)
		}
		return w
	}
	cases := map[string]struct {
		reason string
		specs  []string
		want   string
	}{
		"Removed":  {"Nobody has said that it is better now.", []string{fmt.Sprintf(bare, "z")}, "x"},
		"Another":  {"It has not been rolled back.", []string{fmt.Sprintf(bare, "v")}, "v"},
		"Later":    {"Others went live meanwhile, and it is no better for it.", []string{fmt.Sprintf(bare, "v"), fmt.Sprintf(bare, "z")}, "v"},
		"Stopped":  {"Zero replicas are no way around it.", []string{fmt.Sprintf(stopped, "z"), fmt.Sprintf(plain, "z", "")}, "x"},
		"Returned": {"It is as if the lifecycle had not been away.", []string{fmt.Sprintf(bare, "z"), fmt.Sprintf(plain, "z", "")}, "x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := rolledBack(t)
			for _, spec := range tc.specs {
				w.edit(spec)
				for range 6 {
					w.settle()
					w.later(time.Minute)
				}
			}
			p := w.plan()
			live := compose.Text(object(t, p, names.Service), "spec", "selector", names.LabelSlot)
			if words := scene(t, p); !strings.Contains(words, live+"="+tc.want+"*4") {
				t.Errorf("%s\ncallers should reach %s, got %s", tc.reason, tc.want, words)
			}
			c := condition(p, v1alpha1.TypeUpdated)
			if back := tc.want == "x" || name == "Later"; back != (c.Reason == v1alpha1.ReasonRolledBack) {
				t.Errorf("%s\nUpdated is %s for %s: %s", tc.reason, c.Status, c.Reason, c.Message)
			}
		})
	}
	t.Run("AskedTwice", func(t *testing.T) {
		w := rolledBack(t)
		hash := rolloutOf(t, w.plan()).Candidate
		w.edit(fmt.Sprintf(plain, "z", acts(fmt.Sprintf("retry: %q", hash+"#2"))))
		w.settle()
		if got := standsAt(t, w.plan()); got != "RolledBack/CoolingDown" {
			t.Errorf("another attempt waits for its time: got %s", got)
		}
		w.edit(fmt.Sprintf(plain, "z", acts(fmt.Sprintf("retry: %q, promote: %q", hash+"#2", hash))))
		for range 6 {
			w.settle()
		}
		if got := standsAt(t, w.plan()); got != "Baking" {
			t.Errorf("who asks for both knows what they do: got %s", got)
		}
	})
}

// TestRolloutEvents: Crossplane lets 25 events of one object through, and then one in five minutes. Its own are one for each
// composed object that is not ready, at each look.
func TestRolloutEvents(t *testing.T) {
	const plain = "{image: %s, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {steps: [25, 50], soak: 1m, bake: 10m}}"
	w := newWorld(t, fmt.Sprintf(plain, "x"))
	told := []string{}
	look := func() {
		p := w.plan()
		for _, e := range p.Events {
			told = append(told, e.Reason)
		}
		for name, o := range p.Objects {
			if !o.Ready {
				told = append(told, name+" is not yet ready")
			}
		}
		w.compose(p)
		w.told(p)
		for _, slot := range []string{names.SlotA, names.SlotB} {
			if w.occupied(slot) {
				w.runIn(slot, nil)
			}
		}
		w.accept()
		w.later(time.Minute)
		w.judges("PPP")
	}
	for range 6 {
		look()
	}
	w.edit(fmt.Sprintf(plain, "z"))
	for range 40 {
		look()
	}
	if got := standsAt(t, w.plan()); got != "Stable" {
		t.Fatalf("it should have been promoted, got %s after %v", got, told)
	}

	// To 25 %, passed, to 50 %. As large as the live one by then, it goes on at once when that has passed.
	want := []string{"Preparing", "Stepping", "Stepping", "Stepping", "Promoting", "Baking", "Draining", "Stable"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("one event a decision and no more: -want, +got:\n%s", diff)
	}
}

// TestRolloutClockAhead: a clock that was hours ahead when Prometheus was looked at last hides from nobody that nobody looks any
// more.
func TestRolloutClockAhead(t *testing.T) {
	w := soaking(t, "{image: %s, replicas: 4, lifecycle: {canaryWeight: 20, soak: 10m, bake: 10m}}")
	w.later(5 * time.Hour)
	w.judge("PPP")
	w.later(-5 * time.Hour)
	for range 4 {
		w.compose(w.plan())
		w.later(time.Minute)
	}
	if got := standsAt(t, w.plan()); got != "Holding/MetricsUnavailable" {
		t.Errorf("nobody has looked for four minutes: got %s", got)
	}
}
