// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

func TestDraft(t *testing.T) {
	observed := func(names ...string) map[string]compose.Object {
		m := map[string]compose.Object{}
		for _, n := range names {
			m[n] = composetest.Object{"kind": "Service", "metadata": map[string]any{"name": n}}
		}
		return m
	}
	cases := map[string]struct {
		reason   string
		observed map[string]compose.Object
		do       func(*compose.Draft)
		objects  []string
		complete bool
		waits    bool
	}{
		"Empty": {
			reason:   "what nobody decides about is deleted",
			observed: observed("a"), do: func(*compose.Draft) {}, complete: true,
		},
		"RequiredIsMissing": {
			reason: "a required object that does not exist yet keeps the composite resource from being ready",
			do:     func(d *compose.Draft) { d.Require("a", applycorev1.Service("a", "n")) }, objects: []string{"a"}, waits: true,
		},
		"OfferedIsMissing": {
			reason: "an optional one does not, and is waited for all the same",
			do:     func(d *compose.Draft) { d.Offer("a", applycorev1.Service("a", "n")) }, objects: []string{"a"}, waits: true, complete: true,
		},
		"KeptThatIsAbsent": {
			reason: "what does not exist cannot be kept",
			do:     func(d *compose.Draft) { d.Keep("a") }, complete: true,
		},
		"RestIsKept": {
			reason:   "the rest is kept but for what was removed",
			observed: observed("a", "b", "c"),
			do: func(d *compose.Draft) {
				d.Require("a", applycorev1.Service("a", "n"))
				d.Remove("b")
				d.KeepRest()
			},
			objects: []string{"a", "c"}, complete: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := compose.NewDraft(compose.Request{Now: now, Composite: composetest.Object{}, Observed: tc.observed}, nil)
			tc.do(d)
			if diff := cmp.Diff(tc.objects, slices.Sorted(maps.Keys(d.Objects()))); diff != "" {
				t.Errorf("%s\nObjects: -want, +got:\n%s", tc.reason, diff)
			}
			if d.Complete() != tc.complete || d.Waits() != tc.waits {
				t.Errorf("%s: want complete %t and waits %t, got %t and %t", tc.reason, tc.complete, tc.waits, d.Complete(), d.Waits())
			}
		})
	}
}
