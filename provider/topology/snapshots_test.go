// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// TestSnapshotMetrics are what the last run of each Database wrote.
func TestSnapshotMetrics(t *testing.T) {
	const last = `{"last":{"name":"orders-db-1","member":"orders-db-b","began":"2026-11-20T08:00:00Z"},"kept":1}`
	record := func(name, of string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: name, Labels: map[string]string{members.LabelSnapshotOf: of, v1alpha1.LabelDatabase: of},
				CreationTimestamp: metav1.Time{Time: time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC)},
			},
			Data: data,
		}
	}
	series := func(at, failed float64) map[string]float64 {
		return map[string]float64{"capstan_database_last_snapshot_timestamp_seconds orders-db shop": at, "capstan_database_snapshot_failed orders-db shop": failed}
	}
	for name, tc := range map[string]struct {
		reason string
		record *corev1.ConfigMap
		want   map[string]float64
	}{
		"Taken":   {"It began at eight.", record("orders-db-snapshots", "orders-db", map[string]string{members.KeyRecord: last}), series(1795161600, 0)},
		"Failed":  {"The last one is the last still.", record("orders-db-snapshots", "orders-db", map[string]string{members.KeyRecord: last, members.KeyFailure: `{"at":"2026-11-20T12:00:00Z","message":"no room"}`}), series(1795161600, 1)},
		"First":   {"One is awaited since then.", record("orders-db-snapshots", "orders-db", nil), series(1795046400, 0)},
		"Unread":  {"What cannot be understood says nothing.", record("orders-db-snapshots", "orders-db", map[string]string{members.KeyRecord: "{", members.KeyFailure: "{"}), series(1795046400, 0)},
		"Another": {"It is of no Database of that name.", record("orders-db-snapshots", "users-db", nil), map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			once, err := slimRecord(tc.record)
			if err != nil {
				t.Fatal(err)
			}
			held, err := slimRecord(once)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(once, held); diff != "" {
				t.Errorf("a second transform changes it: -once, +twice:\n%s", diff)
			}
			kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(held.(*corev1.ConfigMap)).Build()
			registry := prometheus.NewPedanticRegistry()
			if err := registry.Register(newCounts(kube, kube, logging.NewNopLogger())); err != nil {
				t.Fatal(err)
			}
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, f := range families {
				for _, m := range f.GetMetric() {
					of := []string{f.GetName()}
					for _, l := range m.GetLabel() {
						of = append(of, l.GetValue())
					}
					got[strings.Join(of, " ")] = m.GetGauge().GetValue()
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
