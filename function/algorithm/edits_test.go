// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"testing"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/observed"
)

// TestSizeAfterEdits shows that an edit changes the number of replicas only where somebody has written one.
func TestSizeAfterEdits(t *testing.T) {
	const scaled = "{image: x, replicas: 3, scaling: {minReplicas: 2, maxReplicas: 9}}"
	grown := func(w *world) { w.scale(6); w.run(nil) }
	cases := map[string]struct {
		reason string
		spec   string
		do     func(w *world)
		edits  []string
		want   string
	}{
		"ScalingRemoved":         {"the number that the autoscaler left stays", "{image: x, scaling: {maxReplicas: 9}}", grown, []string{"{image: x}"}, "a=x*6 callers=a"},
		"ScalingRemovedThenEdit": {"also in the next revision", "{image: x, scaling: {maxReplicas: 9}}", grown, []string{"{image: x}", "{image: z}"}, "a=x*6 b=z*6 callers=b"},
		"NumberWritten":          {"a number that is written counts", scaled, grown, []string{"{image: x, replicas: 2}"}, "a=x*2 callers=a"},
		"NumberRemoved":          {"nobody has asked for another", "{image: x, replicas: 5}", nil, []string{"{image: x}"}, "a=x*5 callers=a"},
		"New":                    {"one is enough to begin with", "{image: x}", nil, nil, "a=x*1 callers=a"},
		"Stopped":                {"zero stops what an autoscaler sizes, too", scaled, grown, []string{"{image: x, replicas: 0, scaling: {minReplicas: 2, maxReplicas: 9}}"}, "a=x*0 callers=a"},
		"StartedAgain":           {"with the first size", scaled, grown, []string{"{image: x, replicas: 0, scaling: {minReplicas: 2, maxReplicas: 9}}", scaled}, "a=x*3 callers=a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, tc.spec)
			if tc.do != nil {
				tc.do(w)
			}
			for _, spec := range tc.edits {
				w.edit(spec)
				w.update()
			}
			p := w.plan()
			if got := scene(t, p); got != tc.want {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
			if o := object(t, p, names.Autoscaler(names.SlotA)); name == "Stopped" && (o != nil || statusOf(p).Phase != v1alpha1.PhaseStopped) {
				t.Errorf("%s: it is %s, with the autoscaler %v", tc.reason, statusOf(p).Phase, o)
			}
		})
	}
}

// TestSizeOfReturned shows that a revision that takes requests back grows to what the other one had, though it kept one replica.
func TestSizeOfReturned(t *testing.T) {
	of := func(n int64) rollout.Slot {
		return rollout.Slot{Deployment: observed.Deployment{Exists: true, Size: n}}
	}
	r := rollout.Facts{
		Ledger: rollout.Ledger{Slot: names.SlotA, Phase: v1alpha1.RolloutRollingBack},
		Slots:  map[string]rollout.Slot{names.SlotA: of(1), names.SlotB: of(6)},
	}
	if got := replicas(&v1alpha1.AlgorithmSpec{}, r, 1); got != 6 {
		t.Errorf("want 6, got %d", got)
	}
	r.Ledger.Phase = v1alpha1.RolloutStable
	if got := replicas(&v1alpha1.AlgorithmSpec{}, r, 6); got != 1 {
		t.Errorf("at rest only the live revision counts: want 1, got %d", got)
	}
	delete(r.Slots, names.SlotA)
	if got := replicas(&v1alpha1.AlgorithmSpec{}, r, 6); got != 6 {
		t.Errorf("a Deployment that was deleted comes back as it was: want 6, got %d", got)
	}
}
