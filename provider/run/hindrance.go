// SPDX-License-Identifier: Apache-2.0

package run

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/jobhealth"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// Reasons that only pods of a run have.
const (
	reasonOutOfMemory xpv2.ConditionReason = "OutOfMemory"
	reasonEvicted     xpv2.ConditionReason = "Evicted"
	reasonUnfit       xpv2.ConditionReason = "Unfit"
)

// blocked says what blocks the newest pods, or nil.
func (v *view) blocked() *v1alpha1.RunPods {
	found := append(make([]*podhealth.Hindrance, 0, len(v.pods)+1), v.refused)
	for _, index := range v.indexes() {
		found = append(found, hindrance(v.newest(index)))
	}
	return jobhealth.Most(v.refused, found)
}

// hindrance of a pod, or nil.
func hindrance(p *corev1.Pod) *podhealth.Hindrance {
	if p.Status.Phase == corev1.PodFailed {
		return failure(p)
	}
	return jobhealth.Hindrance(p, crew.Container)
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
			return jobhealth.Of(s.Name, crew.Container, &podhealth.Hindrance{Reason: reasonOutOfMemory, What: subject.OverLimit("the container"), Remedy: jobhealth.RemedyMemory})
		case t.ExitCode == crew.ExitUnfit && s.Name == crew.Container:
			return &podhealth.Hindrance{
				Reason: reasonUnfit, What: "the companion gave the pod up: its processes do not end, or a device is gone",
				Remedy: "see the log of the pod, and the node",
			}
		}
		if h := subject.Crash(jobhealth.Ends); h != nil {
			return jobhealth.Of(s.Name, crew.Container, h)
		}
		what, remedy := jobhealth.Ends.Exit(t.ExitCode)
		return jobhealth.Of(s.Name, crew.Container, &podhealth.Hindrance{Reason: apis.ReasonCrashLooping, What: what, Remedy: remedy})
	}
	return nil
}
