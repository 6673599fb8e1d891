// SPDX-License-Identifier: Apache-2.0

// Package podhealth says why a pod does not run, from what the scheduler, the kubelet and the container runtime say, in words
// that stay the same as long as the cause does: without names of pods, times and counts.
//
// What is wrong is the same for every pod. What helps is not: who owns the pods says it, in the words of the fields that its
// users can change.
package podhealth

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// maxMessage bounds a message in bytes. Causes are cut much earlier: this holds for anything that an image reference or a registry comes
// up with.
const maxMessage = 1024

// A Hindrance keeps a pod from being ready.
type Hindrance struct {
	// Reason in one word.
	Reason xpv2.ConditionReason

	// What is wrong, in words that are the same for every pod it hits.
	What string

	// Detail in the words of the scheduler, the registry or the container, which may differ from pod to pod. May be empty.
	Detail string

	// Remedy says what to do. May be empty.
	Remedy string

	// Cause is where the cause lies, or empty.
	Cause observev1alpha1.FindingCause
}

// Message says all of it, at most 1024 bytes.
func (h *Hindrance) Message() string {
	m := h.What
	if h.Detail != "" {
		m += ": " + h.Detail
	}
	if h.Remedy != "" {
		m += "; " + h.Remedy
	}
	return words.Bounded(m, maxMessage)
}

// A Subject is a container that is not ready, of a pod that is meant to be.
type Subject struct {
	Pod *corev1.Pod

	// Spec is empty when the pod's has no such container.
	Spec   corev1.Container
	Status corev1.ContainerStatus

	// Now is the time by which it is long ago that a container ended. If it is zero, nothing is.
	Now time.Time
}

// Subjects are the containers of a pod that are not ready, first those that run before the others. A pod that is ready or on its
// way out has none.
func Subjects(p *corev1.Pod) []Subject {
	if Leaving(p) || Is(p, corev1.PodReady) {
		return nil
	}
	var out []Subject
	for _, st := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if st.Ready {
			continue
		}
		s := Subject{Pod: p, Status: st}
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			if c.Name == st.Name {
				s.Spec = c
			}
		}
		out = append(out, s)
	}
	return out
}

// Leaving reports whether the pod is not expected any more: it is being deleted, or has ended for good (evicted, say) and its
// controller makes another one.
func Leaving(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

// Is reports whether a condition of the pod is True.
func Is(p *corev1.Pod, t corev1.PodConditionType) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}
