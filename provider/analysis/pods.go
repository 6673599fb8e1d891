// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// Pods tells a cache which pods to hold, those of Algorithms, and what of them.
func Pods() (cache.ByObject, error) {
	r, err := labels.NewRequirement(v1alpha1.LabelAlgorithm, selection.Exists, nil)
	if err != nil {
		return cache.ByObject{}, fmt.Errorf("cannot select pods by label %q: %w", v1alpha1.LabelAlgorithm, err)
	}

	return cache.ByObject{Label: labels.NewSelector().Add(*r), Transform: Slim}, nil
}

// Slim is a transform of the cache: of a pod it leaves the fields that findings
// are made of, and everything else as it is.
func Slim(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}

	small := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         p.Namespace,
			Name:              p.Name,
			UID:               p.UID,
			ResourceVersion:   p.ResourceVersion,
			DeletionTimestamp: p.DeletionTimestamp,
			Labels:            map[string]string{},
		},
		Spec: corev1.PodSpec{
			InitContainers: slimContainers(p.Spec.InitContainers),
			Containers:     slimContainers(p.Spec.Containers),
			Volumes:        imageVolumes(p.Spec.Volumes),
		},
		Status: corev1.PodStatus{
			Phase:                 p.Status.Phase,
			InitContainerStatuses: slimStatuses(p.Status.InitContainerStatuses),
			ContainerStatuses:     slimStatuses(p.Status.ContainerStatuses),
		},
	}

	for _, l := range []string{v1alpha1.LabelAlgorithm, v1alpha1.LabelSlot} {
		if v, ok := p.Labels[l]; ok {
			small.Labels[l] = v
		}
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
			out = append(out, corev1.Volume{
				Name:         v.Name,
				VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: v.Image.Reference}},
			})
		}
	}

	return out
}

func slimContainers(in []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, 0, len(in))
	for _, c := range in {
		out = append(out, corev1.Container{
			Name:           c.Name,
			Image:          c.Image,
			Ports:          c.Ports,
			Resources:      corev1.ResourceRequirements{Limits: c.Resources.Limits, Requests: c.Resources.Requests},
			StartupProbe:   c.StartupProbe,
			LivenessProbe:  c.LivenessProbe,
			ReadinessProbe: c.ReadinessProbe,
		})
	}

	return out
}

func slimStatuses(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, 0, len(in))
	for _, s := range in {
		out = append(out, corev1.ContainerStatus{
			Name:                 s.Name,
			Ready:                s.Ready,
			Started:              s.Started,
			RestartCount:         s.RestartCount,
			State:                s.State,
			LastTerminationState: s.LastTerminationState,
		})
	}

	return out
}
