// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// volumeServed is the maximum time from the deletion of the pod for backups until the leader reports that archiving
// continues.
const volumeServed = 5 * time.Minute

// TestDatabaseBackupVolume: without a bucket, backups go to a volume. A moment is copied and restored in place from
// there, and a backup is verified. The loss of its pod costs no write and no moment. Other pods cannot connect. The
// volume grows and is removed on request.
func TestDatabaseBackupVolume(t *testing.T) {
	ns := namespace(t)
	d := database(ns, "vault-db", func(d *v1alpha1.Database) {
		d.Spec.Replicas = 2
		d.Spec.Databases = []v1alpha1.LogicalDatabase{{Name: "orders_db"}}
		d.Spec.Consumers = []v1alpha1.Consumer{{Name: "app"}, {Name: "writer"}}
		d.Spec.Backup = &v1alpha1.DatabaseBackup{
			OnDelete: v1alpha1.BackupsDeleted,
			To:       &v1alpha1.DatabaseBackupTarget{Volume: &v1alpha1.DatabaseBackupVolume{Size: new(resource.MustParse("2Gi")), StorageClassName: grows}},
			Verify:   &v1alpha1.BackupVerification{MaxRestoreTime: &metav1.Duration{Duration: 30 * time.Minute}},
		}
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		for _, suffix := range []string{".g2", ".repository"} {
			if err := release(ctx, &corev1.PersistentVolumeClaimList{}, client.InNamespace(ns),
				client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name + suffix}); err != nil {
				t.Errorf("cannot delete the volumes of %s: %v", suffix, err)
			}
		}
	})
	createDatabase(t, d)
	first := nextBackup(t, d, "")
	within(t, time.Minute, "changes reach the archive", databaseCondition(d, v1alpha1.TypeArchiveHealthy, corev1.ConditionTrue, v1alpha1.ReasonArchiving))
	within(t, time.Minute, "the status has the volume and the risk of a single place", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, ns, d.Name)
		if err != nil {
			return err
		}
		if v := got.Status.Backup.Volume; v == nil || v.Claim != "data-vault-db-repository-0" || v.Size != "2Gi" {
			return fmt.Errorf("the volume is reported as %+v", v)
		}
		if r := got.Status.Resilience; r == nil || len(r.Risks) == 0 {
			return errors.New("no risk reports that all backups are in one volume")
		}

		return nil
	})
	within(t, verifiedWithin, "the first backup is verified", databaseCondition(d, v1alpha1.TypeBackupVerified, corev1.ConditionTrue, v1alpha1.ReasonVerified))

	app := psql(t, d, "app")
	app.must(t, `create table ledger (id int primary key); insert into ledger select generate_series(1, 50)`)
	at := app.must(t, `select to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`)
	app.must(t, `insert into ledger values (51)`)

	// Only members, pods that take or verify backups, and copies can connect. The server accepts only TLS, and reports
	// that to a client without it.
	host, err := get(t.Context(), &corev1.Service{}, ns, "vault-db-repository")
	if err != nil {
		t.Fatal(err)
	}
	ask := fmt.Sprintf(`for i in 1 2 3 4 5 6; do printf 'GET / HTTP/1.0\r\n\r\n' | timeout 3 nc %s 8433 | grep -q 400 && exit 0; sleep 1; done; exit 1`, host.Spec.ClusterIP)
	stranger := caller(t, ns, "stranger", ask)
	copies := caller(t, ns, "copies", ask, func(p *corev1.Pod) { p.Labels = map[string]string{"capstan.dev/copy-of": d.Name} })
	if ends(t, stranger) {
		t.Error("a pod of the namespace reaches the volume of backups")
	}
	if !ends(t, copies) {
		t.Error("what is let in as a copy does not reach the volume of backups: then nothing is known of strangers either")
	}

	// A client writes while the volume's pod is away.
	w := write(t, d, leader(t, d).Spec.NodeName, byService, 0)
	pod, err := get(t.Context(), &corev1.Pod{}, ns, "vault-db-repository-0")
	if err != nil {
		t.Fatal(err)
	}
	if err := kube.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	within(t, volumeServed, "the volume is served again", func(ctx context.Context) error {
		again, err := get(ctx, &corev1.Pod{}, ns, pod.Name)
		if err != nil {
			return err
		}
		if again.UID == pod.UID {
			return errors.New("the pod is there still")
		}
		for _, c := range again.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}

		return errors.New("the pod is not ready")
	})
	patchBackup(t, d, `{"now":"after-51"}`)
	nextBackup(t, d, first)
	within(t, volumeServed, "archiving goes on", databaseCondition(d, v1alpha1.TypeArchiveHealthy, corev1.ConditionTrue, v1alpha1.ReasonArchiving))
	within(t, time.Minute, "no moment is missing", databaseCondition(d, v1alpha1.TypePITRContinuous, corev1.ConditionTrue, v1alpha1.ReasonContinuous))
	if a := w.end(t); len(a.Lost) > 0 || a.Acknowledged == 0 {
		t.Errorf("%d of %d acknowledged rows are lost: %v", len(a.Lost), a.Acknowledged, a.Lost)
	}

	c := database(ns, "vault-copy", func(c *v1alpha1.Database) {
		c.Spec.Replicas = 1
		c.Spec.Databases = []v1alpha1.LogicalDatabase{{Name: "orders_db"}}
		c.Spec.Consumers = []v1alpha1.Consumer{{Name: "auditor"}}
		c.Spec.From = &v1alpha1.DatabaseSource{Database: &v1alpha1.DatabaseSourceDatabase{Name: d.Name, At: v1alpha1.Moment(at)}}
	})
	t.Logf("the copy is Ready after %s", createDatabase(t, c).Round(time.Second))
	if got := psql(t, c, "auditor").must(t, `select count(*)::text || ' ' || max(id)::text from ledger`); got != "50 50" {
		t.Errorf("the copy has rows %s, want those of the moment: 50 50", got)
	}

	want(t, d, fmt.Sprintf(`{"id":"r1","at":%q}`, at))
	within(t, restoring, "clients are led to the data of the moment", databaseCondition(d, v1alpha1.TypeRestored, corev1.ConditionTrue, v1alpha1.ReasonRestored, "generation 2"))
	eventually(t, "the rows of the moment are there, and no other", rows(t, app, 50))
	within(t, backedUp, "the new generation has a backup of its own", databaseCondition(d, v1alpha1.TypeBackupFresh, corev1.ConditionTrue, v1alpha1.ReasonFresh))

	claim, err := get(t.Context(), &corev1.PersistentVolumeClaim{}, ns, "data-vault-db-repository-0")
	if err != nil {
		t.Fatal(err)
	}
	patchBackup(t, d, `{"to":{"volume":{"size":"3Gi"}}}`)
	within(t, 3*time.Minute, "the volume has grown", granted("3Gi", claim))

	deleteDatabase(t, d)
	within(t, timeout, "the volume is removed with the Database, as requested", func(ctx context.Context) error {
		_, err := get(ctx, &corev1.PersistentVolumeClaim{}, ns, claim.Name)
		if err == nil {
			err = errors.New("it is there still")
		}
		if apierrors.IsNotFound(err) {
			err = nil
		}

		return err
	})
}
