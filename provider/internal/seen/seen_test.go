// SPDX-License-Identifier: Apache-2.0

package seen_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/provider/internal/seen"
)

func TestMeta(t *testing.T) {
	all := metav1.ObjectMeta{
		Namespace: "shop", Name: "orders-a-0", UID: "1", ResourceVersion: "7", DeletionTimestamp: &metav1.Time{},
		Labels: map[string]string{"database": "orders", "hash": "x"}, Annotations: map[string]string{"status": "{}", "log": "x"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
	}
	want := metav1.ObjectMeta{
		Namespace: "shop", Name: "orders-a-0", UID: "1", ResourceVersion: "7", DeletionTimestamp: &metav1.Time{},
		Labels: map[string]string{"database": "orders"}, Annotations: map[string]string{"status": "{}"},
	}
	got := seen.Meta(&corev1.Pod{ObjectMeta: all}, []string{"database", "member"}, []string{"status", "member"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Only what somebody looks at is held: -want, +got:\n%s", diff)
	}
}
