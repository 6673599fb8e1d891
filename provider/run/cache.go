// SPDX-License-Identifier: Apache-2.0

package run

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/provider/internal/jobhealth"
	"github.com/capstan-dev/capstan/provider/internal/seen"
)

// newCache holds the pods of Trainings, and of each what a Run looks at.
func newCache(mgr ctrl.Manager) (cache.Cache, error) {
	return seen.New(mgr, seen.Objects{
		Kind: &corev1.Pod{}, Having: []string{crew.LabelTraining}, Slim: jobhealth.Slim(crew.LabelTraining),
		// A Run must not go through all pods of its namespace each time.
		Index: map[string]client.IndexerFunc{byJob: jobOf},
	})
}

// byJob is the index of pods by their Job.
const byJob = "job"

func jobOf(o client.Object) []string { return []string{o.GetLabels()[batchv1.JobNameLabel]} }
