// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podask"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

// A view is what is seen of a run at one moment.
type view struct {
	// was is what was observed of the same run before.
	was v1alpha1.RunObservation

	// pods of each index, the newest last.
	pods map[int32][]*corev1.Pod

	// refused is why the Job makes no pod, or nil.
	refused *podhealth.Hindrance

	// state is what the coordinator says, or nil. silent is why it does not, or empty.
	state  *crew.State
	silent string

	now time.Time
}

// newView of the pods of a Job. What was observed of another run is forgotten.
func newView(cr *v1alpha1.Run, pods []corev1.Pod, now time.Time) *view {
	p := cr.Spec.ForProvider
	v := &view{was: *cr.Status.AtProvider.DeepCopy(), pods: map[int32][]*corev1.Pod{}, now: now.UTC().Truncate(time.Second)}
	if v.was.Job != p.Job || v.was.Number != p.Number {
		v.was = v1alpha1.RunObservation{Job: p.Job, Number: p.Number}
	}
	for i := range pods {
		owner := metav1.GetControllerOf(&pods[i])
		index, err := strconv.ParseInt(pods[i].GetLabels()[batchv1.JobCompletionIndexAnnotation], 10, 32)
		if owner == nil || owner.Kind != "Job" || owner.Name != p.Job || err != nil || index < 0 {
			continue
		}
		v.pods[int32(index)] = append(v.pods[int32(index)], &pods[i])
	}
	for _, of := range v.pods {
		slices.SortFunc(of, func(a, b *corev1.Pod) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), left(b)-left(a), cmp.Compare(a.GetName(), b.GetName()))
		})
	}
	return v
}

// left is 1 for a pod that makes room for another one, and 0 for others.
func left(p *corev1.Pod) int {
	if podhealth.Leaving(p) {
		return 1
	}
	return 0
}

// newest pod of an index, or nil.
func (v *view) newest(index int32) *corev1.Pod {
	of := v.pods[index]
	if len(of) == 0 {
		return nil
	}
	return of[len(of)-1]
}

// container of the companion in a pod, or nothing.
func container(p *corev1.Pod) corev1.ContainerState {
	if p == nil {
		return corev1.ContainerState{}
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == crew.Container {
			return s.State
		}
	}
	return corev1.ContainerState{}
}

// facts that are seen.
func (v *view) facts() v1alpha1.RunObservation {
	out := *v.was.DeepCopy()
	out.PodRestarts = max(out.PodRestarts, v.replaced())
	out.Silent = ""
	switch at := container(v.newest(0)); {
	case at.Running != nil && v.state != nil:
		v.take(&out, v.state)
	case at.Running != nil && v.silent != "" && v.overdue():
		// The node is gone: nothing else says that the container has ended, and no pod replaces it.
		v.lose(&out, v.newest(0).DeletionTimestamp.Time)
	case at.Running != nil && v.silent != "":
		out.Silent = v.silent
	case at.Running != nil:
		out.Silent = v.was.Silent // Too few have asked in vain since the provider began.
	case at.Terminated != nil:
		v.ended(&out, at.Terminated)
	default:
		v.lose(&out, v.now)
	}
	out.Pods = nil
	if !final(out.Phase) {
		out.Pods = v.blocked()
	}
	out.Remains = v.remains()
	return out
}

// ended takes over what the coordinator said at its end. What it leaves open its exit code decides.
func (v *view) ended(out *v1alpha1.RunObservation, t *corev1.ContainerStateTerminated) {
	if len(t.Message) <= crew.MaxMessage {
		if s, err := parse([]byte(t.Message), out.Number); err == nil {
			v.take(out, s)
		}
	}
	switch {
	case final(out.Phase):
	case t.ExitCode == crew.ExitDone:
		out.Phase = string(crew.PhaseSucceeded)
	case t.ExitCode == crew.ExitFailed:
		out.Phase = string(crew.PhaseFailed)
		if out.Message == "" {
			out.Message = fmt.Sprintf("the coordinator gave the run up with exit code %d and left no State: %s", t.ExitCode, podask.RemedyLogs)
		}
	default:
		v.lose(out, t.FinishedAt.Time)
		v.blame(out, t)
	}
	if final(out.Phase) {
		out.Missing, out.OverdueSince = nil, nil
	}
}

// lose the coordinator: without it no rank makes progress. Nothing is known of the others until there is another one.
func (v *view) lose(out *v1alpha1.RunObservation, since time.Time) {
	if out.Phase == "" || final(out.Phase) {
		return
	}
	if out.Phase == string(crew.PhaseRunning) {
		out.Phase = string(crew.PhaseRecovering)
	}
	at := v.past(since)
	if was, ok := missingSince(v.was.Missing, 0); ok {
		at = was
	}
	out.Missing = []v1alpha1.RunMember{{Index: 0, Since: at}}
}

// afterGrace is how long a pod may take to go after its grace period.
const afterGrace = 15 * time.Second

// remains of a run that is over, or nil: each pod that has not ended is being deleted, and one of them should be gone.
func (v *view) remains() *v1alpha1.RunRemains {
	var out *v1alpha1.RunRemains
	members := int32(0)
	for _, index := range v.indexes() {
		counted := false
		for _, p := range v.pods[index] {
			switch at := p.DeletionTimestamp; {
			case p.Status.Phase == corev1.PodSucceeded, p.Status.Phase == corev1.PodFailed:
				continue
			case at == nil:
				return nil // The run continues.
			case out == nil && at.Add(afterGrace).Before(v.now):
				out = &v1alpha1.RunRemains{Index: index, Node: p.Spec.NodeName}
			}
			counted = true
		}
		if counted {
			members++
		}
	}
	if out != nil {
		out.Members = members
	}
	return out
}

// overdue reports whether the pod of the coordinator should be gone since its grace period.
func (v *view) overdue() bool {
	at := v.newest(0).DeletionTimestamp
	return at != nil && at.Time.Before(v.now)
}

// replaced is the number of pods that were replaced. The Job counts the failed pods of an index in annotations of the next one, so that
// the count is right although the provider was stopped. Without such a count, the pods count that are still there.
func (v *view) replaced() int32 {
	n := 0
	for _, of := range v.pods {
		at, counted := of[len(of)-1].GetAnnotations(), 0
		for _, key := range []string{batchv1.JobIndexFailureCountAnnotation, batchv1.JobIndexIgnoredFailureCountAnnotation} {
			if c, err := strconv.Atoi(at[key]); err == nil {
				counted += int(count(c))
			}
		}
		n += max(counted, len(of)-1)
	}
	return count(n)
}

// indexes of the run that have pods, in order.
func (v *view) indexes() []int32 { return slices.Sorted(maps.Keys(v.pods)) }

// at is the pod that an index had at a time, or nil.
func (v *view) at(index int32, t time.Time) *corev1.Pod {
	for _, p := range slices.Backward(v.pods[index]) {
		if !p.CreationTimestamp.After(t) {
			return p
		}
	}
	return nil
}

// killed is how the companion of a pod was killed for its memory, or nil.
func killed(p *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, s := range p.Status.ContainerStatuses {
		for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
			if s.Name == crew.Container && t != nil && t.Reason == podhealth.OutOfMemory {
				return t
			}
		}
	}
	return nil
}
