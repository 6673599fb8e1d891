// SPDX-License-Identifier: Apache-2.0

package jobhistory

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/provider/internal/jobhealth"
)

// byPipeline is the index of Jobs and pods by their Pipeline.
const byPipeline = "pipeline"

func pipelineOf(o client.Object) []string { return []string{o.GetLabels()[runner.LabelPipeline]} }

// newCache holds the Jobs and the pods of Pipelines, and of each what a JobHistory looks at. It is a cache beside the one of mgr, which
// holds other pods.
func newCache(mgr ctrl.Manager) (cache.Cache, error) {
	ours, err := labels.NewRequirement(runner.LabelPipeline, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot select Jobs: %w", err)
	}
	selector := labels.NewSelector().Add(*ours)
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme:                      mgr.GetScheme(),
		Mapper:                      mgr.GetRESTMapper(),
		HTTPClient:                  mgr.GetHTTPClient(),
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:  {Label: selector, Transform: jobhealth.Slim(runner.LabelPipeline)},
			&batchv1.Job{}: {Label: selector, Transform: slim},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the cache of Jobs: %w", err)
	}
	for _, o := range []client.Object{&corev1.Pod{}, &batchv1.Job{}} {
		if err := c.IndexField(context.Background(), o, byPipeline, pipelineOf); err != nil {
			return nil, fmt.Errorf("cannot index by Pipeline: %w", err)
		}
	}
	return c, nil
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
