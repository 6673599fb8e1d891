// SPDX-License-Identifier: Apache-2.0

// Package jobhealth says what blocks pods of Jobs in which a companion is process 1, in the fields of a Training or a Pipeline.
package jobhealth

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// What to do.
const (
	RemedyMemory  = "raise spec.resources.memory, or have each process use less"
	remedyCommand = "correct spec.command and spec.args, or the entrypoint of the image"
	remedyConfig  = "see that the Secrets and ConfigMaps exist that the spec names"
)

// placement of pods.
var placement = podhealth.Placement{
	Who:     "a pod",
	Special: special,
	Remedies: []struct{ Word, Remedy string }{
		{"Insufficient cpu", "lower spec.resources.cpu"},
		{"Insufficient memory", "lower spec.resources.memory"},
		{"taint", "tolerate the taint in spec.pod.tolerations"},
		{"node affinity", "correct spec.pod.nodeSelector"},
		{"node selector", "correct spec.pod.nodeSelector"},
		{"unschedulable", "uncordon nodes"},
		{"persistentvolumeclaim", "make the claim that the spec names"},
		{"unbound immediate PersistentVolumeClaims", "see the events of the claim: its storage class must be able to provide the volume"},
	},
}

var special = podhealth.WithoutDevice("a pod")

// Ends of containers that start and end again.
var Ends = podhealth.Ends{
	Unstartable: remedyCommand,
	OutOfMemory: RemedyMemory,
	Killed:      "see the events of the pods",
	Exit: func(code int32) (what, remedy string) {
		return fmt.Sprintf("the container ends with exit code %d", code), "see the logs of the pods"
	},
}

// Most says what blocks most of the pods; nil when nothing does. Refused is why the Job makes no pod, and is one of the hindrances. It holds no name of a pod, no time and
// no count, so that it stays the same as long as the cause does.
func Most(refused *podhealth.Hindrance, found []*podhealth.Hindrance) *v1alpha1.RunPods {
	type problem struct {
		podhealth.Hindrance

		pods int
	}
	var all []problem
	for _, h := range found {
		if h == nil {
			continue
		}
		i := slices.IndexFunc(all, func(p problem) bool { return p.Reason == h.Reason && p.What == h.What && p.Remedy == h.Remedy })
		if i < 0 {
			i, all = len(all), append(all, problem{Hindrance: *h})
		}
		all[i].pods++
		if h == refused { // How many pods are not there is unknown.
			all[i].pods = len(found)
		}
	}
	if len(all) == 0 {
		return nil
	}
	first := slices.MinFunc(all, func(a, b problem) int {
		return cmp.Or(b.pods-a.pods, cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.What, b.What))
	})
	return &v1alpha1.RunPods{Reason: string(first.Reason), Message: first.Message()}
}

// Hindrance of a pod that has not ended, or nil. The container is the one of the companion.
func Hindrance(p *corev1.Pod, container string) *podhealth.Hindrance {
	if h := placement.Unscheduled(p); h != nil {
		return h
	}
	for _, s := range podhealth.Subjects(p) {
		for _, h := range []*podhealth.Hindrance{s.Pull(s.Spec.Image, podhealth.SpecImage), s.Config(remedyConfig), s.Crash(Ends)} {
			if h != nil {
				return Of(s.Status.Name, container, h)
			}
		}
	}
	return nil
}

// Of a container beside the container of the companion, which the message then names.
func Of(name, container string, h *podhealth.Hindrance) *podhealth.Hindrance {
	if name != container {
		h.What += " (container " + words.Bounded(name, words.MaxDetail) + ")"
	}
	return h
}
