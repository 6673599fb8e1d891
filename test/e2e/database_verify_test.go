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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// verifiedWithin is the maximum duration of a verification of an empty Database from its request: a volume, a restore,
// all checks, and the minute until the leader reads the result.
const verifiedWithin = 6 * time.Minute

// patchBackup merges fields into spec.backup.
func patchBackup(t *testing.T, d *v1alpha1.Database, fields string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"backup":%s}}`, fields)
	if err := kube.Patch(t.Context(), d.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// TestDatabaseVerify restores the first backup as a proof. A false assertion is reported by its position until the data
// or the assertion is right. Nothing is left over. A copy to a restore point is exact.
func TestDatabaseVerify(t *testing.T) {
	ns := namespace(t)
	d := database(ns, "proved-db", func(d *v1alpha1.Database) {
		d.Spec.Replicas = 1
		d.Spec.Databases = []v1alpha1.LogicalDatabase{{Name: "orders_db"}}
		d.Spec.Backup = &v1alpha1.DatabaseBackup{
			OnDelete: v1alpha1.BackupsDeleted,
			Verify: &v1alpha1.BackupVerification{
				MaxRestoreTime: &metav1.Duration{Duration: 30 * time.Minute},
				Assertions:     []v1alpha1.BackupAssertion{{Database: "orders_db", SQL: "select true"}},
			},
		}
	})
	createDatabase(t, d)
	nextBackup(t, d, "")
	within(t, verifiedWithin, "the first backup is verified", databaseCondition(d, v1alpha1.TypeBackupVerified, corev1.ConditionTrue, v1alpha1.ReasonVerified))
	within(t, time.Minute, "the status reports the same", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, ns, d.Name)
		if err != nil {
			return err
		}
		v := got.Status.Backup.LastVerified
		if v == nil || v.Backup != got.Status.Backup.Last.ID || v.Took == "" || v.ReplayedTo == nil || v.Assertions != 1 {
			return fmt.Errorf("the last verification is reported as %+v", v)
		}
		t.Logf("the restore took %s, of the backup %s, replayed to %s", v.Took, v.Backup, v.ReplayedTo)

		return nil
	})

	app := psql(t, d, "app")
	app.must(t, `create table ledger (id int primary key); insert into ledger select generate_series(1, 50)`)
	patchBackup(t, d, `{"restorePoint":"v1"}`)
	within(t, 2*time.Minute, "the moment has its name", databaseCondition(d, v1alpha1.TypeRestorePointMade, corev1.ConditionTrue, v1alpha1.ReasonRestorePointMade))
	app.must(t, `insert into ledger values (51)`)

	// The restore point has started another segment, so everything before it is archived.
	patchBackup(t, d, `{"verify":{"now":"wrong","assertions":[{"database":"orders_db","sql":"select true"},{"database":"orders_db","sql":"select count(*) = 49 from ledger where id <= 50"}]}}`)
	within(t, verifiedWithin, "the assertion that does not hold is reported", databaseCondition(d, v1alpha1.TypeBackupVerified, corev1.ConditionFalse,
		v1alpha1.ReasonAssertionFailed, "assertions[1]", "does not hold"))
	patchBackup(t, d, `{"verify":{"now":"right","assertions":[{"database":"orders_db","sql":"select count(*) = 50 from ledger where id <= 50"}]}}`)
	within(t, verifiedWithin, "the assertion that holds is reported", databaseCondition(d, v1alpha1.TypeBackupVerified, corev1.ConditionTrue, v1alpha1.ReasonVerified))
	within(t, 2*time.Minute, "nothing is left of verifications", func(ctx context.Context) error {
		claims := &corev1.PersistentVolumeClaimList{}
		if err := kube.List(ctx, claims, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/verification-of": d.Name}); err != nil {
			return err
		}
		if n := len(claims.Items); n > 0 {
			return fmt.Errorf("%d volume claims are there still", n)
		}

		return nil
	})

	// The same name again, after another name, is not another moment.
	before := restorePoints(t, d)
	patchBackup(t, d, `{"restorePoint":"v2"}`)
	within(t, 2*time.Minute, "another moment has its name", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, ns, d.Name)
		if err == nil && len(got.Status.Backup.RestorePoints) != 2 {
			err = errors.New(unhappy(got))
		}

		return err
	})
	patchBackup(t, d, `{"restorePoint":"v1"}`)
	within(t, time.Minute, "the first name is there still", databaseCondition(d, v1alpha1.TypeRestorePointMade, corev1.ConditionTrue, v1alpha1.ReasonRestorePointMade, "v1"))
	if after := restorePoints(t, d); len(after) != 2 || !slices.Contains(after, before[0]) {
		t.Errorf("restore points were %v and are %v", before, after)
	}

	c := database(ns, "proved-copy", func(c *v1alpha1.Database) {
		c.Spec.Replicas = 1
		c.Spec.Databases = []v1alpha1.LogicalDatabase{{Name: "orders_db"}}
		c.Spec.Consumers = []v1alpha1.Consumer{{Name: "auditor"}}
		c.Spec.From = &v1alpha1.DatabaseSource{Database: &v1alpha1.DatabaseSourceDatabase{Name: d.Name, RestorePoint: "v1"}}
	})
	t.Logf("the copy is Ready after %s", createDatabase(t, c).Round(time.Second))
	if got := psql(t, c, "auditor").must(t, `select count(*)::text || ' ' || max(id)::text from ledger`); got != "50 50" {
		t.Errorf("the copy has rows %s, want those of the restore point: 50 50", got)
	}
}

// restorePoints in the status of a Database, as text.
func restorePoints(t *testing.T, d *v1alpha1.Database) []string {
	t.Helper()
	got, err := get(t.Context(), &v1alpha1.Database{}, d.Namespace, d.Name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range got.Status.Backup.RestorePoints {
		out = append(out, p.Name+" "+p.LSN)
	}
	if len(out) == 0 {
		t.Fatal("the status has no restore points")
	}

	return out
}
