// SPDX-License-Identifier: Apache-2.0

package run

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

func TestMetrics(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	well, again := runOf(saw()), runOf(saw())
	again.Name = "fraud-again"
	for _, r := range []*v1alpha1.Run{well, again} {
		r.Labels = map[string]string{crew.LabelTraining: "fraud"}
	}
	bad := runOf(saw(func(o *observation) {
		o.Phase, o.Checkpoint, o.WithoutProgress, o.Silent = "Recovering", nil, 2, "it does not answer"
		o.OverdueSince = new(metav1.NewTime(now))
		o.Missing = []v1alpha1.RunMember{{Index: 0, Since: metav1.NewTime(now)}, {Index: 3, Since: metav1.NewTime(now)}}
	}))
	bad.Name = "churn"
	queued := runOf(observation{Pods: &v1alpha1.RunPods{Reason: "Unschedulable"}})
	queued.Name = "queued"
	c := newCounts(fake.NewClientBuilder().WithScheme(scheme).WithObjects(well, again, bad, queued).Build())
	c.fault("shop", nil, &v1alpha1.RunFault{Attempt: 1, Class: "Stalled"})
	c.fault("shop", &v1alpha1.RunFault{Attempt: 1, Class: "Stalled"}, &v1alpha1.RunFault{Attempt: 1, Class: "Stalled", Node: "a"})
	c.fault("shop", &v1alpha1.RunFault{Attempt: 1, Class: "Stalled"}, &v1alpha1.RunFault{Attempt: 2, Class: "Stalled"})
	c.fault("shop", &v1alpha1.RunFault{Attempt: 1, Class: "Stalled"}, nil)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c, c.faults)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := &strings.Builder{}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(got, f); err != nil {
			t.Fatal(err)
		}
	}
	want := `
# HELP capstan_training_attempts_without_progress Attempts in a row of a Training that ended without progress.
# TYPE capstan_training_attempts_without_progress gauge
capstan_training_attempts_without_progress{training="churn",training_namespace="shop"} 2
capstan_training_attempts_without_progress{training="fraud",training_namespace="shop"} 0
# HELP capstan_training_checkpoint_overdue Whether ranks of a Training make steps and no checkpoint becomes complete for three times checkpoint.every.
# TYPE capstan_training_checkpoint_overdue gauge
capstan_training_checkpoint_overdue{training="churn",training_namespace="shop"} 1
capstan_training_checkpoint_overdue{training="fraud",training_namespace="shop"} 0
# HELP capstan_training_faults_total Faults that ended attempts of Trainings, by namespace and class.
# TYPE capstan_training_faults_total counter
capstan_training_faults_total{class="Stalled",training_namespace="shop"} 2
# HELP capstan_training_last_checkpoint_timestamp_seconds When the newest complete checkpoint of a Training became known, in seconds since 1970, as of the status of its Run.
# TYPE capstan_training_last_checkpoint_timestamp_seconds gauge
capstan_training_last_checkpoint_timestamp_seconds{training="fraud",training_namespace="shop"} 1.79569428e+09
# HELP capstan_training_missing_members Members of the crew of a Training that are missing.
# TYPE capstan_training_missing_members gauge
capstan_training_missing_members{training="churn",training_namespace="shop"} 2
capstan_training_missing_members{training="fraud",training_namespace="shop"} 0
# HELP capstan_training_phase The phase that the run of a Training is in, as 1.
# TYPE capstan_training_phase gauge
capstan_training_phase{phase="Recovering",training="churn",training_namespace="shop"} 1
capstan_training_phase{phase="Running",training="fraud",training_namespace="shop"} 1
# HELP capstan_training_pods_blocked What blocks pods of a Training, as 1.
# TYPE capstan_training_pods_blocked gauge
capstan_training_pods_blocked{reason="Unschedulable",training="queued",training_namespace="shop"} 1
# HELP capstan_training_silent Whether the coordinator of a Training runs and does not answer.
# TYPE capstan_training_silent gauge
capstan_training_silent{training="churn",training_namespace="shop"} 1
capstan_training_silent{training="fraud",training_namespace="shop"} 0
`
	if diff := cmp.Diff(strings.TrimLeft(want, "\n"), got.String()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
