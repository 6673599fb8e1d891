// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/switchover"
)

const moved = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, switchover: {id: first, to: orders-db-b}}`

// handedOver is what the Topology is asked for.
func (w *world) handedOver() map[string]any {
	return compose.Map(w.request.Observed[names.Topology].Map(), "spec", "forProvider", "switchover")
}

// outcome that the Topology tells of every switchover from now on.
func (w *world) outcome(os ...observev1alpha1.SwitchoverOutcome) { w.requestedMove = os }

func TestSwitchover(t *testing.T) {
	w := running(t, basic)
	w.edit(moved)
	w.pass()
	want := map[string]any{"id": "first", "from": "orders-db-a", "to": "orders-db-b"}
	if diff := cmp.Diff(want, w.handedOver()); diff != "" {
		t.Fatalf("the Topology is asked for: -want, +got:\n%s", diff)
	}
	if got := compose.List(w.request.Observed[names.Topology].Map(), "spec", "managementPolicies"); len(got) != 4 {
		t.Errorf("it may do %v", got)
	}
	if _, reason, _ := condition(w.plan(), "SwitchedOver"); reason != "SwitchingOver" {
		t.Errorf("SwitchedOver is %s", reason)
	}
	w.leads = "orders-db-b"
	w.outcome(observev1alpha1.SwitchoverOutcome{
		ID: "first", From: "orders-db-a", To: "orders-db-b", State: observev1alpha1.SwitchoverDone, At: metav1.NewTime(now),
	})
	w.pass()
	w.pass()
	w.pass()
	p := w.plan()
	if status, reason, message := condition(p, "SwitchedOver"); status != "True" || !strings.Contains(message, "orders-db-b became the leader") {
		t.Errorf("SwitchedOver is %s, %s: %s", status, reason, message)
	}
	if st := told(t, p).Switchover; st == nil || st.Outcome != observev1alpha1.SwitchoverDone || st.To != "orders-db-b" {
		t.Errorf("status.switchover is %+v", st)
	}

	// The lead goes on to another member by itself: the wish was one of then.
	w.leads = "orders-db-c"
	w.pass()
	w.pass()
	if diff := cmp.Diff(want, w.handedOver()); diff != "" {
		t.Errorf("a wish that was carried out is another one later: -want, +got:\n%s", diff)
	}
}

func TestSwitchoverWaits(t *testing.T) {
	cases := map[string]struct {
		reason, spec, want, message string
		change                      func(*world)
	}{
		"Unknown": {
			reason: "There must be such a member.", spec: strings.Replace(moved, "orders-db-b", "orders-db-x", 1),
			want: "AwaitingCandidate", message: "is not one of the members",
		},
		"Blocked": {
			reason: "It must be well.", spec: moved, change: func(w *world) { w.broken["orders-db-b"] = "CrashLooping" },
			want: "AwaitingCandidate", message: "orders-db-b is blocked",
		},
		"Cordoned": {
			reason: "Its node must take pods.", spec: moved, change: func(w *world) { w.cordoned = []string{"orders-db-b"} },
			want: "AwaitingCandidate", message: "kubectl uncordon",
		},
		"Frozen": {
			reason: "A freeze holds it.", spec: strings.TrimSuffix(moved, "}") + `, maintenance: {freeze: {until: "2027-01-01T00:00:00Z"}}}`,
			want: "Frozen", message: "2027-01-01",
		},
		"Hibernated": {
			reason: "Nobody leads while members are stopped.", spec: strings.TrimSuffix(moved, "}") + `, hibernated: true}`,
			want: "Hibernated", message: "spec.hibernated",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			if tc.change != nil {
				tc.change(w)
				w.pass()
			}
			w.edit(tc.spec)
			w.pass()
			if got := w.handedOver(); got != nil {
				t.Errorf("\n%s\nthe Topology is asked for %v", tc.reason, got)
			}
			if status, reason, message := condition(w.plan(), "SwitchedOver"); status != "False" || reason != tc.want || !strings.Contains(message, tc.message) {
				t.Errorf("\n%s\nSwitchedOver is %s, %s: %s", tc.reason, status, reason, message)
			}
		})
	}
}

// TestSwitchoverOfManifest: a Database that is made from a manifest with a switchover does not carry it out.
func TestSwitchoverOfManifest(t *testing.T) {
	w := newWorld(t, moved)
	for range 8 {
		w.pass()
	}
	if got := w.handedOver(); got != nil {
		t.Errorf("the Topology is asked for %v", got)
	}
	if _, reason, message := condition(w.plan(), "SwitchedOver"); reason != "SwitchoverSkipped" {
		t.Errorf("SwitchedOver is %s: %s", reason, message)
	}
	w.edit(strings.Replace(moved, "first", "second", 1))
	w.pass()
	if got := compose.Text(w.handedOver(), "id"); got != "second" {
		t.Errorf("another id is not asked for, but %q", got)
	}
}

// TestVacates moves the lead from a node that is being emptied, once, and not in circles.
func TestVacates(t *testing.T) {
	w := running(t, basic)
	w.cordoned = []string{"orders-db-a"}
	w.pass()
	w.pass()
	asked := w.handedOver()
	id := compose.Text(asked, "id")
	if !strings.HasPrefix(id, switchover.OwnMoves) || compose.Text(asked, "to") != "orders-db-b" {
		t.Fatalf("the Topology is asked for %v", asked)
	}

	// It fails, and is not tried again.
	w.outcome(observev1alpha1.SwitchoverOutcome{ID: id, From: "orders-db-a", State: observev1alpha1.SwitchoverFailed, At: metav1.NewTime(now)})
	for range 3 {
		w.pass()
	}
	if got := compose.Text(w.handedOver(), "id"); got != id {
		t.Errorf("after a failure another one is asked for: %s, before %s", got, id)
	}
	t.Run("All", func(t *testing.T) {
		w := running(t, basic)
		w.cordoned = []string{"orders-db-a", "orders-db-b", "orders-db-c"}
		for range 3 {
			w.pass()
		}
		if got := w.handedOver(); got != nil {
			t.Errorf("with every node being emptied the Topology is asked for %v", got)
		}
	})
	t.Run("Window", func(t *testing.T) {
		w := running(t, basic)
		w.cordoned = []string{"orders-db-a"}
		w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, maintenance: {windows: [{start: "13:00", duration: 1h}]}}`)
		for range 3 {
			w.pass()
		}
		if got := w.handedOver(); got != nil {
			t.Errorf("outside of the window the Topology is asked for %v", got)
		}
		if _, reason, _ := condition(w.plan(), "SwitchedOver"); reason != "AwaitingWindow" {
			t.Errorf("SwitchedOver is %s", reason)
		}
		w.request.Now = now.Add(time.Hour)
		w.pass()
		if got := w.handedOver(); got == nil {
			t.Error("in the window the Topology is asked for nothing")
		}
	})
}

// TestArchiveHoldsLeader: while archiving fails, changes wait on the volume of the leader, and it does not hand over by Capstan's doing.
// A person may decide otherwise.
func TestArchiveHoldsLeader(t *testing.T) {
	const (
		backedUp = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, backup: {}`
		failing  = "no connection to the bucket"
	)
	failed := func(t *testing.T) *world {
		t.Helper()
		w := running(t, backedUp+"}")
		w.backup = wellBackedUp()
		w.backup.Archive, w.backup.Message = observev1alpha1.ArchiveFailing, failing
		w.react()
		w.pass()
		return w
	}
	for name, tc := range map[string]struct {
		reason, spec, condition string
		cordoned                []string
		says                    []string
	}{
		"Change": {
			"The standbys are changed, the leader is not.", backedUp + `, config: {max_connections: "200"}}`, "Updated", nil,
			[]string{"orders-db-a, restarts", failing, "ArchiveHealthy", "spec.switchover", "spec.backup.enabled"},
		},
		"Node": {
			"A cordoned node keeps its leader.", backedUp + "}", "SwitchedOver",
			[]string{"orders-db-a"},
			[]string{"orders-db-a", failing, "ArchiveHealthy", "spec.switchover", "spec.backup.enabled"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := failed(t)
			before := w.revisions()
			w.cordoned = tc.cordoned
			w.edit(tc.spec)
			for range 8 {
				w.pass()
			}
			if now := w.revisions(); now["a"] != before["a"] {
				t.Errorf("%s: the leader is changed", tc.reason)
			} else if name == "Change" && (now["b"] == before["b"] || now["c"] == before["c"]) {
				t.Errorf("%s: standbys are not changed: %v", tc.reason, now)
			}
			if got := w.handedOver(); got != nil {
				t.Errorf("%s: the Topology is asked for %v", tc.reason, got)
			}
			status, reason, message := condition(w.plan(), tc.condition)
			if status != "False" || reason != string(v1alpha1.ReasonAwaitingArchive) {
				t.Errorf("%s: %s is %s, %s: %s", tc.reason, tc.condition, status, reason, message)
			}
			for _, part := range tc.says {
				if !strings.Contains(message, part) {
					t.Errorf("%s: want %q in %q", tc.reason, part, message)
				}
			}
			if c := told(t, w.plan()).Change; c == nil || c.State != v1alpha1.ChangeWaiting || !strings.Contains(c.Message, failing) {
				t.Errorf("%s: status.change is %+v", tc.reason, c)
			}
			// With a bucket that works again it continues.
			w.backup.Archive, w.backup.Message = observev1alpha1.ArchiveOK, ""
			for range 3 {
				w.react()
				w.pass()
			}
			if now := w.revisions(); name == "Change" && now["a"] == before["a"] || name == "Node" && w.handedOver() == nil {
				t.Errorf("%s: it does not continue", tc.reason)
			}
		})
	}
	t.Run("Requested", func(t *testing.T) {
		w := failed(t)
		w.edit(backedUp + ", switchover: {id: first, to: orders-db-b}}")
		w.pass()
		if got := compose.Text(w.handedOver(), "id"); got != "first" {
			t.Errorf("the switchover of the spec is a decision of a person, but the Topology is asked for %q", got)
		}
	})
	t.Run("Mends", func(t *testing.T) {
		w := failed(t)
		before := w.revisions()
		w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, backup: {to: {volume: {}}}}`)
		for range 12 {
			w.pass()
		}
		if now := w.revisions(); now["a"] == before["a"] {
			t.Error("a change of the place of backups would wait for the place that it replaces")
		}
	})
}
