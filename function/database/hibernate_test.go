// SPDX-License-Identifier: Apache-2.0

package database

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

const asleep = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, hibernated: true}`

// asks tells how many pods each StatefulSet asks for.
func (w *world) asks() map[string]int64 {
	n := map[string]int64{}
	for letter := range w.revisions() {
		n[letter] = compose.Number(w.request.Observed[names.MemberPrefix+letter].Map(), -1, "spec", "replicas")
	}
	return n
}

// TestHibernate stops members and starts them again, in the order that loses nothing.
func TestHibernate(t *testing.T) {
	w := running(t, basic)
	w.leads = "orders-db-b"
	w.pass()
	before := w.request.Observed
	w.edit(asleep)
	follow := func(reason string, want map[string]int64) {
		t.Helper()
		w.pass()
		if diff := cmp.Diff(want, w.asks()); diff != "" {
			t.Fatalf("%s: -want, +got:\n%s", reason, diff)
		}
	}
	follow("those that follow are stopped first", map[string]int64{"a": 0, "b": 1, "c": 0})
	follow("the leader after them", map[string]int64{"a": 0, "b": 0, "c": 0})
	for range 3 {
		w.pass()
	}
	p := w.plan()
	st := told(t, p)
	if st.Phase != v1alpha1.DatabaseHibernated || !p.Ready || st.Change != nil {
		t.Errorf("the phase is %s, ready is %t, change is %+v", st.Phase, p.Ready, st.Change)
	}
	for name, want := range map[string]string{"Available": "Hibernated", "HighlyAvailable": "Hibernated", "ConsumersReady": "Hibernated", "Updated": "Hibernated"} {
		if _, reason, message := condition(p, name); reason != want {
			t.Errorf("%s is %s: %s", name, reason, message)
		}
	}

	// All that people and data need stays; nobody is woken up, and nobody tries to connect.
	for name := range before {
		if w.request.Observed[name] == nil && name != names.Rules {
			t.Errorf("%s is gone", name)
		}
	}
	if w.request.Observed[names.Rules] != nil {
		t.Error("alerts fire for members that are stopped on purpose")
	}
	if suspended := compose.Map(w.request.Observed[names.Access].Map(), "spec", "forProvider")["suspended"]; suspended != true {
		t.Errorf("Access is suspended: %v", suspended)
	}
	w.edit(basic)
	follow("the one that led last is started first", map[string]int64{"a": 0, "b": 1, "c": 0})
	follow("the others after it leads", map[string]int64{"a": 1, "b": 1, "c": 1})
	for range 4 {
		w.pass()
	}
	p = w.plan()
	if st := told(t, p); st.Phase != v1alpha1.DatabaseRunning || !p.Ready || st.Leader != "orders-db-b" {
		t.Errorf("awake again the phase is %s, ready is %t, led by %s", st.Phase, p.Ready, st.Leader)
	}
	for name := range before {
		if w.request.Observed[name] == nil {
			t.Errorf("%s does not come back", name)
		}
	}
	for _, name := range []string{"member-a", "member-b", "member-c"} {
		if diff := cmp.Diff(before[name].Map()["spec"], w.request.Observed[name].Map()["spec"]); diff != "" {
			t.Errorf("%s is not what it was: -before, +after:\n%s", name, diff)
		}
	}
}

// TestBornHibernated makes all but the members.
func TestBornHibernated(t *testing.T) {
	w := newWorld(t, asleep)
	for range 5 {
		w.pass()
	}
	if len(w.revisions()) > 0 || told(t, w.plan()).Phase != v1alpha1.DatabaseHibernated {
		t.Errorf("the phase is %s with members %v", told(t, w.plan()).Phase, w.revisions())
	}
	w.edit(basic)
	for range 5 {
		w.pass()
	}
	if st := told(t, w.plan()); st.Phase != v1alpha1.DatabaseRunning {
		t.Errorf("once it may the phase is %s", st.Phase)
	}
}
