// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"testing"
	"time"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// TestRolloutTrouble: what a drain, a slow start or a registry does to the pods of a good revision costs a pause, and not the
// revision.
func TestRolloutTrouble(t *testing.T) {
	const routed = "{image: %s, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {canaryWeight: 20, soak: 1m, bake: 10m}}"
	condemned := func(t *testing.T, w *world) {
		t.Helper()
		if st := rolloutOf(t, w.plan()); len(st.Failed) > 0 {
			t.Fatalf("a good revision is condemned: %s: %s", st.Failed[0].Reason, st.Failed[0].Message)
		}
	}
	for name, found := range map[string]observev1alpha1.Finding{
		"NotListening": {Reason: "NotListening", Message: "it does not answer", Slot: "b"},
		"NotWarm":      {Reason: "NotWarm", Message: "it does not answer", Slot: "b"},
		"RegistryAway": {Reason: "ImagePullFailed", Message: "the registry refuses connections", Slot: "b"},
		"BucketAway":   {Reason: "ModelUnreachable", Message: "the server does not answer", Slot: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			w := serving(t, fmt.Sprintf(routed, "x"))
			w.settle()
			w.edit(fmt.Sprintf(routed, "z"))
			w.compose(w.plan())
			for range 9 {
				w.available(names.SlotB, 0)
				w.find(found)
				w.compose(w.plan())
				condemned(t, w)
				w.later(time.Minute)
			}
			w.runIn(names.SlotB, nil)
			for range 8 {
				if standsAt(t, w.plan()) == "Stepping/Soaking" {
					return
				}
				w.settle()
			}
			t.Errorf("it serves after nine minutes, and is not tried: %s", standsAt(t, w.plan()))
		})
	}
	t.Run("Evicted", func(t *testing.T) {
		w := soaking(t, routed)
		w.available(names.SlotB, 0)
		w.compose(w.plan())
		condemned(t, w)
		if got := callersOf(t, w.plan()); got != "reco-slot-a:100 reco-slot-b:0" {
			t.Errorf("callers reach pods that are gone: %s", got)
		}
		w.later(time.Minute)
		w.runIn(names.SlotB, nil)
		w.settle()
		w.settle()
		condemned(t, w)
		if st := rolloutOf(t, w.plan()); st.Weight != 20 {
			t.Errorf("its pod is back, and it has %d %% of requests: %s", st.Weight, st.Message)
		}
	})
	t.Run("EvictedInTheBake", func(t *testing.T) {
		const atOnce = "{image: %s, replicas: 1, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {canaryWeight: 100, bake: 10m}}"
		w := serving(t, fmt.Sprintf(atOnce, "x"))
		w.settle()
		w.edit(fmt.Sprintf(atOnce, "z"))
		for range 8 {
			w.settle()
		}
		if got := standsAt(t, w.plan()); got != "Baking" {
			t.Fatalf("got %s", got)
		}
		w.available(names.SlotB, 0)
		w.compose(w.plan())
		condemned(t, w)
		if got := callersOf(t, w.plan()); got != "reco-slot-a:100 reco-slot-b:0" {
			t.Errorf("callers reach pods that are gone: %s", got)
		}
		w.later(time.Minute)
		for range 6 {
			w.settle()
		}
		condemned(t, w)
		if got := standsAt(t, w.plan()); got != "Baking" {
			t.Errorf("its pod is back, and it is %s", got)
		}
	})
}
