// SPDX-License-Identifier: Apache-2.0

// Package podhealth tells why a pod does not run, from what the scheduler, the
// kubelet and the container runtime say, in words that stay the same as long as
// the cause does: without names of pods, times and counts.
package podhealth

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// maxMessage bounds a message in bytes.
const maxMessage = 1024

// A Hindrance keeps a pod from running.
type Hindrance struct {
	// Reason in one word.
	Reason xpv2.ConditionReason

	// What is wrong.
	What string

	// Detail in the words of the scheduler, the registry or the container. May be
	// empty.
	Detail string

	// Remedy says what to do. May be empty.
	Remedy string
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

	return Bounded(m, maxMessage)
}

// Of a pod that should run a container: what hinders it, or nil. Other containers
// count only as long as they keep this one from starting. A pod that is on its way
// out is hindered by nothing.
func Of(p *corev1.Pod, container string) *Hindrance {
	if Leaving(p) || Is(p, corev1.PodReady) {
		return nil
	}

	if h := unscheduled(p); h != nil {
		return h
	}

	for _, st := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if st.Ready {
			continue
		}

		s := subject{pod: p, status: st}
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			if c.Name == st.Name {
				s.spec = c
			}
		}

		for _, check := range []func(subject) *Hindrance{imagePull, config, crash} {
			h := check(s)
			if h == nil {
				continue
			}

			if st.Name != container {
				h.What += " (container " + st.Name + ")"
			}

			return h
		}
	}

	return nil
}

// Leaving tells whether nobody waits for the pod any more: it is being deleted, or
// has ended for good.
func Leaving(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

// Is tells whether a condition of the pod is True.
func Is(p *corev1.Pod, t corev1.PodConditionType) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

// A subject is a container that is not ready.
type subject struct {
	pod    *corev1.Pod
	spec   corev1.Container
	status corev1.ContainerStatus
}
