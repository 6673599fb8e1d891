// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/provider/internal/jobhealth"
)

// newCache holds the pods of Trainings, and of each what a Run looks at. It is a cache beside the one of mgr, which holds other pods.
func newCache(mgr ctrl.Manager) (cache.Cache, error) {
	ours, err := labels.NewRequirement(crew.LabelTraining, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot select pods: %w", err)
	}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme:                      mgr.GetScheme(),
		Mapper:                      mgr.GetRESTMapper(),
		HTTPClient:                  mgr.GetHTTPClient(),
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Label: labels.NewSelector().Add(*ours), Transform: jobhealth.Slim(crew.LabelTraining)},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the cache of pods: %w", err)
	}
	// A Run must not go through all pods of its namespace each time.
	if err := c.IndexField(context.Background(), &corev1.Pod{}, byJob, jobOf); err != nil {
		return nil, fmt.Errorf("cannot index pods by their Job: %w", err)
	}
	return c, nil
}

// byJob is the index of pods by their Job.
const byJob = "job"

func jobOf(o client.Object) []string { return []string{o.GetLabels()[batchv1.JobNameLabel]} }
