// SPDX-License-Identifier: Apache-2.0

package jobhistory

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/runner"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// history of a Pipeline, with what was observed.
func historyOf(was ...v1alpha1.ObservedJob) *v1alpha1.JobHistory {
	cr := &v1alpha1.JobHistory{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "daily-pipeline", UID: "history"}}
	cr.Spec.ForProvider.Pipeline = "daily"
	if len(was) > 0 {
		cr.Status.AtProvider = v1alpha1.JobHistoryObservation{Pipeline: "daily", Jobs: was}
	}
	return cr
}

// job of an hour ago.
func job(change ...func(*batchv1.Job)) batchv1.Job {
	j := batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "daily-1", CreationTimestamp: metav1.NewTime(ago(time.Hour))}}
	j.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: runner.Container, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}},
	}}
	for _, c := range change {
		c(&j)
	}
	return j
}

// condition of a Job, ten minutes ago.
func condition(t batchv1.JobConditionType, reason string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: t, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(ago(10 * time.Minute)),
		})
	}
}

// pod of an index that runs since half an hour.
func pod(index string, change ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "daily-1-" + index + "-x7k2p", CreationTimestamp: metav1.NewTime(ago(30 * time.Minute)),
			Labels:          map[string]string{batchv1.JobCompletionIndexAnnotation: index},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "daily-1", Controller: new(true)}},
		},
		Spec: job().Spec.Template.Spec,
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: runner.Container, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(ago(29 * time.Minute))}},
	}}
	for _, c := range change {
		c(&p)
	}
	return p
}

// ended a while ago with an exit code, a reason, and what the companion said.
func ended(d time.Duration, code int32, reason string, s *runner.State) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Conditions = corev1.PodFailed, nil
		said := ""
		if s != nil {
			raw, _ := json.Marshal(s)
			said = string(raw)
		}
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, Message: said, StartedAt: metav1.NewTime(ago(29 * time.Minute)), FinishedAt: metav1.NewTime(ago(d)),
		}}
	}
}

func failedState(attempts int, action runner.Action) *runner.State {
	return &runner.State{Phase: runner.PhaseFailed, Attempts: attempts, LastFailure: &runner.Failure{
		Class: runner.ClassUser, ExitCode: 2, Action: action, At: ago(11 * time.Minute), Message: "program ended with exit code 2", Lines: "usage\nno such day",
	}}
}

func TestFacts(t *testing.T) {
	failed := condition(batchv1.JobFailureTarget, "PodFailurePolicy")
	tests := map[string]struct {
		reason string
		was    []v1alpha1.ObservedJob
		job    batchv1.Job
		pods   []corev1.Pod
		state  *runner.State
		want   v1alpha1.ObservedJob
		says   string
	}{
		"NoPod":   {reason: "It is about to start.", job: job(), want: v1alpha1.ObservedJob{Phase: "Starting"}},
		"Queued":  {reason: "A queue holds it.", job: job(func(j *batchv1.Job) { j.Spec.Suspend = new(true) }), want: v1alpha1.ObservedJob{Phase: "Queued"}},
		"Running": {reason: "Its companion says so.", job: job(), pods: []corev1.Pod{pod("0")}, state: &runner.State{Phase: runner.PhaseRunning, Attempts: 2}, want: v1alpha1.ObservedJob{Phase: "Running", Attempts: 2}},
		"Recovering": {
			reason: "The program starts again.", job: job(), pods: []corev1.Pod{pod("0")},
			state: func() *runner.State {
				s := failedState(2, runner.ActionRetry)
				s.Phase = runner.PhaseRecovering
				return s
			}(),
			want: v1alpha1.ObservedJob{Phase: "Recovering", Attempts: 2, Failure: &v1alpha1.ObservedFailure{Class: "User", Action: "Retry", ExitCode: 2}}, says: "last lines: usage / no such day",
		},
		"Failed": {
			reason: "The companion gave it up.", job: job(failed), pods: []corev1.Pod{pod("0", ended(11*time.Minute, runner.ExitFailed, "Error", failedState(3, runner.ActionFail)))},
			want: v1alpha1.ObservedJob{Phase: "Failed", Reason: "PodFailurePolicy", Attempts: 3, Failure: &v1alpha1.ObservedFailure{Class: "User", Action: "Fail", ExitCode: 2}}, says: "exit code 2",
		},
		"OutOfMemory": {
			reason: "The kernel killed the companion as well.", job: job(failed), pods: []corev1.Pod{pod("0", ended(11*time.Minute, 137, "OOMKilled", nil))},
			want: v1alpha1.ObservedJob{Phase: "Failed", Reason: "PodFailurePolicy", Attempts: 1, Failure: &v1alpha1.ObservedFailure{Class: "OutOfMemory", ExitCode: 137}}, says: "256Mi",
		},
		"Killed": {
			reason: "Somebody killed it, and not for its memory.", job: job(failed), pods: []corev1.Pod{pod("0", ended(11*time.Minute, 137, "Error", nil))},
			want: v1alpha1.ObservedJob{Phase: "Failed", Reason: "PodFailurePolicy", Attempts: 1, Failure: &v1alpha1.ObservedFailure{Class: "Infrastructure", ExitCode: 137}}, says: "killed from outside",
		},
		"WorkerOutOfMemory": {
			reason: "An executor counts, too.", job: job(failed), pods: []corev1.Pod{pod("0", ended(9*time.Minute, runner.ExitEnded, "Error", &runner.State{Phase: runner.PhaseEnding, Attempts: 1})), pod("1", ended(11*time.Minute, 137, "OOMKilled", nil))},
			want: v1alpha1.ObservedJob{Phase: "Failed", Reason: "PodFailurePolicy", Attempts: 1, Failure: &v1alpha1.ObservedFailure{Class: "OutOfMemory", ExitCode: 137}}, says: "memory",
		},
		"PodGone": {
			reason: "What was seen of a pod that is gone stays.", job: job(condition(batchv1.JobSuccessCriteriaMet, "")),
			was:  []v1alpha1.ObservedJob{{Name: "daily-1", Attempts: 4, Started: new(metav1.NewTime(ago(29 * time.Minute)))}},
			want: v1alpha1.ObservedJob{Phase: "Succeeded", Attempts: 4},
		},
		"Replaced": {
			reason: "Attempts of all pods count.", job: job(), state: &runner.State{Phase: runner.PhaseRunning, Attempts: 1},
			pods: []corev1.Pod{pod("0", ended(20*time.Minute, runner.ExitEnded, "Error", &runner.State{Phase: runner.PhaseEnding, Attempts: 2}), func(p *corev1.Pod) { p.Name, p.CreationTimestamp = "a", metav1.NewTime(ago(40*time.Minute)) }), pod("0")},
			want: v1alpha1.ObservedJob{Phase: "Running", Attempts: 3},
		},
		"Nonsense": {
			reason: "What is no State says nothing.", job: job(), pods: []corev1.Pod{pod("0", func(p *corev1.Pod) {
				ended(5*time.Minute, 1, "Error", nil)(p)
				p.Status.ContainerStatuses[0].State.Terminated.Message = `{"phase":"Done"}`
			})},
			want: v1alpha1.ObservedJob{Phase: "Starting", Attempts: 1, Failure: &v1alpha1.ObservedFailure{Class: "Infrastructure", ExitCode: 1}}, says: "left no State",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := newView(historyOf(tc.was...), []batchv1.Job{tc.job}, tc.pods, now)
			v.jobs[0].state = tc.state
			got := v.facts().Jobs[0]
			if f := got.Failure; f != nil {
				if !strings.Contains(f.Message, tc.says) {
					t.Errorf("%s: message %q, want %q", tc.reason, f.Message, tc.says)
				}
				got.Failure = &v1alpha1.ObservedFailure{Class: f.Class, Action: f.Action, ExitCode: f.ExitCode}
			}
			if (got.Ended != nil) != (got.Phase == "Succeeded" || got.Phase == "Failed") || got.Memory != "256Mi" {
				t.Errorf("ended %v, memory %s", got.Ended, got.Memory)
			}
			tc.want.Name, tc.want.Created, tc.want.Memory, tc.want.Started, tc.want.Ended = "daily-1", got.Created, got.Memory, got.Started, got.Ended
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOthers: a pod of another Job of the same name prefix is not mixed up, and the newest Job comes first.
func TestOthers(t *testing.T) {
	newer := job(func(j *batchv1.Job) { j.Name, j.CreationTimestamp = "daily-2", metav1.NewTime(ago(time.Minute)) })
	v := newView(historyOf(), []batchv1.Job{job(), newer}, []corev1.Pod{pod("0")}, now)
	at := v.facts()
	if len(at.Jobs) != 2 || at.Jobs[0].Name != "daily-2" || at.Jobs[0].Phase != "Starting" || at.Jobs[1].Phase != "Running" {
		t.Errorf("%+v", at.Jobs)
	}
}

// TestQuiet: an hour of a program that works makes no write, and one that fails every second makes few.
func TestQuiet(t *testing.T) {
	was := v1alpha1.JobHistoryObservation{}
	last, writes := now, 0
	for second := range 3600 {
		at := now.Add(time.Duration(second) * time.Second)
		s := failedState(second+1, runner.ActionRetry)
		s.LastFailure.At = at
		if second%2 == 0 {
			s.Phase = runner.PhaseRunning
		} else {
			s.Phase = runner.PhaseRecovering
		}
		v := newView(historyOf(was.Jobs...), []batchv1.Job{job()}, []corev1.Pod{pod("0")}, at)
		v.jobs[0].state = s
		if is := v.facts(); worth(was, is, at.Sub(last)) {
			was, last = is, at
			writes++
		}
	}
	if writes > 22 {
		t.Errorf("a program that fails all the time makes %d writes an hour", writes)
	}
	was, writes = v1alpha1.JobHistoryObservation{}, 0
	for minute := range 60 {
		v := newView(historyOf(was.Jobs...), []batchv1.Job{job()}, []corev1.Pod{pod("0")}, now.Add(time.Duration(minute)*time.Minute))
		v.jobs[0].state = &runner.State{Phase: runner.PhaseRunning, Attempts: 1}
		if is := v.facts(); worth(was, is, time.Hour) {
			was = is
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("a program that works makes %d writes an hour", writes)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"phase":"Running","attempts":1}`))
	f.Add([]byte(`{"phase":"Failed","lastFailure":{"class":"User","action":"Fail","message":"\u0000"}}x`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := parse(raw, 0)
		if err != nil || s.LastFailure == nil {
			return
		}
		if got := failure(s.LastFailure, now); len(got.Message) > maxMessage || strings.ContainsAny(got.Message, "\n\x00") {
			t.Fatalf("message %q", got.Message)
		}
	})
}
