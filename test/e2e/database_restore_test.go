// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// restoring is the maximum duration of a restore in place of a small Database: another generation starts from the
// bucket, and the previous one stops.
const restoring = 8 * time.Minute

// backedUpDatabase creates a Database of two members with a client that writes and a first backup. At the end the
// volumes of all its generations are removed.
func backedUpDatabase(t *testing.T, ns string, modify ...func(*v1alpha1.Database)) *v1alpha1.Database {
	t.Helper()
	d := database(ns, "orders-db", append(modify, func(d *v1alpha1.Database) {
		d.Spec.Replicas = 2
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app"}, {Name: "writer"}}
		d.Spec.Backup = &v1alpha1.DatabaseBackup{OnDelete: v1alpha1.BackupsDeleted}
	})...)
	releaseGenerations(t, d)
	createDatabase(t, d)
	nextBackup(t, d, "")

	return d
}

// releaseGenerations deletes the volumes of later generations when the test ends.
func releaseGenerations(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		for _, g := range []string{".g2", ".g3"} {
			if err := release(ctx, &corev1.PersistentVolumeClaimList{}, client.InNamespace(d.Namespace),
				client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name + g}); err != nil {
				t.Errorf("cannot delete the volumes of a generation: %v", err)
			}
		}
	})
}

// TestDatabaseRestore restores the rows of an earlier moment in place, with the same name and password. No row of the
// previous generation is lost, and undo brings all of them back.
func TestDatabaseRestore(t *testing.T) {
	ns := namespace(t)
	d := backedUpDatabase(t, ns)

	app := psql(t, d, "app")
	app.must(t, `create table ledger (id int primary key); insert into ledger select generate_series(1, 50)`)
	at := app.must(t, `select to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`)
	app.must(t, `insert into ledger values (51)`)

	// A request for a moment before the first backup changes nothing.
	want(t, d, `{"id":"early","at":"2026-01-01T00:00:00Z"}`)
	within(t, timeout, "a moment before the first backup is refused",
		databaseCondition(d, v1alpha1.TypeRestored, corev1.ConditionFalse, v1alpha1.ReasonRestoreImpossible, "earliestRestorable"))

	restoreAndUndo(t, d, app, at, `select count(*) from information_schema.tables where table_schema = 'public'`, func() {
		// Applying the same ID again restores nothing.
		nothing := []byte(`{"spec":{"restore":null}}`)
		if err := kube.Patch(t.Context(), d.DeepCopy(), client.RawPatch(types.MergePatchType, nothing)); err != nil {
			t.Fatal(err)
		}
		within(t, timeout, "the status has no restore without a request", func(ctx context.Context) error {
			got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
			if err == nil && got.Status.Restore != nil {
				err = fmt.Errorf("the status has %+v", got.Status.Restore)
			}

			return err
		})
		want(t, d, fmt.Sprintf(`{"id":"r1","at":%q,"keepOldFor":"2h"}`, at))
		within(t, timeout, "it is known that it was done", databaseCondition(d, v1alpha1.TypeRestored, corev1.ConditionTrue, v1alpha1.ReasonRestored))
		if n := app.must(t, `select count(*) from ledger where id = 1000`); n != "1" {
			t.Error("the restore was carried out twice")
		}
	})
}

// restoreAndUndo restores a Database in place to a moment when its ledger had fifty of its 51 rows, does something else, and undoes the
// restore. tables is SQL that counts the tables of the consumer.
func restoreAndUndo(t *testing.T, d *v1alpha1.Database, app session, at, tables string, between func()) {
	t.Helper()
	// A client writes the whole time, to a table that is newer than the moment: every acknowledged row is in the
	// previous generation.
	w := write(t, d, leader(t, d).Spec.NodeName, byService, 0)
	want(t, d, fmt.Sprintf(`{"id":"r1","at":%q,"keepOldFor":"2h"}`, at))
	within(t, restoring, "clients are led to the data of the moment", databaseCondition(d, v1alpha1.TypeRestored, corev1.ConditionTrue, v1alpha1.ReasonRestored, "generation 2"))
	eventually(t, "the rows of the moment are there, and no other", rows(t, app, 50))
	// Its leader has stopped before, as the members decide; its pods end when Capstan stops them.
	within(t, timeout, "the previous generation is stopped", noPods(d, ""))
	if got := app.must(t, tables); got != "1" {
		t.Errorf("%s tables are there, want the one of then", got)
	}
	eventually(t, "it takes writes", func(context.Context) error {
		out, err := app.run(t, `insert into ledger values (1000)`)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}

		return nil
	})
	within(t, backedUp, "the new generation has a backup of its own", databaseCondition(d, v1alpha1.TypeBackupFresh, corev1.ConditionTrue, v1alpha1.ReasonFresh))
	between()

	want(t, d, `{"undo":"r1","keepOldFor":"2h"}`)
	within(t, restoring, "clients are led back", databaseCondition(d, v1alpha1.TypeRestored, corev1.ConditionTrue, v1alpha1.ReasonRestoreUndone))
	eventually(t, "all rows of before are there, and none of the other generation", rows(t, app, 51))
	stopped(t, d, ".g2")
	within(t, creation, "it runs with all members", running(d))

	// No acknowledged commit is missing: the previous generation took no write after clients were switched.
	a := w.end(t)
	t.Logf("while clients were led to another generation and back: %+v", a)
	if len(a.Lost) > 0 || a.Acknowledged == 0 {
		t.Errorf("%d of %d acknowledged rows are lost: %v", len(a.Lost), a.Acknowledged, a.Lost)
	}
}

// want requests a restore of a Database.
func want(t *testing.T, d *v1alpha1.Database, restore string) {
	t.Helper()
	// As a whole: no field of an earlier request must stay.
	patch := fmt.Appendf(nil, `[{"op":"add","path":"/spec/restore","value":%s}]`, restore)
	if err := kube.Patch(t.Context(), d.DeepCopy(), client.RawPatch(types.JSONPatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// rows of the ledger.
func rows(t *testing.T, app session, n int) func(context.Context) error {
	t.Helper()
	return func(context.Context) error {
		out, err := app.run(t, `select count(*), max(id) from ledger`)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		// Clients of the engines have different separators.
		if got := strings.Fields(strings.ReplaceAll(out, "|", " ")); !slices.Equal(got, []string{strconv.Itoa(n), strconv.Itoa(n)}) {
			return fmt.Errorf("the ledger has %s", got)
		}

		return nil
	}
}

// stopped members of a generation: it has no pod.
func stopped(t *testing.T, d *v1alpha1.Database, generation string) {
	t.Helper()
	list := &corev1.PodList{}
	if err := kube.List(t.Context(), list, client.InNamespace(d.Namespace),
		client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name + generation}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) > 0 {
		t.Errorf("clients were led away while pod %s of the generation before was there", list.Items[0].Name)
	}
}
