// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// TestTransformsTwice: what goes through a transform a second time stays as it is.
func TestTransformsTwice(t *testing.T) {
	meta := func(annotations map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "shop", Name: "orders-db-a-0", UID: "u", ResourceVersion: "7", Annotations: annotations,
			Labels: map[string]string{v1alpha1.LabelDatabase: "orders-db", v1alpha1.LabelMember: "orders-db-a", v1alpha1.LabelScope: "orders-db-3f2a9c1b"},
		}
	}
	paused := configMap()
	paused.ObjectMeta = meta(map[string]string{members.AnnotationConfig: `{"pause":true}`, members.AnnotationInitialize: "7"})
	for name, tc := range map[string]struct {
		reason    string
		transform func(any) (any, error)
		in        any
		kept      string
	}{
		"Pod": {"What Patroni says is of a provider that was started again as well.", slimPod, &corev1.Pod{
			ObjectMeta: meta(map[string]string{members.AnnotationStatus: `{"state":"running","role":"primary","xlog_location":7}`, members.AnnotationUpgrade: `{"id":"u1"}`}),
			Spec:       corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "postgres"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
				Name: "postgres", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}}},
		}, annotationFacts},
		"ConfigMap": {"So is a pause.", slimConfigMap, paused, annotationPause},
		"Claim": {"And a size.", slimClaim, &corev1.PersistentVolumeClaim{
			ObjectMeta: meta(nil),
			Status:     corev1.PersistentVolumeClaimStatus{Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}, ""},
		"Node": {"And a taint.", slimNode, &corev1.Node{ObjectMeta: meta(nil), Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Effect: "NoExecute"}}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			once, err := tc.transform(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			again, err := tc.transform(once)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(once, again); diff != "" {
				t.Errorf("%s -once, +twice:\n%s", tc.reason, diff)
			}
			if o, ok := again.(metav1.Object); tc.kept != "" && (!ok || o.GetAnnotations()[tc.kept] == "") {
				t.Errorf("%s It is lost: %v", tc.reason, again)
			}
		})
	}
}
