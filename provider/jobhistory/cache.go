// SPDX-License-Identifier: Apache-2.0

package jobhistory

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/provider/internal/jobhealth"
	"github.com/capstan-dev/capstan/provider/internal/seen"
)

// byPipeline is the index of Jobs and pods by their Pipeline.
const byPipeline = "pipeline"

func pipelineOf(o client.Object) []string { return []string{o.GetLabels()[runner.LabelPipeline]} }

// newCache holds the Jobs and the pods of Pipelines, and of each what a JobHistory looks at. It is a cache beside the one of mgr, which
// holds other pods.
func newCache(mgr ctrl.Manager) (cache.Cache, error) {
	ours, index := []string{runner.LabelPipeline}, map[string]client.IndexerFunc{byPipeline: pipelineOf}
	return seen.New(mgr,
		seen.Objects{Kind: &corev1.Pod{}, Having: ours, Slim: jobhealth.Slim(runner.LabelPipeline), Index: index},
		seen.Objects{Kind: &batchv1.Job{}, Having: ours, Slim: slim, Index: index})
}

// slim leaves of a Job what facts are made of.
func slim(o any) (any, error) {
	j, ok := o.(*batchv1.Job)
	if !ok {
		return o, nil
	}
	small := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.Namespace, Name: j.Name, UID: j.UID, ResourceVersion: j.ResourceVersion, CreationTimestamp: j.CreationTimestamp,
			DeletionTimestamp: j.DeletionTimestamp, Labels: map[string]string{runner.LabelPipeline: j.Labels[runner.LabelPipeline]},
		},
		Spec:   batchv1.JobSpec{Suspend: j.Spec.Suspend},
		Status: batchv1.JobStatus{CompletionTime: j.Status.CompletionTime},
	}
	for _, c := range j.Spec.Template.Spec.Containers {
		if c.Name == runner.Container {
			small.Spec.Template.Spec.Containers = []corev1.Container{jobhealth.SlimContainer(c)}
		}
	}
	for _, c := range j.Status.Conditions {
		small.Status.Conditions = append(small.Status.Conditions, batchv1.JobCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
	}
	return small, nil
}
