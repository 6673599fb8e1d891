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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestDatabaseNamespaceLost deletes a namespace with its Database, volumes and Secrets and the key of its backups. Only
// the bucket and a copy of the key are left. They are enough to restore everything, and nothing is restored without a
// request.
func TestDatabaseNamespaceLost(t *testing.T) {
	ns := namespace(t)
	key := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orders-backup-key"},
		Data:       map[string][]byte{"passphrase": []byte("kept by somebody who knows what it is for")},
	}
	if err := apply(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	encryption := &v1alpha1.BackupEncryption{SecretRef: v1alpha1.BackupKeyReference{Name: key.Name}}
	before := database(ns, "orders-db", func(d *v1alpha1.Database) {
		d.Spec.Replicas = 1
		d.Spec.Backup = &v1alpha1.DatabaseBackup{Encryption: encryption}
	})
	createDatabase(t, before)
	nextBackup(t, before, "")
	app := psql(t, before, "app")
	app.must(t, `create table ledger (id int primary key); insert into ledger select generate_series(1, 60)`)
	patchBackup(t, before, `{"restorePoint":"last"}`)
	within(t, 2*time.Minute, "the archive has all that was written", databaseCondition(before, v1alpha1.TypeRestorePointMade, corev1.ConditionTrue, v1alpha1.ReasonRestorePointMade))

	loseNamespace(t, before)
	again := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := kube.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if err := apply(t.Context(), key); err != nil {
		t.Fatal(err)
	}

	// Like a GitOps sync.
	if err := apply(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	within(t, creation, "it does not begin empty over its backups", databaseCondition(before, v1alpha1.TypeAvailable, corev1.ConditionFalse, v1alpha1.ReasonBackupsExist, "from.backup"))

	bucket := &storagev1alpha1.Bucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "old-orders", Annotations: map[string]string{"crossplane.io/external-name": ns + "-orders-db-backup"}},
		Spec:       storagev1alpha1.BucketSpec{WriteConnectionSecretToReference: &xpv2.LocalSecretReference{Name: "old-orders"}},
	}
	bucket.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionObserve}
	if err := apply(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kube.Delete(context.WithoutCancel(t.Context()), bucket) })
	after := database(ns, "orders-new", func(d *v1alpha1.Database) {
		d.Spec.Replicas = 1
		d.Spec.Databases = []v1alpha1.LogicalDatabase{{Name: "orders_db"}}
		d.Spec.From = &v1alpha1.DatabaseSource{Backup: &v1alpha1.DatabaseSourceBackup{
			ConnectionSecretRef: v1alpha1.LocalReference{Name: "old-orders"}, Database: before.Name, Encryption: encryption,
		}}
		d.Spec.Backup = &v1alpha1.DatabaseBackup{Encryption: encryption, OnDelete: v1alpha1.BackupsDeleted}
	})
	t.Logf("from the bucket alone it is Ready after %s", createDatabase(t, after).Round(time.Second))
	if got := psql(t, after, "app").must(t, `select count(*)::text || ' ' || max(id)::text from ledger`); got != "60 60" {
		t.Errorf("the new Database has rows %s, want all of them: 60 60", got)
	}
	nextBackup(t, after, "")
}

// loseNamespace of a Database, with everything in it.
func loseNamespace(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.Namespace}}
	if err := kube.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	within(t, creation, "the namespace is gone", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(ns), ns); err != nil {
			return client.IgnoreNotFound(err)
		}
		// The deletion waits for the volumes and their Secrets until the annotation releases them.
		var errs []error
		for _, list := range []client.ObjectList{&corev1.PersistentVolumeClaimList{}, &corev1.SecretList{}} {
			if err := release(ctx, list, client.InNamespace(d.Namespace)); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				errs = append(errs, err)
			}
		}

		return errors.Join(append(errs, fmt.Errorf("the namespace is there still: %+v", ns.Status.Conditions))...)
	})
}
