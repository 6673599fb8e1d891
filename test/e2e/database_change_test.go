// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// planned is the maximum pause of writes during a clean change of the leader.
const planned = 2.0

// TestDatabaseChanges makes every kind of change that restarts members, moves the leader, or stops all members, while a
// client writes and counts.
func TestDatabaseChanges(t *testing.T) {
	ns := namespace(t)
	d := database(ns, "orders-db", func(d *v1alpha1.Database) {
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "writer"}}
	})
	t.Logf("Ready after %s", createDatabase(t, d).Round(time.Second))

	w := write(t, d, leader(t, d).Spec.NodeName, byHosts, 0)

	for _, part := range []struct {
		name string
		do   func(*testing.T, *v1alpha1.Database, writer)
	}{
		{"HeldByWindow", heldByWindow},
		{"Rolled", rolled},
		{"SwitchedOver", switchesOver},
		{"Paused", pausedByHand},
	} {
		t.Run(part.name, func(t *testing.T) { part.do(t, d, w) })
	}

	a := w.end(t)
	t.Logf("account: %+v", a)
	if len(a.Lost) > 0 {
		t.Errorf("acknowledged rows are lost: %v", a.Lost)
	}

	t.Run("Hibernated", func(t *testing.T) { hibernates(t, d) })
}

// merge a patch into the spec of a Database.
func merge(t *testing.T, d *v1alpha1.Database, spec string) {
	t.Helper()
	if err := kube.Patch(t.Context(), d.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))); err != nil {
		t.Fatalf("cannot edit the Database: %v", err)
	}
}

// heldByWindow: a restart waits for its window, and the status reports its effect.
func heldByWindow(t *testing.T, d *v1alpha1.Database, _ writer) {
	t.Helper()
	before := statefulSets(t, d)
	start := time.Now().UTC().Add(3 * time.Hour)
	merge(t, d, fmt.Sprintf(`{"config":{"max_connections":"150"},"maintenance":{"approval":"Manual","windows":[{"start":%q,"duration":"1h"}]}}`, start.Format("15:04")))
	eventually(t, "the change waits for an approval", databaseCondition(d, v1alpha1.TypeUpdated, corev1.ConditionFalse, v1alpha1.ReasonChangeNotApproved))

	var hash string
	eventually(t, "the change is reported", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		c := got.Status.Change
		if c == nil || len(c.Order) != 3 || c.Order[2] != got.Status.Leader || c.Window == nil {
			return fmt.Errorf("status.change is %+v", c)
		}
		hash = c.Hash
		t.Logf("%s", c.Summary)

		return nil
	})

	merge(t, d, fmt.Sprintf(`{"maintenance":{"approve":%q}}`, hash))
	eventually(t, "the change waits for its window", databaseCondition(d, v1alpha1.TypeUpdated, corev1.ConditionFalse, v1alpha1.ReasonAwaitingWindow, start.Format("15:04")))
	for name, generation := range statefulSets(t, d) {
		if before[name] != generation {
			t.Errorf("%s is changed outside of the window", name)
		}
	}
}

// rolled: in the window the change happens, under load.
func rolled(t *testing.T, d *v1alpha1.Database, w writer) {
	t.Helper()
	since := time.Now()
	merge(t, d, fmt.Sprintf(`{"maintenance":{"windows":[{"start":%q,"duration":"3h"}]}}`, since.UTC().Add(-time.Hour).Format("15:04")))
	within(t, creation, "every member is as requested", databaseCondition(d, v1alpha1.TypeUpdated, corev1.ConditionTrue, v1alpha1.ReasonUpdated))
	within(t, creation, "all follow", running(d))
	gaps := w.gapsSince(t.Context(), since)
	t.Logf("rolling restart of three members: %s, longest gap %.1f s of %d (aim %.1f s): %+v", time.Since(since).Round(time.Second), longest(gaps), len(gaps), planned, gaps)
	if longest(gaps) > planned+slack {
		t.Errorf("writes paused for %.1f s", longest(gaps))
	}
	// Conditions come first, the rest of the status follows one pass later.
	eventually(t, "nothing is left to be changed", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err == nil && got.Status.Change != nil {
			err = fmt.Errorf("status.change is %+v", got.Status.Change)
		}

		return err
	})
}

// switchesOver changes the leader once per ID, even if the Topology is recreated.
func switchesOver(t *testing.T, d *v1alpha1.Database, w writer) {
	t.Helper()
	from := leader(t, d).Labels[observev1alpha1.LabelMember]
	to := ""
	for name := range members(t.Context(), t, d) {
		if name != from {
			to = name
		}
	}
	since := time.Now()
	merge(t, d, fmt.Sprintf(`{"switchover":{"id":"e2e-1","to":%q}}`, to))
	eventually(t, "the leader changes", databaseCondition(d, v1alpha1.TypeSwitchedOver, corev1.ConditionTrue, v1alpha1.ReasonSwitchedOver, to))
	if got := leader(t, d).Labels[observev1alpha1.LabelMember]; got != to {
		t.Errorf("%s leads, want %s", got, to)
	}
	within(t, creation, "all follow", running(d))
	gaps := w.gapsSince(t.Context(), since)
	t.Logf("switchover: longest gap %.1f s (aim %.1f s): %+v", longest(gaps), planned, gaps)
	if longest(gaps) > planned+slack {
		t.Errorf("writes paused for %.1f s", longest(gaps))
	}

	// The Topology is recreated while the request is still in the spec: the leader stays.
	tp := &observev1alpha1.Topology{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	before, err := get(t.Context(), tp, d.Namespace, d.Name)
	if err != nil {
		t.Fatal(err)
	}
	merge(t, d, fmt.Sprintf(`{"switchover":{"id":"e2e-2","to":%q}}`, from))
	eventually(t, "the leader changes back", databaseCondition(d, v1alpha1.TypeSwitchedOver, corev1.ConditionTrue, v1alpha1.ReasonSwitchedOver, from))
	within(t, creation, "all follow", running(d))
	merge(t, d, fmt.Sprintf(`{"switchover":{"id":"e2e-1","to":%q}}`, to))
	time.Sleep(20 * time.Second)
	if got := leader(t, d).Labels[observev1alpha1.LabelMember]; got != from {
		t.Errorf("a repeated ID changed the leader again: %s is the leader, Topology was %+v", got, before.Status.AtProvider.Switchovers)
	}
}

// pausedByHand: a pause by Patroni's own tool stays until it is resumed by hand, and the conditions report it.
func pausedByHand(t *testing.T, d *v1alpha1.Database, _ writer) {
	t.Helper()
	p := leader(t, d)
	eventually(t, "the condition reports that no standby would be promoted", func(ctx context.Context) error {
		// An apply by Crossplane at the same moment can revert it. The condition shows that, and the pause is repeated.
		if out, err := execIn(ctx, &p, "postgres", "patronictl pause --wait", "sh"); err != nil && !strings.Contains(out, "already paused") {
			return fmt.Errorf("%w: %s", err, out)
		}
		time.Sleep(5 * time.Second)

		return databaseCondition(d, v1alpha1.TypeHighlyAvailable, corev1.ConditionFalse, v1alpha1.ReasonPaused, "patronictl resume")(ctx)
	})
	// Crossplane must not revert it from now on.
	time.Sleep(40 * time.Second)
	if err := databaseCondition(d, v1alpha1.TypeHighlyAvailable, corev1.ConditionFalse, v1alpha1.ReasonPaused)(t.Context()); err != nil {
		t.Errorf("the pause did not last: %v", err)
	}
	shell(t, leader(t, d), "patronictl resume --wait")
	within(t, timeout, "a standby would be promoted again", databaseCondition(d, v1alpha1.TypeHighlyAvailable, corev1.ConditionTrue, v1alpha1.ReasonStandbyInSync))
}

// hibernates and comes back with every row and the same leader.
func hibernates(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	led := leader(t, d).Labels[observev1alpha1.LabelMember]
	start := time.Now()
	merge(t, d, `{"hibernated":true}`)
	within(t, creation, "all are stopped", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		if got.Status.Phase != v1alpha1.DatabaseHibernated || len(members(ctx, t, d)) > 0 {
			return fmt.Errorf("phase is %s; %s", got.Status.Phase, unhappy(got))
		}

		return nil
	})
	t.Logf("stopped after %s", time.Since(start).Round(time.Second))

	start = time.Now()
	merge(t, d, `{"hibernated":false}`)
	within(t, creation, "it runs again", running(d))
	t.Logf("back after %s", time.Since(start).Round(time.Second))
	if got := leader(t, d).Labels[observev1alpha1.LabelMember]; got != led {
		t.Errorf("%s leads, want %s, which led last", got, led)
	}
}
