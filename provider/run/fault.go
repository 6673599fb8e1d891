// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/jobhealth"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// whole is the rank of a fault of a whole pod.
const whole = -1

// together is how far apart the end of a container and the fault may be that the crew saw. It notices a member that sends nothing after ten
// seconds, and clocks differ.
const together = time.Minute

// fault that the coordinator reports. The crew sees only that a member is lost when the kernel kills its container for its memory, the
// companion with it; the status of the container has the cause. What was found out stays when the pod is gone.
func (v *view) fault(f *crew.Fault) *v1alpha1.RunFault {
	out := &v1alpha1.RunFault{
		Attempt: count(f.Attempt), Class: string(f.Class), Index: position(f.Index), Rank: position(f.Rank),
		At: v.past(f.At), Message: words.Heard(f.Message, maxMessage),
	}
	was := v.was.LastFault
	if was != nil && was.Attempt == out.Attempt && was.Index == out.Index {
		if was.Class == string(crew.ClassOutOfMemory) {
			return was
		}
		out.At, out.Node = was.At, was.Node
	}
	p := v.at(out.Index, out.At.Time)
	if p == nil {
		return out
	}
	out.Node = p.Spec.NodeName
	if t := killed(p); t != nil && out.Class == string(crew.ClassInfrastructure) && out.Rank == whole && t.FinishedAt.Sub(out.At.Time).Abs() <= together {
		out.Class, out.Message = string(crew.ClassOutOfMemory), overLimit(p, out.Index)
	}
	return out
}

// blame the end of the coordinator for the end of the attempt, unless it said itself what ended it.
func (v *view) blame(out *v1alpha1.RunObservation, t *corev1.ContainerStateTerminated) {
	p := v.newest(0)
	f := &v1alpha1.RunFault{
		Attempt: attempt(out), Class: string(crew.ClassInfrastructure), Index: 0, Rank: whole, Node: p.Spec.NodeName, At: v.past(t.FinishedAt.Time),
		Message: fmt.Sprintf("the coordinator ended with exit code %d", t.ExitCode),
	}
	switch {
	case killed(p) != nil:
		f.Class, f.Message = string(crew.ClassOutOfMemory), overLimit(p, 0)
	case out.Attempt == nil, out.LastFault != nil && out.LastFault.Attempt == f.Attempt:
		return // There was no attempt, or it had ended before.
	case t.ExitCode == crew.ExitEnded:
		f.Message = "the pod of the coordinator had to go"
	}
	out.LastFault = f
}

// position of a pod or rank, or -1.
func position(n int) int32 {
	if n < 0 || n > maxCount {
		return whole
	}
	return int32(n)
}

// overLimit says that the container of an index was killed for its memory.
func overLimit(p *corev1.Pod, index int32) string {
	s := podhealth.Subject{Pod: p, Spec: spec(p, crew.Container)}
	return s.OverLimit(fmt.Sprintf("the container of index %d", index)) + ": " + jobhealth.RemedyMemory
}

// spec of a container of a pod.
func spec(p *corev1.Pod, name string) corev1.Container {
	for _, all := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for _, c := range all {
			if c.Name == name {
				return c
			}
		}
	}
	return corev1.Container{}
}
