// SPDX-License-Identifier: Apache-2.0

package jobhealth

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/provider/internal/words"
)

// Slim returns what leaves of a pod what facts are made of, with one label of its owner. The text of a container that ended is bounded as Kubernetes bounds it.
func Slim(label string) func(any) (any, error) {
	return func(o any) (any, error) { return slim(o, label) }
}

func slim(o any, label string) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	small := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
			CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp,
			Labels:      kept(p.Labels, label, batchv1.JobNameLabel, batchv1.JobCompletionIndexAnnotation),
			Annotations: kept(p.Annotations, batchv1.JobIndexFailureCountAnnotation, batchv1.JobIndexIgnoredFailureCountAnnotation),
		},
		Spec: corev1.PodSpec{
			NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork,
			InitContainers: each(p.Spec.InitContainers, SlimContainer), Containers: each(p.Spec.Containers, SlimContainer),
		},
		Status: corev1.PodStatus{
			Phase: p.Status.Phase, Reason: p.Status.Reason, Message: words.Bounded(p.Status.Message, words.MaxHeard),
			PodIP: p.Status.PodIP, HostIP: p.Status.HostIP,
			InitContainerStatuses: each(p.Status.InitContainerStatuses, slimStatus), ContainerStatuses: each(p.Status.ContainerStatuses, slimStatus),
		},
	}
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

// kept are the entries with these keys.
func kept(all map[string]string, keys ...string) map[string]string {
	out := map[string]string{}
	for _, k := range keys {
		if v, ok := all[k]; ok {
			out[k] = v
		}
	}
	return out
}

func each[T any](in []T, one func(T) T) []T {
	out := make([]T, 0, len(in))
	for _, x := range in {
		out = append(out, one(x))
	}
	return out
}

// SlimContainer leaves what facts are made of.
func SlimContainer(c corev1.Container) corev1.Container {
	return corev1.Container{Name: c.Name, Image: c.Image, Resources: corev1.ResourceRequirements{Limits: c.Resources.Limits}}
}

func slimStatus(s corev1.ContainerStatus) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: s.Name, Ready: s.Ready, RestartCount: s.RestartCount, State: s.State, LastTerminationState: s.LastTerminationState,
	}
}
