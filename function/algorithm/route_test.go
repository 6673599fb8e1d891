// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"testing"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// said by a Gateway of the route, which is for Gateway "shared" of namespace "gateway".
func (w *world) said(gateway, conditionType, status string, late float64) {
	w.change(names.Route, func(o composetest.Object) {
		o["status"] = map[string]any{"parents": []any{map[string]any{
			"parentRef": map[string]any{"name": gateway, "namespace": "gateway"},
			"conditions": []any{map[string]any{
				"type": conditionType, "status": status, "reason": "Because", "message": "of that",
				"observedGeneration": compose.Map(o, "metadata")["generation"].(float64) - late,
			}},
		}}}
	})
}

// TestRouteHoldsUp a revision only where callers could be lost.
func TestRouteHoldsUp(t *testing.T) {
	const routed = ", route: {gateway: {name: shared, namespace: gateway}}}"
	cases := map[string]struct {
		reason string
		said   func(w *world)
		want   string
	}{
		"Nobody":    {"no Gateway serves the route", func(*world) {}, "b"},
		"Accepted":  {"the Gateway serves it, and knows the slot", func(w *world) { w.said("shared", "Accepted", "True", 0) }, "b"},
		"Stale":     {"the Gateway serves it, and does not know the slot yet", func(w *world) { w.said("shared", "Accepted", "True", 1) }, "a"},
		"Refused":   {"the Gateway does not serve it", func(w *world) { w.said("shared", "Accepted", "False", 0) }, "b"},
		"Refusing":  {"the Gateway did not serve it, and may do so now", func(w *world) { w.said("shared", "Accepted", "False", 1) }, "a"},
		"Elsewhere": {"the Gateway that served it before speaks of what was", func(w *world) { w.said("other", "Accepted", "True", 1) }, "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, "{image: x"+routed)
			w.edit("{image: z" + routed)
			w.compose(w.plan())
			w.runIn(names.SlotB, nil)
			tc.said(w)
			if got := compose.Text(object(t, w.plan(), names.Service), "spec", "selector", names.LabelSlot); got != tc.want {
				t.Errorf("%s: callers are sent to slot %s, want %s: %v", tc.reason, got, tc.want, condition(w.plan(), v1alpha1.TypeUpdated))
			}
		})
	}
}
