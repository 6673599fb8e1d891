// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// mysqlLedger is a table with fifty rows.
const mysqlLedger = `CREATE TABLE ledger (id INT PRIMARY KEY); ` +
	`INSERT INTO ledger WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 50) SELECT n FROM s`

// mysqlRows are number and last of the rows of that table, and mysqlMoment the clock of the server.
const (
	mysqlRows   = `SELECT CONCAT(COUNT(*), ' ', MAX(id)) FROM ledger`
	mysqlMoment = `SELECT DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ')`
)

// backedUpMySQL creates a Database with backups on one node, and waits for the first one.
func backedUpMySQL(t *testing.T, backup *v1alpha1.DatabaseBackup) *v1alpha1.Database {
	t.Helper()
	d := mysqlDatabase(namespace(t), func(d *v1alpha1.Database) {
		d.Spec.Replicas = 2
		d.Spec.Availability.Spread = v1alpha1.SpreadAnywhere
		d.Spec.Backup = backup
		d.Spec.Backup.OnDelete = v1alpha1.BackupsDeleted
	})
	releaseGenerations(t, d)
	t.Logf("Ready after %s", createDatabase(t, d).Round(time.Second))
	nextBackup(t, d, "")

	return d
}

// TestDatabaseMySQLBackup: the first backup is taken and verified by itself, one field takes another, a copy has exactly the rows of a
// moment, and a bucket that is away is reported and costs no moment. An assertion that is false fails its verification.
func TestDatabaseMySQLBackup(t *testing.T) {
	d := backedUpMySQL(t, &v1alpha1.DatabaseBackup{Verify: &v1alpha1.BackupVerification{
		Assertions: []v1alpha1.BackupAssertion{{Database: "orders", SQL: "SELECT TRUE"}},
	}})
	archives := func(when string) {
		t.Helper()
		within(t, 5*time.Minute, "writes reach the archive "+when, databaseCondition(d, v1alpha1.TypeArchiveHealthy, corev1.ConditionTrue, v1alpha1.ReasonArchiving))
		within(t, time.Minute, "no moment is missing "+when, databaseCondition(d, v1alpha1.TypePITRContinuous, corev1.ConditionTrue, v1alpha1.ReasonContinuous))
	}
	archives("at first")
	within(t, time.Minute, "the backup is fresh", databaseCondition(d, v1alpha1.TypeBackupFresh, corev1.ConditionTrue, v1alpha1.ReasonFresh))
	within(t, verifiedWithin, "the first backup is verified", databaseCondition(d, v1alpha1.TypeBackupVerified, corev1.ConditionTrue, v1alpha1.ReasonVerified))

	api := connect(t, d, "api")
	api.must(t, mysqlLedger)
	at := api.must(t, mysqlMoment)
	api.must(t, `INSERT INTO ledger VALUES (51)`)
	got, err := get(t.Context(), &v1alpha1.Database{}, d.Namespace, d.Name)
	if err != nil {
		t.Fatal(err)
	}
	first := got.Status.Backup.Last.ID
	patchBackup(t, d, `{"now":"after-51","restorePoint":"v1"}`)
	nextBackup(t, d, first)
	within(t, 2*time.Minute, "the moment has its name", databaseCondition(d, v1alpha1.TypeRestorePointMade, corev1.ConditionTrue, v1alpha1.ReasonRestorePointMade))
	api.must(t, `INSERT INTO ledger VALUES (52)`)

	for name, from := range map[string]struct {
		v1alpha1.DatabaseSourceDatabase

		rows string
	}{
		"orders-moment": {v1alpha1.DatabaseSourceDatabase{At: v1alpha1.Moment(at)}, "50 50"},
		"orders-point":  {v1alpha1.DatabaseSourceDatabase{RestorePoint: "v1"}, "51 51"},
	} {
		t.Run(name, func(t *testing.T) { mysqlCopy(t, d, name, from.DatabaseSourceDatabase, from.rows) })
	}
	if got := api.must(t, mysqlRows); got != "52 52" {
		t.Errorf("the source has rows %s after it was copied, want 52 52", got)
	}

	t.Run("ArchiveAway", func(t *testing.T) { mysqlArchiveAway(t, d) })
	archives("again")

	patchBackup(t, d, `{"verify":{"now":"wrong","assertions":[{"database":"orders","sql":"SELECT TRUE"},{"database":"orders","sql":"SELECT COUNT(*) = 49 FROM ledger WHERE id <= 50"}]}}`)
	within(t, verifiedWithin, "the assertion that does not hold is reported", databaseCondition(d, v1alpha1.TypeBackupVerified, corev1.ConditionFalse,
		v1alpha1.ReasonAssertionFailed, "assertions[1]"))
	patchBackup(t, d, `{"verify":{"now":"right","assertions":[{"database":"orders","sql":"SELECT COUNT(*) = 50 FROM ledger WHERE id <= 50"}]}}`)
	within(t, verifiedWithin, "the assertion that holds is reported", databaseCondition(d, v1alpha1.TypeBackupVerified, corev1.ConditionTrue, v1alpha1.ReasonVerified))
}

// mysqlCopy of a Database has exactly these rows.
func mysqlCopy(t *testing.T, d *v1alpha1.Database, name string, from v1alpha1.DatabaseSourceDatabase, want string) {
	t.Helper()
	from.Name = d.Name
	consumer := strings.Replace(name, "orders", "auditor", 1) // which have at most 20 letters
	c := database(d.Namespace, name, func(c *v1alpha1.Database) {
		c.Spec.Engine, c.Spec.Version, c.Spec.Replicas = d.Spec.Engine, d.Spec.Version, 1
		c.Spec.Resources = d.Spec.Resources
		c.Spec.Databases = d.Spec.Databases
		c.Spec.Consumers = []v1alpha1.Consumer{{Name: consumer}}
		c.Spec.From = &v1alpha1.DatabaseSource{Database: &from}
	})
	t.Logf("the copy is Ready after %s", createDatabase(t, c).Round(time.Second))
	auditor := connect(t, c, consumer)
	if got := auditor.must(t, mysqlRows); got != want {
		t.Errorf("the copy has rows %s, want %s", got, want)
	}
	auditor.must(t, `INSERT INTO ledger VALUES (1000)`)
}

// mysqlArchiveAway takes the bucket away until the status reports it. Clients notice nothing.
func mysqlArchiveAway(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	w := write(t, d, leader(t, d).Spec.NodeName, byService, 0)
	if err := scaleOutside(t.Context(), "s3", 0); err != nil {
		t.Fatal(err)
	}
	back := func() {
		if err := scaleOutside(context.WithoutCancel(t.Context()), "s3", 1); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(back)
	within(t, 5*time.Minute, "the status reports that archiving fails", databaseCondition(d, v1alpha1.TypeArchiveHealthy, corev1.ConditionFalse, v1alpha1.ReasonArchiveFailing))
	back()
	within(t, 5*time.Minute, "archiving goes on", databaseCondition(d, v1alpha1.TypeArchiveHealthy, corev1.ConditionTrue, v1alpha1.ReasonArchiving))
	a := w.end(t)
	t.Logf("a client that wrote all the while: %+v", a)
	if a.Failed > 0 || len(a.Lost) > 0 || a.Acknowledged == 0 {
		t.Errorf("%d writes failed and %d are lost of %d", a.Failed, len(a.Lost), a.Acknowledged)
	}
}

// TestDatabaseMySQLRestore restores the rows of an earlier moment in place, with the same name and password. No row of the previous
// generation is lost, and undo brings all of them back.
func TestDatabaseMySQLRestore(t *testing.T) {
	d := backedUpMySQL(t, &v1alpha1.DatabaseBackup{})
	api := connect(t, d, "api")
	api.must(t, mysqlLedger)
	at := api.must(t, mysqlMoment)
	api.must(t, `INSERT INTO ledger VALUES (51)`)
	restoreAndUndo(t, d, api, at, `SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()`, func() {})
}
