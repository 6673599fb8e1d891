// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// newCache holds pods, volumes and ConfigMaps of Databases, and all nodes, of each what facts are made of. It is a cache beside
// the one of mgr, which holds other pods.
//
// A list that is streamed goes through a Transform twice (see TransformFunc of k8s.io/client-go/tools/cache), so each keeps what
// it made itself.
func newCache(mgr ctrl.Manager) (cache.Cache, error) {
	labelled, err := having(v1alpha1.LabelDatabase)
	if err != nil {
		return nil, err
	}
	scoped, err := having(v1alpha1.LabelDatabase, v1alpha1.LabelScope)
	if err != nil {
		return nil, err
	}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme:                      mgr.GetScheme(),
		Mapper:                      mgr.GetRESTMapper(),
		HTTPClient:                  mgr.GetHTTPClient(),
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   {Label: labelled, Transform: slimPod},
			configMap():                     {Label: scoped, Transform: slimConfigMap},
			&corev1.PersistentVolumeClaim{}: {Label: labelled, Transform: slimClaim},
			&corev1.Node{}:                  {Transform: slimNode},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the cache of members: %w", err)
	}
	return c, nil
}

// configMap is what ConfigMaps are watched as: members keep all in annotations.
func configMap() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return m
}

func having(keys ...string) (labels.Selector, error) {
	s := labels.NewSelector()
	for _, key := range keys {
		r, err := labels.NewRequirement(key, selection.Exists, nil)
		if err != nil {
			return nil, fmt.Errorf("cannot select by label %q: %w", key, err)
		}
		s = s.Add(*r)
	}
	return s, nil
}

// slimPod leaves of a member's pod what facts are made of.
func slimPod(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	small := &corev1.Pod{
		ObjectMeta: slimMeta(p,
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
		ObjectMeta: slimMeta(m, []string{v1alpha1.LabelDatabase, v1alpha1.LabelScope}, append(keptAnnotations(), annotationPause)),
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
		ObjectMeta: slimMeta(c, []string{v1alpha1.LabelDatabase, v1alpha1.LabelMember}, nil),
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
		ObjectMeta: slimMeta(n, slices.Collect(maps.Keys(n.GetLabels())), nil),
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

func slimMeta(o client.Object, keptLabels, keptAnnotations []string) metav1.ObjectMeta {
	kept := func(all map[string]string, keys []string) map[string]string {
		out := map[string]string{}
		for _, k := range keys {
			if v, ok := all[k]; ok {
				out[k] = v
			}
		}
		return out
	}
	return metav1.ObjectMeta{
		Namespace:         o.GetNamespace(),
		Name:              o.GetName(),
		UID:               o.GetUID(),
		ResourceVersion:   o.GetResourceVersion(),
		DeletionTimestamp: o.GetDeletionTimestamp(),
		Labels:            kept(o.GetLabels(), keptLabels),
		Annotations:       kept(o.GetAnnotations(), keptAnnotations),
	}
}
