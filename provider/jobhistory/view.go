// SPDX-License-Identifier: Apache-2.0

package jobhistory

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/provider/internal/jobhealth"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

// maxJobs of a Pipeline that are reported.
const maxJobs = 50

// Phases of a run, beside the phases of its companion.
const (
	phaseQueued     = "Queued"
	phaseStarting   = "Starting"
	phaseRunning    = string(runner.PhaseRunning)
	phaseRecovering = string(runner.PhaseRecovering)
	phaseSucceeded  = string(runner.PhaseSucceeded)
	phaseFailed     = string(runner.PhaseFailed)
)

// A view is what is seen of the runs of a Pipeline at one moment.
type view struct {
	was  v1alpha1.JobHistoryObservation
	jobs []jobView
	now  time.Time
}

// A jobView is a Job with its pods, the newest last.
type jobView struct {
	job  batchv1.Job
	pods []*corev1.Pod
	// state is what the companion of index 0 says, or nil.
	state *runner.State
	// refused is why the Job makes no pod, or nil.
	refused *podhealth.Hindrance
}

// newView of the Jobs of a Pipeline and their pods, the newest Job first.
func newView(cr *v1alpha1.JobHistory, jobs []batchv1.Job, pods []corev1.Pod, now time.Time) *view {
	v := &view{was: *cr.Status.AtProvider.DeepCopy(), now: now.UTC().Truncate(time.Second)}
	if name := cr.Spec.ForProvider.Pipeline; v.was.Pipeline != name {
		v.was = v1alpha1.JobHistoryObservation{Pipeline: name}
	}
	jobs = slices.Clone(jobs)
	slices.SortFunc(jobs, func(a, b batchv1.Job) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
	})
	for _, j := range jobs[:min(len(jobs), maxJobs)] {
		one := jobView{job: j}
		for i := range pods {
			if owner := metav1.GetControllerOf(&pods[i]); owner != nil && owner.Kind == "Job" && owner.Name == j.Name {
				one.pods = append(one.pods, &pods[i])
			}
		}
		slices.SortFunc(one.pods, func(a, b *corev1.Pod) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
		v.jobs = append(v.jobs, one)
	}
	return v
}

// isFirst reports whether a pod has index 0.
func isFirst(p *corev1.Pod) bool { return p.GetLabels()[batchv1.JobCompletionIndexAnnotation] == "0" }

// leader is the newest pod of index 0, or nil.
func (j *jobView) leader() *corev1.Pod {
	for _, p := range slices.Backward(j.pods) {
		if isFirst(p) && !podhealth.Leaving(p) {
			return p
		}
	}
	return nil
}

// container of the companion in a pod, or nothing.
func container(p *corev1.Pod) corev1.ContainerState {
	if p != nil {
		for _, s := range p.Status.ContainerStatuses {
			if s.Name == runner.Container {
				return s.State
			}
		}
	}
	return corev1.ContainerState{}
}

// end of a Job by itself. The first conditions say how it will end, and stay: a pod on a node that is gone keeps Kubernetes from the
// others.
func (j *jobView) end() (phase, reason string, at *metav1.Time) {
	for _, t := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, batchv1.JobFailureTarget, batchv1.JobFailed} {
		for _, c := range j.job.Status.Conditions {
			if c.Type != t || c.Status != corev1.ConditionTrue {
				continue
			}
			phase = phaseFailed
			if t == batchv1.JobSuccessCriteriaMet || t == batchv1.JobComplete {
				phase = phaseSucceeded
			}
			return phase, c.Reason, new(metav1.NewTime(c.LastTransitionTime.UTC()))
		}
	}
	return "", "", nil
}

// facts that are seen.
func (v *view) facts() v1alpha1.JobHistoryObservation {
	out := v1alpha1.JobHistoryObservation{Pipeline: v.was.Pipeline}
	var found []*podhealth.Hindrance
	var refused *podhealth.Hindrance
	for i := range v.jobs {
		j := &v.jobs[i]
		o := v.observed(j)
		out.Jobs = append(out.Jobs, o)
		if o.Phase == phaseSucceeded || o.Phase == phaseFailed {
			continue
		}
		refused = cmp.Or(refused, j.refused)
		found = append(found, j.refused)
		for _, p := range j.pods {
			if !podhealth.Leaving(p) {
				found = append(found, jobhealth.Hindrance(p, runner.Container))
			}
		}
	}
	out.Pods = jobhealth.Most(refused, found)
	return out
}

// last is what was observed of a Job, or nothing.
func (v *view) last(name string) v1alpha1.ObservedJob {
	for _, o := range v.was.Jobs {
		if o.Name == name {
			return o
		}
	}
	return v1alpha1.ObservedJob{}
}

// observed of a Job. What was seen of a pod that is gone stays.
func (v *view) observed(j *jobView) v1alpha1.ObservedJob { //nolint:cyclop // A fact after the other.
	was := v.last(j.job.Name)
	out := v1alpha1.ObservedJob{Name: j.job.Name, Created: metav1.NewTime(j.job.CreationTimestamp.UTC()), Started: was.Started, Failure: was.Failure}
	for _, c := range j.job.Spec.Template.Spec.Containers {
		if q, limited := c.Resources.Limits[corev1.ResourceMemory]; limited {
			out.Memory = q.String()
		}
	}
	attempts := 0
	for _, p := range j.pods {
		state := container(p)
		if t := state.Terminated; t != nil {
			attempts += v.takeEnded(&out, p, t)
			continue
		}
		if !isFirst(p) || state.Running == nil {
			continue
		}
		if out.Started == nil {
			out.Started = new(metav1.NewTime(state.Running.StartedAt.UTC()))
		}
		if p == j.leader() && j.state != nil {
			attempts += j.state.Attempts
			v.takeNewer(&out, failure(j.state.LastFailure, v.now))
		}
	}
	out.Attempts = max(was.Attempts, count(attempts))
	phase, reason, at := j.end()
	switch {
	case phase != "":
		out.Phase, out.Ended = phase, at
		if phase == phaseFailed {
			out.Reason = reason
		}
	case j.job.Spec.Suspend != nil && *j.job.Spec.Suspend:
		out.Phase = phaseQueued
	case container(j.leader()).Running == nil:
		out.Phase = phaseStarting
	case j.state != nil && j.state.Phase != runner.PhaseRunning && j.state.Phase != runner.PhaseSucceeded:
		out.Phase = phaseRecovering
	default:
		out.Phase = phaseRunning
	}
	return out
}

// takeEnded adds what the ended container of a companion said last, and returns how many attempts it made. One that was killed with its
// program says nothing.
func (v *view) takeEnded(out *v1alpha1.ObservedJob, p *corev1.Pod, t *corev1.ContainerStateTerminated) int {
	if out.Started == nil && isFirst(p) && !t.StartedAt.IsZero() {
		out.Started = new(metav1.NewTime(t.StartedAt.UTC()))
	}
	attempts := 0
	if isFirst(p) {
		attempts = 1
	}
	if len(t.Message) <= runner.MaxMessage {
		if s, err := parse([]byte(t.Message), 0); err == nil {
			if isFirst(p) {
				attempts = s.Attempts
			}
			// What a worker tried again is not why the run failed.
			if isFirst(p) || t.ExitCode == runner.ExitMemory || t.ExitCode == runner.ExitFailed {
				v.takeNewer(out, failure(s.LastFailure, v.now))
			}
			return attempts
		}
	}
	f := &v1alpha1.ObservedFailure{ExitCode: t.ExitCode, At: past(t.FinishedAt.Time, v.now)}
	switch subject := (podhealth.Subject{Pod: p, Spec: spec(p)}); {
	case t.Reason == podhealth.OutOfMemory:
		f.Class, f.Message = string(runner.ClassOutOfMemory), subject.OverLimit("the program")+", and "+jobhealth.RemedyMemory
	case t.ExitCode == runner.ExitDone || t.ExitCode == runner.ExitEnded:
		return attempts
	case t.ExitCode == podhealth.ExitKilled:
		f.Class, f.Message = string(runner.ClassInfrastructure), "the pod was killed from outside"
	case !isFirst(p):
		return attempts
	default:
		f.Class, f.Message = string(runner.ClassInfrastructure), fmt.Sprintf("the companion ended with exit code %d and left no State: see the log of the pod", t.ExitCode)
	}
	v.takeNewer(out, f)
	return attempts
}

// takeNewer replaces the failure by another one, unless that is older or nil.
func (v *view) takeNewer(out *v1alpha1.ObservedJob, f *v1alpha1.ObservedFailure) {
	if f != nil && (out.Failure == nil || !f.At.Before(&out.Failure.At)) {
		out.Failure = f
	}
}

// spec of the container of the companion.
func spec(p *corev1.Pod) corev1.Container {
	for _, c := range p.Spec.Containers {
		if c.Name == runner.Container {
			return c
		}
	}
	return corev1.Container{}
}
