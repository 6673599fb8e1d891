// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// snapshotted is the maximum duration of a snapshot that is taken every minute.
const snapshotted = 4 * time.Minute

// nextSnapshot of a Database after the one with a name, or the first one: it waits until the status has it.
func nextSnapshot(t *testing.T, d *v1alpha1.Database, before string) v1alpha1.SnapshotTaken {
	t.Helper()
	var last v1alpha1.SnapshotTaken
	within(t, snapshotted, fmt.Sprintf("a snapshot after %q is in the status", before), func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		if b := got.Status.Backup; b != nil && b.Snapshots != nil && b.Snapshots.Last != nil {
			last = *b.Snapshots.Last
		}
		if last.Name == before {
			return fmt.Errorf("the last is %q: %s", last.Name, unhappy(got))
		}

		return nil
	})

	return last
}

// snapshotsIn a namespace, by name. There is at least one.
func snapshotsIn(ctx context.Context, ns string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshotList"})
	if err := kube.List(ctx, list, client.InNamespace(ns)); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, errors.New("there is no snapshot")
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })

	return list.Items, nil
}

// TestDatabaseSnapshot: the storage takes snapshots of a volume under load, on a schedule, and another Database begins with one of them
// and has every row that was acknowledged since. Without the class, nothing is begun.
func TestDatabaseSnapshot(t *testing.T) {
	// It stays: only Databases with its class reach it.
	if err := clusterCommand("add-ons", "snapshots"); err != nil {
		t.Fatal(err)
	}
	withGrowingPlan(t)
	ns := namespace(t)
	onXFS := func(d *v1alpha1.Database) {
		d.Spec.Replicas, d.Spec.Storage, d.Spec.Plan, d.Spec.Resources = 1, resource.MustParse("1Gi"), "grows", nil
	}
	d := database(ns, "orders-db", onXFS, func(d *v1alpha1.Database) {
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app"}, {Name: "writer"}}
		d.Spec.Backup = &v1alpha1.DatabaseBackup{
			OnDelete:  v1alpha1.BackupsDeleted,
			Snapshots: &v1alpha1.DatabaseSnapshots{ClassName: "no-such-class", Schedule: "* * * * *", Keep: 4},
		}
	})
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	within(t, timeout, "a class that there is not is refused", databaseCondition(d, v1alpha1.TypeAccepted, corev1.ConditionFalse, v1alpha1.ReasonSnapshotsUnavailable, "no-such-class"))
	d.Spec.Backup.Snapshots.ClassName = grows
	createDatabase(t, d)
	backup := nextBackup(t, d, "")

	app := psql(t, d, "app")
	app.must(t, `create table ledger (id int primary key); insert into ledger select generate_series(1, 50)`)
	node := leader(t, d).Spec.NodeName
	w := write(t, d, node, byService, 0)
	first := nextSnapshot(t, d, "")
	within(t, timeout, "it is reported", databaseCondition(d, v1alpha1.TypeSnapshotFresh, corev1.ConditionTrue, v1alpha1.ReasonFresh))
	app.must(t, `insert into ledger values (51)`)
	time.Sleep(time.Second)
	at := app.must(t, `select to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`)
	app.must(t, `insert into ledger values (52)`)
	a := w.end(t)
	// The latest rows are in the next backup, which waits for its archive.
	patchBackup(t, d, `{"now":"after-the-rows"}`)
	nextBackup(t, d, backup)

	copyOf := func(name string, from v1alpha1.DatabaseSourceDatabase) (string, string) {
		c := database(ns, name, onXFS, func(c *v1alpha1.Database) {
			c.Spec.Databases = []v1alpha1.LogicalDatabase{{Name: "orders_db"}}
			c.Spec.Consumers = []v1alpha1.Consumer{{Name: "auditor"}}
			// Volumes of this class, and their snapshots, are on one node.
			c.Spec.Pod = &v1alpha1.DatabasePod{Scheduling: v1alpha1.Scheduling{NodeSelector: map[string]v1alpha1.LabelValue{corev1.LabelHostname: v1alpha1.LabelValue(node)}}}
			c.Spec.From = &v1alpha1.DatabaseSource{Database: &from}
		})
		took := createDatabase(t, c)
		t.Logf("%s is Ready after %s", name, took.Round(time.Second))
		claim := &corev1.PersistentVolumeClaim{}
		if err := kube.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "data-" + name + "-a-0"}, claim); err != nil {
			t.Fatal(err)
		}
		if s := claim.Spec.DataSource; s == nil || s.Kind != "VolumeSnapshot" || s.Name != from.Snapshot {
			t.Errorf("the volume of %s was filled from %+v, want %s", name, s, from.Snapshot)
		}
		p := psql(t, c, "auditor")

		return p.must(t, `select count(*)::text || ' ' || max(id)::text from ledger`), p.must(t, `select count(*) from account_rows`)
	}
	if rows, _ := copyOf("orders-then", v1alpha1.DatabaseSourceDatabase{Name: d.Name, Snapshot: first.Name, At: v1alpha1.Moment(at)}); rows != "51 51" {
		t.Errorf("the copy of the moment has rows %s, want 51 51", rows)
	}
	// Snapshots go on without Capstan. Their names follow the time.
	startCapstan, since := stopCapstan(t), time.Now().UTC().Format(d.Name+"-20060102-150405")
	var last string
	within(t, snapshotted, "a snapshot is taken while Crossplane and Capstan are stopped", func(ctx context.Context) error {
		all, err := snapshotsIn(ctx, ns)
		if err != nil {
			return err
		}
		last = all[len(all)-1].GetName()
		if ready, _, _ := unstructured.NestedBool(all[len(all)-1].Object, "status", "readyToUse"); last < since || !ready {
			return fmt.Errorf("the last is %s", last)
		}

		return nil
	})
	startCapstan()
	within(t, snapshotted, "it is in the status", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		if s := got.Status.Backup.Snapshots; s == nil || s.Last == nil || s.Last.Name < last {
			return fmt.Errorf("the status has %+v", s)
		}

		return nil
	})
	rows, written := copyOf("orders-now", v1alpha1.DatabaseSourceDatabase{Name: d.Name, Snapshot: last})
	if rows != "52 52" || written != app.must(t, `select count(*) from account_rows`) {
		t.Errorf("the copy of the latest has rows %s, and %s of %d that were acknowledged", rows, written, a.Acknowledged)
	}
	if len(a.Lost) > 0 {
		t.Errorf("rows that were acknowledged are lost: %v", a.Lost)
	}

	// Four are kept.
	within(t, 2*snapshotted, "older snapshots are removed", func(ctx context.Context) error {
		all, err := snapshotsIn(ctx, ns)
		if err != nil {
			return err
		}
		if all[0].GetName() <= first.Name || len(all) > 5 {
			return fmt.Errorf("%d snapshots are there, the first is %s", len(all), all[0].GetName())
		}

		return nil
	})
	within(t, timeout, "the copy does not need its snapshot any more", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, ns, "orders-then")
		if err != nil {
			return err
		}

		return databaseCondition(got, v1alpha1.TypeAccepted, corev1.ConditionTrue, v1alpha1.ReasonValid)(ctx)
	})
}
