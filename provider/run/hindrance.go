// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// Reasons that only pods of a run have.
const (
	reasonOutOfMemory xpv2.ConditionReason = "OutOfMemory"
	reasonEvicted     xpv2.ConditionReason = "Evicted"
	reasonUnfit       xpv2.ConditionReason = "Unfit"
)

const (
	remedyMemory  = "raise spec.resources.memory, or have each rank use less"
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

// images that spec.image names.
var images = podhealth.PullRemedies{
	podhealth.PullReference: "correct spec.image",
	podhealth.PullMissing:   "correct spec.image, or push the image",
	podhealth.PullAccess:    "name a Secret that opens the registry in spec.pod.imagePullSecrets, or correct spec.image",
	podhealth.PullNetwork:   "see that the nodes reach the registry, or name another one in spec.image",
	podhealth.PullPlatform:  "build the image for the platform of the nodes, or choose other nodes by spec.pod.nodeSelector",
	podhealth.PullRoom:      "make room on the nodes, or make the image smaller",
	podhealth.PullRate:      "name a Secret with a greater allowance in spec.pod.imagePullSecrets, or another registry in spec.image",
}

// ends of containers that start and end again.
var ends = podhealth.Ends{
	Unstartable: remedyCommand,
	OutOfMemory: remedyMemory,
	Killed:      "see the events of the pods",
	Exit: func(code int32) (what, remedy string) {
		return fmt.Sprintf("the container ends with exit code %d", code), "see the logs of the pods"
	},
}

// blocked says what blocks the newest pods, what blocks most of them first; nil when nothing does. It holds no name of a pod, no time and
// no count, so that it stays the same as long as the cause does.
func (v *view) blocked() *v1alpha1.RunPods {
	type problem struct {
		podhealth.Hindrance

		pods int
	}
	var all []problem
	found := append(make([]*podhealth.Hindrance, 0, len(v.pods)+1), v.refused)
	for _, index := range v.indexes() {
		found = append(found, hindrance(v.newest(index)))
	}
	for _, h := range found {
		if h == nil {
			continue
		}
		i := slices.IndexFunc(all, func(p problem) bool { return p.Reason == h.Reason && p.What == h.What && p.Remedy == h.Remedy })
		if i < 0 {
			i, all = len(all), append(all, problem{Hindrance: *h})
		}
		all[i].pods++
		if h == v.refused { // How many pods are not there is unknown.
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

// hindrance of a pod, or nil.
func hindrance(p *corev1.Pod) *podhealth.Hindrance {
	if p.Status.Phase == corev1.PodFailed {
		return failure(p)
	}
	if h := placement.Unscheduled(p); h != nil {
		return h
	}
	for _, s := range podhealth.Subjects(p) {
		for _, h := range []*podhealth.Hindrance{s.Pull(s.Spec.Image, images), s.Config(remedyConfig), s.Crash(ends)} {
			if h != nil {
				return of(s.Status.Name, h)
			}
		}
	}
	return nil
}

// of a container beside the container of the companion, which the message then names.
func of(container string, h *podhealth.Hindrance) *podhealth.Hindrance {
	if container != crew.Container {
		h.What += " (container " + words.Bounded(container, words.MaxDetail) + ")"
	}
	return h
}

// failure of a pod that has no successor yet, or nil where the pod did what it should: the companion says itself why a run failed, and a
// pod that had to go is no failure.
func failure(p *corev1.Pod) *podhealth.Hindrance {
	switch p.Status.Reason {
	case "":
	case "Evicted":
		return &podhealth.Hindrance{
			Reason: reasonEvicted, What: "the node evicted the pod", Detail: words.Steady(p.Status.Message, p.GetName()),
			Remedy: "ask for as much in spec.resources as the pod uses",
		}
	default:
		return &podhealth.Hindrance{
			Reason: apis.ReasonPodsRefused, What: "the node refuses the pod (" + words.Bounded(words.OneLine(p.Status.Reason), words.MaxDetail) + ")",
			Detail: words.Steady(p.Status.Message, p.GetName()), Remedy: "see the events of the node",
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		t := s.State.Terminated
		if t == nil || slices.Contains([]int32{crew.ExitDone, crew.ExitFailed, crew.ExitEnded}, t.ExitCode) {
			continue
		}
		subject := podhealth.Subject{Pod: p, Spec: spec(p, s.Name), Status: s}
		switch {
		case t.Reason == podhealth.OutOfMemory:
			return of(s.Name, &podhealth.Hindrance{Reason: reasonOutOfMemory, What: subject.OverLimit("the container"), Remedy: remedyMemory})
		case t.ExitCode == crew.ExitUnfit && s.Name == crew.Container:
			return &podhealth.Hindrance{
				Reason: reasonUnfit, What: "the companion gave the pod up: its processes do not end, or a device is gone",
				Remedy: "see the log of the pod, and the node",
			}
		}
		if h := subject.Crash(ends); h != nil {
			return of(s.Name, h)
		}
		what, remedy := ends.Exit(t.ExitCode)
		return of(s.Name, &podhealth.Hindrance{Reason: apis.ReasonCrashLooping, What: what, Remedy: remedy})
	}
	return nil
}
