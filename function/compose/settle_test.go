// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

func TestSettle(t *testing.T) {
	valid := xpv2.Condition{Type: v1alpha1.TypeAccepted, Status: corev1.ConditionTrue, Reason: "Valid", Message: "fine"}
	stored := func(ct, status, reason, message string) any {
		return map[string]any{"type": ct, "status": status, "reason": reason, "message": message, "observedGeneration": float64(2)}
	}
	settled := []any{
		stored("Synced", "True", "ReconcileSuccess", ""),
		stored("Ready", "True", "Available", ""),
		stored("Accepted", "True", "Valid", "fine"),
	}
	wish := map[string]any{"phase": "Ready"}
	before := map[string]any{"phase": "Progressing"}
	cases := map[string]struct {
		reason     string
		status     map[string]any
		conditions []any
		generation float64
		ready      bool
		urgent     bool
		objects    map[string]compose.Desired
		want       any
	}{
		"NothingChanges":  {"Conditions stay, so the rest may change.", before, settled, 2, true, false, nil, wish},
		"NewlyCreated":    {"There is no status to be kept yet.", nil, nil, 2, true, false, nil, wish},
		"ReadyChanges":    {"Crossplane's own condition counts as well.", before, settled, 2, false, false, nil, before},
		"OursIsNew":       {"A condition that was not there changes.", before, settled[:2], 2, true, false, nil, before},
		"GenerationMoves": {"Crossplane writes which generation it speaks of.", before, settled, 3, true, false, nil, before},
		"Urgent":          {"What could not be found out again is written at once.", before, settled, 3, false, true, nil, wish},
		"OursHasNewWords": {
			"The message is part of a condition.", before,
			append(settled[:2:2], stored("Accepted", "True", "Valid", "good")), 2, true, false, nil, before,
		},
		"Unanswered": {
			"Crossplane writes first that it listens to this generation: the next pass follows anyway.", before,
			append(settled[:3:3], stored("Responsive", "True", "WatchCircuitClosed", "")), 3, true, false, nil, wish,
		},
		"Answered": {
			"It has written that: a later pass of the same edit.", before,
			append(settled[:3:3], stored("Responsive", "True", "WatchCircuitClosed", "")), 2, false, false, nil, before,
		},
		"RefersAnew": {
			"Crossplane writes references before the status: the next pass follows anyway.", before, settled, 2, false, false,
			map[string]compose.Desired{"service": {Object: applycorev1.Service("reco", "shop")}},
			wish,
		},
		"RefersAlready": {
			"An object that was refused is referred to all the time.", before, settled, 2, false, false,
			map[string]compose.Desired{"pods": {Object: applyappsv1.Deployment("reco-a", "shop")}},
			before,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr := composetest.Object{
				"metadata": map[string]any{"generation": tc.generation},
				"spec": map[string]any{"crossplane": map[string]any{"resourceRefs": []any{
					map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "reco-a"},
				}}},
			}
			if tc.status != nil {
				status := map[string]any{"conditions": tc.conditions}
				maps.Copy(status, tc.status)
				xr["status"] = status
			}
			p := &compose.Plan{Status: wish, Ready: tc.ready, Conditions: []xpv2.Condition{valid}, TTL: time.Hour, Objects: tc.objects}
			compose.Settle(compose.Request{Composite: xr}, p, tc.urgent)
			if diff := cmp.Diff(tc.want, p.Status); diff != "" {
				t.Errorf("%s\nstatus: -want, +got:\n%s", tc.reason, diff)
			}
			if tc.status != nil && compose.List(xr, "status", "conditions") == nil {
				t.Error("the observed status was changed")
			}
		})
	}
}

// TestHold keeps conditions back in a pass that changes objects, so that one pass changes either, and the status with the objects.
func TestHold(t *testing.T) {
	stored := func(ct, status, reason, message string) any {
		return map[string]any{"type": ct, "status": status, "reason": reason, "message": message, "observedGeneration": float64(2)}
	}
	told := []any{stored("Synced", "True", "ReconcileSuccess", ""), stored("Ready", "False", "Creating", ""), stored("Accepted", "True", "Valid", "fine")}
	was := xpv2.Condition{Type: v1alpha1.TypeAccepted, Status: corev1.ConditionTrue, Reason: "Valid", Message: "fine"}
	is := xpv2.Condition{Type: v1alpha1.TypeAccepted, Status: corev1.ConditionFalse, Reason: "InvalidSpec", Message: "wrong"}
	here := map[string]compose.Object{"service": composetest.Object{}}
	type want struct {
		Held      bool
		Condition xpv2.Condition
		Ready     bool
		TTL       time.Duration
	}
	now := want{Condition: is, Ready: true, TTL: time.Hour}
	cases := map[string]struct {
		reason     string
		conditions []any
		generation float64
		observed   map[string]compose.Object
		desired    xpv2.Condition
		want       want
	}{
		"Held":      {"The objects' events wake up the pass that tells it.", told, 2, here, is, want{Held: true, Condition: was, TTL: 20 * time.Second}},
		"NothingTo": {"Conditions do not change.", append(told[:1:1], stored("Ready", "True", "Available", ""), told[2]), 2, here, was, want{Condition: was, Ready: true, TTL: time.Hour}},
		"New":       {"A condition that was not there cannot stay as it was.", told[:2], 2, here, is, now},
		"Edited":    {"Crossplane writes which generation it speaks of.", told, 3, here, is, now},
		"Created":   {"Another object changes the references, which are part of the spec.", told, 2, nil, is, now},
		"Removed": {
			"So does one that goes.", told, 2, map[string]compose.Object{"service": composetest.Object{}, "old": composetest.Object{}}, is, now,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr := composetest.Object{"metadata": map[string]any{"generation": tc.generation}, "status": map[string]any{"conditions": tc.conditions}}
			status := map[string]any{"phase": "Asleep"}
			p := &compose.Plan{
				Status: status, Ready: true, Conditions: []xpv2.Condition{tc.desired}, TTL: time.Hour,
				Objects: map[string]compose.Desired{"service": {}},
			}
			held := compose.Hold(compose.Request{Composite: xr, Observed: tc.observed}, p)
			got := want{Held: held, Condition: p.Conditions[0], Ready: p.Ready, TTL: p.TTL}
			got.Condition.LastTransitionTime = tc.want.Condition.LastTransitionTime
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(status, p.Status); diff != "" {
				t.Errorf("%s the rest of the status is written: %s", tc.reason, diff)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	cases := map[string]struct {
		reason string
		asked  compose.Asked
		before bool
		want   bool
	}{
		"Exists":        {"It is there.", compose.Asked{Observed: true}, false, false},
		"Created":       {"Nothing was well before: all objects are waited for.", compose.Asked{New: true}, false, true},
		"AddedByAnEdit": {"It could not exist yet, and all was well.", compose.Asked{New: true}, true, false},
		"GoneOrRefused": {"An earlier pass asked for it.", compose.Asked{}, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.asked.Missing(tc.before); got != tc.want {
				t.Errorf("%s\nMissing: got %t", tc.reason, got)
			}
		})
	}
}
