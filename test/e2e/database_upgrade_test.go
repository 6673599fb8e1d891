// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

const (
	// upgrading is the maximum duration of an upgrade of a small Database: another member with a copy, a test, and the
	// rest.
	upgrading = 8 * time.Minute

	// upgradeGap is the maximum pause of writes in seconds when clients are switched to the later version. The leader
	// stops, the copy is upgraded and promoted, and the function updates the Service.
	upgradeGap = 45
)

// TestDatabaseUpgrade upgrades 15 to 17 while a client writes, and no write is lost. Problems are reported before
// anything changes, and undo returns to the previous data.
func TestDatabaseUpgrade(t *testing.T) {
	ns := namespace(t)
	d := backedUpDatabase(t, ns, func(d *v1alpha1.Database) { d.Spec.Version = "15" })

	app := psql(t, d, "app")
	app.must(t, `create table ledger (id int primary key); insert into ledger select generate_series(1, 50)`)
	w := write(t, d, leader(t, d).Spec.NodeName, byService, 0)

	preparesAndWaits(t, d, app)
	switches(t, d, app, w)
	goesBack(t, d, app)
}

// preparesAndWaits: a copy is created beside the previous version and its problems are reported. Nothing is switched
// before the approval.
func preparesAndWaits(t *testing.T, d *v1alpha1.Database, app session) {
	t.Helper()
	// pg_upgrade rejects columns that hold the object identifier of a catalogue entry.
	app.must(t, `create table stands_in_the_way (c regproc)`)
	merge(t, d, `{"version":"17","upgrade":{"keepOldFor":"2h"},"maintenance":{"approval":"Manual"}}`)
	within(t, upgrading, "what blocks the upgrade is reported", databaseCondition(d, v1alpha1.TypeUpgraded, corev1.ConditionFalse, v1alpha1.ReasonUpgradeIncompatible, "tries again every minute"))
	app.must(t, `drop table stands_in_the_way`)
	within(t, upgrading, "the copy is ready", databaseCondition(d, v1alpha1.TypeUpgraded, corev1.ConditionFalse, v1alpha1.ReasonChangeNotApproved, "spec.maintenance.approve"))

	// The status follows the conditions one pass later.
	eventually(t, "the status has the expected pause", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		if u := got.Status.Upgrade; u == nil || u.Phase != v1alpha1.UpgradeReady || u.GapSeconds == 0 || u.From != "15" || u.To != "17" {
			return fmt.Errorf("the upgrade is reported as %+v", u)
		}

		return nil
	})
	if v := app.must(t, `show server_version_num`); !strings.HasPrefix(v, "15") {
		t.Errorf("without an approval clients were switched to %s", v)
	}
}

// switches: clients use the later version, with every acknowledged commit.
func switches(t *testing.T, d *v1alpha1.Database, app session, w writer) {
	t.Helper()
	begun := approve(t, d)
	within(t, upgrading, "clients are led to the later version", databaseCondition(d, v1alpha1.TypeUpgraded, corev1.ConditionTrue, v1alpha1.ReasonUpgraded, "generation 2 of version 17"))
	eventually(t, "the rows are there", rows(t, app, 50))
	if v := app.must(t, `show server_version_num`); !strings.HasPrefix(v, "17") {
		t.Errorf("clients are led to %s", v)
	}
	within(t, creation, "it runs with all members", running(d))
	within(t, timeout, "the former version is stopped", noPods(d, ""))
	within(t, backedUp, "the later version has a backup of its own", databaseCondition(d, v1alpha1.TypeBackupFresh, corev1.ConditionTrue, v1alpha1.ReasonFresh))

	gap := longest(w.gapsSince(t.Context(), begun))
	t.Logf("writes stood still for %.1f s", gap)
	if gap > upgradeGap {
		t.Errorf("writes stood still for %.1f s, want at most %d", gap, upgradeGap)
	}

	// Every acknowledged row of the writer is in the later version.
	a := w.end(t)
	t.Logf("up to the later version: %+v", a)
	if len(a.Lost) > 0 || a.Acknowledged == 0 {
		t.Errorf("%d of %d acknowledged rows are lost: %v", len(a.Lost), a.Acknowledged, a.Lost)
	}
}

// approve the change that waits for it, and return when.
func approve(t *testing.T, d *v1alpha1.Database) time.Time {
	t.Helper()
	var hash string
	eventually(t, "a change waits for approval", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		c := got.Status.Change
		if c == nil || c.State != v1alpha1.ChangeWaiting {
			return fmt.Errorf("status.change is %+v", c)
		}
		// The status follows one pass later: it may still have the change before.
		if c.Hash == got.Spec.Maintenance.Approve {
			return errors.New("status.change has what was approved before")
		}
		hash = c.Hash

		return nil
	})
	begun := time.Now()
	merge(t, d, fmt.Sprintf(`{"maintenance":{"approve":%q}}`, hash))

	return begun
}

// goesBack to the previous version, which has no commit since the upgrade.
func goesBack(t *testing.T, d *v1alpha1.Database, app session) {
	t.Helper()

	app.must(t, `insert into ledger values (51)`)
	merge(t, d, `{"version":"15"}`)
	within(t, timeout, "the version alone is no way back", databaseCondition(d, v1alpha1.TypeAccepted, corev1.ConditionFalse, v1alpha1.ReasonVersionChangeUnsupported, "spec.upgrade.undo"))
	merge(t, d, `{"upgrade":{"undo":"upgrade-15-17"}}`)
	within(t, upgrading, "clients are led back", databaseCondition(d, v1alpha1.TypeUpgraded, corev1.ConditionFalse, v1alpha1.ReasonUpgradeUndone, "only in generation 2"))
	eventually(t, "the rows of before are there, and none that came later", rows(t, app, 50))
	within(t, timeout, "the later version is stopped", noPods(d, ".g2"))
	within(t, creation, "it runs with all members", running(d))
}

// noPods of a generation exist.
func noPods(d *v1alpha1.Database, generation string) func(context.Context) error {
	return func(ctx context.Context) error {
		list := &corev1.PodList{}
		if err := kube.List(ctx, list, client.InNamespace(d.Namespace), client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name + generation}); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return errors.New("pod " + list.Items[0].Name + " is there")
		}

		return nil
	}
}
