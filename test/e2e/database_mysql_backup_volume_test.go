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
	"sigs.k8s.io/controller-runtime/pkg/client"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestDatabaseMySQLBackupVolume: backups of MySQL go to a volume. The first is verified, a moment is copied from there, and the loss of the
// volume's pod costs no write and no moment. A pod without the right label cannot connect. The volume is removed on request.
func TestDatabaseMySQLBackupVolume(t *testing.T) {
	d := backedUpMySQL(t, &v1alpha1.DatabaseBackup{
		To:     &v1alpha1.DatabaseBackupTarget{Volume: &v1alpha1.DatabaseBackupVolume{Size: new(resource.MustParse("2Gi")), StorageClassName: grows}},
		Verify: &v1alpha1.BackupVerification{},
	})
	ns, name := d.Namespace, d.Name+"-repository-0"
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := release(ctx, &corev1.PersistentVolumeClaimList{}, client.InNamespace(ns),
			client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name + ".repository"}); err != nil {
			t.Errorf("cannot delete the volume of backups: %v", err)
		}
	})
	archives := databaseCondition(d, v1alpha1.TypeArchiveHealthy, corev1.ConditionTrue, v1alpha1.ReasonArchiving)
	within(t, time.Minute, "writes reach the archive", archives)
	within(t, 2*time.Minute, "the status has the volume", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, ns, d.Name)
		if err != nil {
			return err
		}
		if v := got.Status.Backup.Volume; v == nil || v.Claim != "data-"+name || v.Size != "2Gi" {
			return fmt.Errorf("the volume is reported as %+v", v)
		}

		return nil
	})
	within(t, verifiedWithin, "the first backup is verified", databaseCondition(d, v1alpha1.TypeBackupVerified, corev1.ConditionTrue, v1alpha1.ReasonVerified))
	api := connect(t, d, "api")
	api.must(t, mysqlLedger)
	at := api.must(t, mysqlMoment)
	api.must(t, `INSERT INTO ledger VALUES (51)`)

	host, err := get(t.Context(), &corev1.Service{}, ns, d.Name+"-repository")
	if err != nil {
		t.Fatal(err)
	}
	ask := fmt.Sprintf(`for i in 1 2 3 4 5 6; do printf 'GET / HTTP/1.0\r\n\r\n' | timeout 3 nc %s 8433 | grep -q 400 && exit 0; sleep 1; done; exit 1`, host.Spec.ClusterIP)
	unknown := caller(t, ns, "unknown", ask)
	copies := caller(t, ns, "copies", ask, func(p *corev1.Pod) { p.Labels = map[string]string{"capstan.dev/copy-of": d.Name} })
	if ends(t, unknown) {
		t.Error("a pod of the namespace reaches the volume of backups")
	}
	if !ends(t, copies) {
		t.Error("what is let in as a copy does not reach the volume of backups: then nothing is known of other pods either")
	}

	w := write(t, d, leader(t, d).Spec.NodeName, byService, 0)
	pod, err := get(t.Context(), &corev1.Pod{}, ns, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := kube.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	within(t, volumeServed, "the volume is served again", func(ctx context.Context) error {
		again, err := get(ctx, &corev1.Pod{}, ns, name)
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
	within(t, volumeServed, "archiving goes on", archives)
	within(t, time.Minute, "no moment is missing", databaseCondition(d, v1alpha1.TypePITRContinuous, corev1.ConditionTrue, v1alpha1.ReasonContinuous))
	if a := w.end(t); len(a.Lost) > 0 || a.Acknowledged == 0 {
		t.Errorf("%d of %d acknowledged rows are lost: %v", len(a.Lost), a.Acknowledged, a.Lost)
	}
	mysqlCopy(t, d, "orders-copy", v1alpha1.DatabaseSourceDatabase{At: v1alpha1.Moment(at)}, "50 50")

	deleteDatabase(t, d)
	within(t, timeout, "the volume is removed with the Database, as requested", func(ctx context.Context) error {
		_, err := get(ctx, &corev1.PersistentVolumeClaim{}, ns, "data-"+name)
		if err == nil {
			err = errors.New("it is there still")
		}
		if apierrors.IsNotFound(err) {
			err = nil
		}

		return err
	})
}
