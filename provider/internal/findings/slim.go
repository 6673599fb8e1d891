// SPDX-License-Identifier: Apache-2.0

package findings

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// Slim is a transform of the cache: of a pod it leaves the fields that findings are made of, and everything else as it is.
func Slim(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	small := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, DeletionTimestamp: p.DeletionTimestamp,
			CreationTimestamp: p.CreationTimestamp,
			Labels:            map[string]string{},
		},
		Spec: corev1.PodSpec{
			InitContainers: slim(p.Spec.InitContainers, slimContainer),
			Containers:     slim(p.Spec.Containers, slimContainer),
			Volumes:        imageVolumes(p.Spec.Volumes),
			NodeName:       p.Spec.NodeName,
		},
		Status: corev1.PodStatus{
			Phase:                 p.Status.Phase,
			InitContainerStatuses: slim(p.Status.InitContainerStatuses, slimStatus),
			ContainerStatuses:     slim(p.Status.ContainerStatuses, slimStatus),
		},
	}
	for _, l := range []string{v1alpha1.LabelAlgorithm, v1alpha1.LabelSlot} {
		if v, ok := p.Labels[l]; ok {
			small.Labels[l] = v
		}
	}
	if v, ok := p.Annotations[v1alpha1.AnnotationRevision]; ok {
		small.Annotations = map[string]string{v1alpha1.AnnotationRevision: v}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.PodScheduled {
			small.Status.Conditions = append(small.Status.Conditions, corev1.PodCondition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
			})
		}
	}
	return small, nil
}

// imageVolumes are those that the node pulls.
func imageVolumes(in []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for _, v := range in {
		if v.Image != nil {
			source := corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: v.Image.Reference}}
			out = append(out, corev1.Volume{Name: v.Name, VolumeSource: source})
		}
	}
	return out
}

func slim[T any](in []T, one func(T) T) []T {
	out := make([]T, 0, len(in))
	for _, x := range in {
		out = append(out, one(x))
	}
	return out
}

func slimContainer(c corev1.Container) corev1.Container {
	return corev1.Container{
		Name: c.Name, Image: c.Image, Ports: c.Ports,
		Resources:    corev1.ResourceRequirements{Limits: c.Resources.Limits, Requests: c.Resources.Requests},
		StartupProbe: c.StartupProbe, LivenessProbe: c.LivenessProbe, ReadinessProbe: c.ReadinessProbe,
	}
}

func slimStatus(s corev1.ContainerStatus) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: s.Name, Ready: s.Ready, Started: s.Started, RestartCount: s.RestartCount, State: s.State, LastTerminationState: s.LastTerminationState,
	}
}
