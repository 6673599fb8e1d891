// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// backedUp is the maximum duration of a backup after it is due, including one failed attempt.
const backedUp = 6 * time.Minute

// nextBackup of a Database after the one with an ID, or the first one: it waits until the status has it, and returns
// its ID.
func nextBackup(t *testing.T, d *v1alpha1.Database, before string) string {
	t.Helper()
	var id string
	within(t, backedUp, fmt.Sprintf("a backup after %q is in the status", before), func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		if b := got.Status.Backup; b != nil && b.Last != nil {
			id = b.Last.ID
		}
		if id == before {
			return fmt.Errorf("the last is %q: %s", id, unhappy(got))
		}

		return nil
	})

	return id
}

// TestDatabaseBackup: three lines enable backups, one field takes a backup at once, and another Database starts with
// the data of an earlier moment.
func TestDatabaseBackup(t *testing.T) {
	ns := namespace(t)
	d := database(ns, "orders-db", func(d *v1alpha1.Database) {
		d.Spec.Replicas = 2
		d.Spec.Backup = &v1alpha1.DatabaseBackup{Schedule: "0 */6 * * *", Retention: "30d", OnDelete: v1alpha1.BackupsDeleted}
	})
	createDatabase(t, d)

	first := nextBackup(t, d, "")
	for ct, reason := range map[string]struct {
		t func(context.Context) error
	}{
		"fresh":      {databaseCondition(d, v1alpha1.TypeBackupFresh, corev1.ConditionTrue, v1alpha1.ReasonFresh)},
		"archived":   {databaseCondition(d, v1alpha1.TypeArchiveHealthy, corev1.ConditionTrue, v1alpha1.ReasonArchiving)},
		"continuous": {databaseCondition(d, v1alpha1.TypePITRContinuous, corev1.ConditionTrue, v1alpha1.ReasonContinuous)},
	} {
		within(t, time.Minute, "backups are "+ct, reason.t)
	}

	app := psql(t, d, "app")
	app.must(t, `create table ledger (id int primary key); insert into ledger select generate_series(1, 50)`)
	at := app.must(t, `select to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`)
	app.must(t, `insert into ledger values (51)`)

	// The latest rows are in the next backup, which waits for its archive.
	patch := fmt.Appendf(nil, `{"spec":{"backup":{"now":"after-51"}}}`)
	if err := kube.Patch(t.Context(), d.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	nextBackup(t, d, first)

	c := database(ns, "orders-copy", func(c *v1alpha1.Database) {
		c.Spec.Replicas = 1
		c.Spec.Databases = []v1alpha1.LogicalDatabase{{Name: "orders_db"}}
		c.Spec.Consumers = []v1alpha1.Consumer{{Name: "auditor"}}
		c.Spec.From = &v1alpha1.DatabaseSource{Database: &v1alpha1.DatabaseSourceDatabase{Name: d.Name, At: v1alpha1.Moment(at)}}
	})
	t.Logf("the copy is Ready after %s", createDatabase(t, c).Round(time.Second))
	if got := psql(t, c, "auditor").must(t, `select count(*)::text || ' ' || max(id)::text from ledger`); got != "50 50" {
		t.Errorf("the copy has rows %s, want those of the moment: 50 50", got)
	}
	if got := app.must(t, `select count(*) from ledger`); got != "51" {
		t.Errorf("the source has %s rows after it was copied, want 51", got)
	}

	early := database(ns, "orders-early", func(c *v1alpha1.Database) {
		c.Spec.Replicas = 1
		c.Spec.From = &v1alpha1.DatabaseSource{Database: &v1alpha1.DatabaseSourceDatabase{Name: d.Name, At: "2026-01-01T00:00:00Z"}}
	})
	if err := apply(t.Context(), early); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteDatabase(t, early) })
	within(t, creation, "a moment before the first backup is refused", databaseCondition(early, v1alpha1.TypeAvailable, corev1.ConditionFalse,
		v1alpha1.ReasonRestoreFailed, "the first time that can be restored is"))
}

// TestDatabaseArchiveAway: without the bucket for ten minutes, clients notice nothing and the Database reports the
// problem. When the bucket is back, archiving continues, and no moment is missing.
func TestDatabaseArchiveAway(t *testing.T) {
	const away = 10 * time.Minute
	ns := namespace(t)
	d := database(ns, "away-db", func(d *v1alpha1.Database) {
		d.Spec.Replicas = 1
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "writer"}}
		d.Spec.Backup = &v1alpha1.DatabaseBackup{OnDelete: v1alpha1.BackupsDeleted}
	})
	createDatabase(t, d)
	first := nextBackup(t, d, "")
	w := write(t, d, leader(t, d).Spec.NodeName, byService, 0)
	if err := scaleOutside(t.Context(), "s3", 0); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	back := func() {
		if err := scaleOutside(context.WithoutCancel(t.Context()), "s3", 1); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(back)
	within(t, 5*time.Minute, "the status reports that archiving fails", databaseCondition(d, v1alpha1.TypeArchiveHealthy, corev1.ConditionFalse, v1alpha1.ReasonArchiveFailing))
	patchBackup(t, d, `{"now":"away"}`)
	within(t, away, "a backup fails", func(ctx context.Context) error {
		jobs := &batchv1.JobList{}
		if err := kube.List(ctx, jobs, client.InNamespace(ns)); err != nil {
			return err
		}
		for _, j := range jobs.Items {
			if slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
				return c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue
			}) {
				return nil
			}
		}

		return errors.New("no Job failed")
	})
	time.Sleep(time.Until(since.Add(away)))
	back()
	within(t, 5*time.Minute, "archiving goes on", databaseCondition(d, v1alpha1.TypeArchiveHealthy, corev1.ConditionTrue, v1alpha1.ReasonArchiving))
	within(t, time.Minute, "no moment is missing", databaseCondition(d, v1alpha1.TypePITRContinuous, corev1.ConditionTrue, v1alpha1.ReasonContinuous))
	within(t, time.Minute, "the status reports that a backup failed", databaseCondition(d, v1alpha1.TypeBackupFresh, corev1.ConditionFalse, v1alpha1.ReasonBackupFailed, `"away"`))
	patchBackup(t, d, `{"now":"back"}`)
	nextBackup(t, d, first)
	within(t, time.Minute, "the backup is fresh again", databaseCondition(d, v1alpha1.TypeBackupFresh, corev1.ConditionTrue, v1alpha1.ReasonFresh))
	a := w.end(t)
	t.Logf("a client that wrote all the while: %+v", a)
	if a.Failed > 0 || len(a.Lost) > 0 || a.Acknowledged == 0 {
		t.Errorf("%d writes failed and %d are lost of %d", a.Failed, len(a.Lost), a.Acknowledged)
	}
}
