// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// othersPods are pods of a Job in namespace shop, of which a Run in bank must report nothing.
func othersPods(t *testing.T, s *stage) {
	t.Helper()

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "fraud-r1-0",
			Labels: map[string]string{
				crew.LabelTraining: "fraud", "batch.kubernetes.io/job-name": "fraud-r1", "batch.kubernetes.io/job-completion-index": "0",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "fraud-r1", UID: "1", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: crew.Container, Image: "fraud"}}},
	}
	s.apply(pod)

	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available: 1 Insufficient cpu.",
	}}
	if err := s.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}

	own := &observev1alpha1.Run{ObjectMeta: meta("shop", s.name())}
	own.Spec.ForProvider = observev1alpha1.RunParameters{Job: "fraud-r1", Number: 1}
	others := own.DeepCopy()
	others.Namespace = "bank"
	s.apply(own, others)
	s.eventually(30*time.Second, "a report on a pod of one's own", func() string {
		s.get(own)

		return map[bool]string{true: "not yet"}[own.Status.AtProvider.Pods == nil]
	})
	s.becomeReady(30*time.Second, others)

	if got := others.Status.AtProvider; got.Pods != nil || got.Phase != "" {
		told, _ := json.Marshal(got) //nolint:errchkjson // It always marshals.
		t.Errorf("want nothing of others, got %s", told)
	}

	for _, job := range []string{"shop/fraud-r1", "../shop/fraud-r1", "fraud-r1,", "", "*"} {
		bad := others.DeepCopy()
		bad.ObjectMeta, bad.Spec.ForProvider.Job = meta("bank", s.name()), job
		s.refused(t, job, bad)
	}
}
