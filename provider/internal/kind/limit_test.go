// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// waits are seconds that the newest reconcile of a kind waits.
func waits(t *testing.T, gvk schema.GroupVersionKind) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "capstan_reconcile_wait_seconds" && m.GetLabel()[1].GetValue() == gvk.Kind {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("there is no metric of %s", gvk.Kind)
	return 0
}

func TestLimit(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"}
	l := NewLimit(gvk, 2)
	for range 20 {
		if d := l.When("x"); d > 0 {
			t.Fatalf("Ten times the rate may run at once, got a wait of %s", d)
		}
	}
	if got := waits(t, gvk); got != 0 {
		t.Errorf("Nothing has waited, got %v s", got)
	}
	for range 10 {
		l.When("x")
	}
	if got := waits(t, gvk); got < 4 || got > 5 {
		t.Errorf("The tenth beyond a rate of 2 a second waits about 5 s, got %v", got)
	}
}
