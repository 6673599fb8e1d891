// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// BenchmarkRollout plans an Algorithm in each phase of a rollout.
func BenchmarkRollout(b *testing.B) {
	const spec = "{image: %q, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, " +
		"objectives: {latencyMs: 50}, lifecycle: {steps: [10, 50], soak: 1m, bake: 5m, maxLatencyIncreasePercent: 10%s}}"
	edited := func(lifecycle string) func(w *world) {
		return func(w *world) { w.edit(fmt.Sprintf(spec, "z", lifecycle)) }
	}
	rounds := func(w *world, verdicts string) {
		for range 4 {
			w.settle()
			w.later(time.Minute)
			if verdicts != "" {
				w.judges(verdicts)
			}
		}
	}
	for _, phase := range []struct {
		phase v1alpha1.RolloutPhase
		do    func(w *world)
	}{
		{v1alpha1.RolloutStable, func(*world) {}},
		{v1alpha1.RolloutPreparing, func(w *world) {
			edited("")(w)
			w.compose(w.plan())
		}},
		{v1alpha1.RolloutStepping, func(w *world) {
			edited("")(w)
			rounds(w, "II")
		}},
		{v1alpha1.RolloutHolding, func(w *world) {
			edited(", approval: EveryStep")(w)
			rounds(w, "PPP")
		}},
		{v1alpha1.RolloutBaking, func(w *world) {
			edited("")(w)
			for range 40 {
				if rolloutOf(b, w.plan()).Phase == v1alpha1.RolloutBaking {
					return
				}
				w.settle()
				w.later(15 * time.Second)
				w.judges("PPP")
			}
		}},
		{v1alpha1.RolloutRollingBack, func(w *world) {
			edited("")(w)
			for range 4 {
				w.settle()
				w.judges("FF")
			}
		}},
	} {
		b.Run(string(phase.phase), func(b *testing.B) {
			w := serving(b, fmt.Sprintf(spec, "x", ""))
			w.settle()
			w.settle()
			phase.do(w)
			w.told(w.plan())
			w.told(w.plan())
			if got := rolloutOf(b, w.plan()).Phase; got != phase.phase {
				b.Fatalf("got phase %s, want %s", got, phase.phase)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Plan(w.request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// judges the candidate, where anybody asks about it.
func (w *world) judges(verdicts string) {
	if w.canaryAsked() != nil {
		w.judge(verdicts)
	}
}
