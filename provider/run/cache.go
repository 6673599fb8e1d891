// SPDX-License-Identifier: Apache-2.0

package run

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/provider/internal/seen"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// newCache holds the pods of Trainings, and of each what a Run looks at.
func newCache(mgr ctrl.Manager) (cache.Cache, error) {
	return seen.New(mgr, seen.Objects{
		Kind: &corev1.Pod{}, Having: []string{crew.LabelTraining}, Slim: slim,
		// A Run must not go through all pods of its namespace each time.
		Index: map[string]client.IndexerFunc{byJob: jobOf},
	})
}

// byJob is the index of pods by their Job.
const byJob = "job"

func jobOf(o client.Object) []string { return []string{o.GetLabels()[batchv1.JobNameLabel]} }

// slim leaves of a pod what facts are made of. The text of a container that ended is bounded as Kubernetes bounds it.
func slim(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	small := &corev1.Pod{
		ObjectMeta: seen.Meta(p,
			[]string{crew.LabelTraining, batchv1.JobNameLabel, batchv1.JobCompletionIndexAnnotation},
			[]string{batchv1.JobIndexFailureCountAnnotation, batchv1.JobIndexIgnoredFailureCountAnnotation}),
		Spec: corev1.PodSpec{
			NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork,
			InitContainers: each(p.Spec.InitContainers, slimContainer), Containers: each(p.Spec.Containers, slimContainer),
		},
		Status: corev1.PodStatus{
			Phase: p.Status.Phase, Reason: p.Status.Reason, Message: words.Bounded(p.Status.Message, words.MaxHeard),
			PodIP: p.Status.PodIP, HostIP: p.Status.HostIP,
			InitContainerStatuses: each(p.Status.InitContainerStatuses, slimStatus), ContainerStatuses: each(p.Status.ContainerStatuses, slimStatus),
		},
	}
	small.CreationTimestamp = p.CreationTimestamp
	if owner := metav1.GetControllerOf(p); owner != nil {
		small.OwnerReferences = []metav1.OwnerReference{{Kind: owner.Kind, Name: owner.Name, Controller: owner.Controller}}
	}
	for _, c := range p.Status.Conditions {
		if slices.Contains([]corev1.PodConditionType{corev1.PodReady, corev1.PodScheduled}, c.Type) {
			small.Status.Conditions = append(small.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	return small, nil
}

func each[T any](in []T, one func(T) T) []T {
	out := make([]T, 0, len(in))
	for _, x := range in {
		out = append(out, one(x))
	}
	return out
}

func slimContainer(c corev1.Container) corev1.Container {
	return corev1.Container{Name: c.Name, Image: c.Image, Resources: corev1.ResourceRequirements{Limits: c.Resources.Limits}}
}

func slimStatus(s corev1.ContainerStatus) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: s.Name, Ready: s.Ready, RestartCount: s.RestartCount, State: s.State, LastTerminationState: s.LastTerminationState,
	}
}
