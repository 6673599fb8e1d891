// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"encoding/json"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/runner"
)

// othersJobs are Jobs in namespace shop, of which a JobHistory in bank must report nothing.
func othersJobs(t *testing.T, s *stage) {
	t.Helper()

	s.apply(&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "daily-29393400", Labels: map[string]string{runner.LabelPipeline: "daily"}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: runner.Container, Image: "daily"}},
		}}},
	})

	own := &observev1alpha1.JobHistory{ObjectMeta: meta("shop", s.name())}
	own.Spec.ForProvider = observev1alpha1.JobHistoryParameters{Pipeline: "daily"}
	others := own.DeepCopy()
	others.Namespace = "bank"
	s.apply(own, others)
	s.eventually(30*time.Second, "a report on a Job of one's own", func() string {
		s.get(own)

		return map[bool]string{true: "not yet"}[len(own.Status.AtProvider.Jobs) == 0]
	})
	s.becomeReady(30*time.Second, others)

	if got := others.Status.AtProvider; len(got.Jobs) > 0 || got.Pods != nil {
		told, _ := json.Marshal(got) //nolint:errchkjson // It always marshals.
		t.Errorf("want nothing of others, got %s", told)
	}

	for _, pipeline := range []string{"shop/daily", "../shop/daily", "daily,", "", "*"} {
		bad := others.DeepCopy()
		bad.ObjectMeta, bad.Spec.ForProvider.Pipeline = meta("bank", s.name()), pipeline
		s.refused(t, pipeline, bad)
	}
}
