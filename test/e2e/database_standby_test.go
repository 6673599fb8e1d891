// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// patchSpec of a Database.
func patchSpec(t *testing.T, d *v1alpha1.Database, fields string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":%s}`, fields)
	if err := kube.Patch(t.Context(), d.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// endpoints of a Service that are there.
func endpoints(ctx context.Context, ns, service string) (int, error) {
	slices := &discoveryv1.EndpointSliceList{}
	if err := kube.List(ctx, slices, client.InNamespace(ns), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		return 0, err
	}
	n := 0
	for i := range slices.Items {
		n += len(slices.Items[i].Endpoints)
	}

	return n, nil
}

// TestDatabaseStandby: a Database of another namespace follows by the archive. It is not promoted while its primary writes, and by one edit
// when the primary is stopped. It has what was archived and takes writes with its own login.
func TestDatabaseStandby(t *testing.T) {
	ns, dr := namespace(t), namespace(t)
	d := database(ns, "orders-db", func(d *v1alpha1.Database) {
		d.Spec.Replicas, d.Spec.Availability.Spread = 1, v1alpha1.SpreadAnywhere
		d.Spec.Backup = &v1alpha1.DatabaseBackup{OnDelete: v1alpha1.BackupsDeleted}
	})
	createDatabase(t, d)
	app := psql(t, d, "app")
	app.must(t, `create table ledger (id int primary key); insert into ledger select generate_series(1, 50)`)
	nextBackup(t, d, "")

	// Another cluster has a Secret of its own that opens the bucket.
	bucket, err := get(t.Context(), &corev1.Secret{}, ns, d.Name+"-pg-backup-bucket")
	if err != nil {
		t.Fatal(err)
	}
	opens := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: dr, Name: "primary-bucket"}, Data: bucket.Data}
	if err := kube.Create(t.Context(), opens); err != nil {
		t.Fatal(err)
	}
	s := database(dr, "orders-db", func(s *v1alpha1.Database) {
		s.Spec.Replicas, s.Spec.Availability.Spread = 2, v1alpha1.SpreadAnywhere
		s.Spec.From = &v1alpha1.DatabaseSource{Backup: &v1alpha1.DatabaseSourceBackup{
			ConnectionSecretRef: v1alpha1.LocalReference{Name: opens.Name}, Database: d.Name, Namespace: ns, Follow: true,
		}}
		s.Spec.Backup = &v1alpha1.DatabaseBackup{OnDelete: v1alpha1.BackupsDeleted}
	})
	if err := apply(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteDatabase(t, s) })
	begun := time.Now()
	within(t, creation, "the standby has replayed the archive", databaseCondition(s, v1alpha1.TypeFollowing, corev1.ConditionTrue, v1alpha1.ReasonCaughtUp))
	within(t, creation, "the standby is Ready", databaseCondition(s, "Ready", corev1.ConditionTrue, "Available"))
	t.Logf("the standby is Ready after %s", time.Since(begun).Round(time.Second))
	within(t, time.Minute, "it reports that it takes no writes", databaseCondition(s, v1alpha1.TypeAvailable, corev1.ConditionFalse, v1alpha1.ReasonStandby))
	for service, want := range map[string]int{s.Name + "-rw": 0, s.Name + "-ro": 2} {
		within(t, time.Minute, fmt.Sprintf("Service %s has %d endpoints", service, want), func(ctx context.Context) error {
			if n, err := endpoints(ctx, dr, service); err != nil || n != want {
				return fmt.Errorf("it has %d: %w", n, err)
			}

			return nil
		})
	}

	// While the primary archives nothing moves.
	app.must(t, `insert into ledger values (51)`)
	patchSpec(t, s, `{"promote":{"id":"lost"}}`)
	within(t, 3*time.Minute, "it is told that the primary writes", databaseCondition(s, v1alpha1.TypePromoted, corev1.ConditionFalse, v1alpha1.ReasonPrimaryActive))
	patchSpec(t, d, `{"hibernated":true}`)
	begun = time.Now()
	within(t, 8*time.Minute, "it is promoted once the primary is stopped", databaseCondition(s, v1alpha1.TypePromoted, corev1.ConditionTrue, v1alpha1.ReasonStandbyPromoted))
	t.Logf("promoted %s after the primary was stopped", time.Since(begun).Round(time.Second))
	own := psql(t, s, "app")
	if got := own.must(t, `select count(*)::text || ' ' || max(id)::text from ledger`); got != "51 51" {
		t.Errorf("the promoted Database has rows %s, want 51 51", got)
	}
	own.must(t, `insert into ledger values (52)`)
	t.Logf("its first write is %s after the primary was stopped", time.Since(begun).Round(time.Second))
	nextBackup(t, s, "")
}
