// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/seen"
)

// newCache holds pods, volumes and ConfigMaps of Databases, and all nodes, of each what facts are made of.
func newCache(mgr ctrl.Manager) (cache.Cache, error) {
	database := []string{v1alpha1.LabelDatabase}
	return seen.New(mgr,
		seen.Objects{Kind: &corev1.Pod{}, Having: database, Slim: slimPod},
		seen.Objects{Kind: configMap(), Having: []string{v1alpha1.LabelDatabase, v1alpha1.LabelScope}, Slim: slimConfigMap},
		seen.Objects{Kind: &corev1.PersistentVolumeClaim{}, Having: database, Slim: slimClaim},
		seen.Objects{Kind: &corev1.Node{}, Slim: slimNode},
	)
}

// configMap is what ConfigMaps are watched as: members keep all in annotations.
func configMap() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return m
}

// slimPod leaves of a member's pod what facts are made of.
func slimPod(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	small := &corev1.Pod{
		ObjectMeta: seen.Meta(p,
			[]string{v1alpha1.LabelDatabase, v1alpha1.LabelMember, v1alpha1.LabelScope, labelApp, labelRevision},
			[]string{v1alpha1.AnnotationMember, annotationFacts, annotationPosition}),
		Spec:   corev1.PodSpec{NodeName: p.Spec.NodeName},
		Status: corev1.PodStatus{Phase: p.Status.Phase},
	}
	if said, ok := p.Annotations[members.AnnotationUpgrade]; ok {
		small.Annotations[members.AnnotationUpgrade] = steadyUpgrade(said)
	}
	if said, ok := p.Annotations[members.AnnotationStatus]; ok && !former(p) {
		small.Annotations[annotationFacts], small.Annotations[annotationPosition] = split(said)
	}
	for _, c := range p.Spec.Containers {
		small.Spec.Containers = append(small.Spec.Containers, slimContainer(c))
	}
	for _, c := range p.Spec.InitContainers {
		small.Spec.InitContainers = append(small.Spec.InitContainers, slimContainer(c))
	}
	small.Status.ContainerStatuses = slimStatuses(p.Status.ContainerStatuses)
	small.Status.InitContainerStatuses = slimStatuses(p.Status.InitContainerStatuses)
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.PodScheduled {
			small.Status.Conditions = append(small.Status.Conditions,
				corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	return small, nil
}

func slimContainer(c corev1.Container) corev1.Container {
	return corev1.Container{Name: c.Name, Image: c.Image, Resources: corev1.ResourceRequirements{Limits: c.Resources.Limits}}
}

func slimStatuses(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, 0, len(in))
	for _, s := range in {
		out = append(out, corev1.ContainerStatus{
			Name: s.Name, Ready: s.Ready, RestartCount: s.RestartCount, State: s.State, LastTerminationState: s.LastTerminationState,
		})
	}
	return out
}

// slimConfigMap leaves of a ConfigMap of members the annotations that count. Of what members follow that is whether failover is
// paused.
func slimConfigMap(o any) (any, error) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return o, nil
	}
	small := &metav1.PartialObjectMetadata{
		TypeMeta:   m.TypeMeta,
		ObjectMeta: seen.Meta(m, []string{v1alpha1.LabelDatabase, v1alpha1.LabelScope}, append(keptAnnotations(), annotationPause)),
	}
	if paused(m.Annotations[members.AnnotationConfig]) {
		small.Annotations[annotationPause] = "true"
	}
	return small, nil
}

// slimClaim leaves of a volume claim whose it is and how large.
func slimClaim(o any) (any, error) {
	c, ok := o.(*corev1.PersistentVolumeClaim)
	if !ok {
		return o, nil
	}
	small := &corev1.PersistentVolumeClaim{
		ObjectMeta: seen.Meta(c, []string{v1alpha1.LabelDatabase, v1alpha1.LabelMember, v1alpha1.LabelVolume}, nil),
		Status:     corev1.PersistentVolumeClaimStatus{Phase: c.Status.Phase},
	}
	if size, ok := c.Status.Capacity[corev1.ResourceStorage]; ok {
		small.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: size}
	}
	return small, nil
}

// slimNode leaves of a node where it is and whether it takes pods, for which a selector may name any label. Its heartbeats change
// nothing then.
func slimNode(o any) (any, error) {
	n, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	small := &corev1.Node{
		ObjectMeta: seen.Meta(n, slices.Collect(maps.Keys(n.GetLabels())), nil),
		Spec:       corev1.NodeSpec{Unschedulable: n.Spec.Unschedulable},
	}
	for _, t := range n.Spec.Taints {
		small.Spec.Taints = append(small.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			small.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return small, nil
}
