// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// runOf a Job, with what was observed of it.
func runOf(was v1alpha1.RunObservation) *v1alpha1.Run {
	cr := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "fraud", UID: "run"}}
	cr.Spec.ForProvider = v1alpha1.RunParameters{Job: "fraud-r1", Number: 1}
	cr.Status.AtProvider = was
	return cr
}

// pod of an index that runs since half an hour.
func pod(index int, change ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("fraud-r1-%d-x7k2p", index), UID: types.UID(strconv.Itoa(index)),
			CreationTimestamp: metav1.NewTime(ago(30 * time.Minute)),
			Labels: map[string]string{
				crew.LabelTraining: "fraud", batchv1.JobNameLabel: "fraud-r1", batchv1.JobCompletionIndexAnnotation: strconv.Itoa(index),
			},
			Annotations:     map[string]string{batchv1.JobIndexFailureCountAnnotation: "0"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "fraud-r1", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d", index),
			Containers: []corev1.Container{{
				Name: crew.Container, Image: "registry.example.org/fraud:1",
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")}},
			}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.1.0.%d", index+1), HostIP: "192.168.7.7",
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: crew.Container, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(ago(29 * time.Minute))}},
			}},
		},
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

// waits for something.
func waits(p *corev1.Pod) {
	p.Status.Phase, p.Status.Conditions[1].Status = corev1.PodPending, corev1.ConditionFalse
	p.Status.ContainerStatuses[0].Ready = false
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
}

// ends a minute ago with an exit code and a termination message.
func ended(code int32, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Conditions[1].Status = corev1.PodFailed, corev1.ConditionFalse
		if code == 0 {
			p.Status.Phase = corev1.PodSucceeded
		}
		p.Status.ContainerStatuses[0].Ready = false
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, Message: message, FinishedAt: metav1.NewTime(ago(time.Minute)),
		}}
	}
}

// deleted pod whose grace period has been over for a time.
func deleted(since time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(ago(since))) }
}

// unschedulable for a reason.
func unschedulable(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		waits(p)
		p.Spec.NodeName, p.Status.ContainerStatuses = "", nil
		p.Status.Conditions[0] = corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		}
	}
}

// again is a pod that was made half a minute ago for failed ones before.
func again(failures string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.CreationTimestamp, p.UID, p.Name = metav1.NewTime(ago(30*time.Second)), "again", p.Name+"-again"
		p.Spec.NodeName = "node-new"
		p.Annotations[batchv1.JobIndexFailureCountAnnotation] = failures
	}
}

// running is what a coordinator says while all is well.
func running(change ...func(*crew.State)) *crew.State {
	s := &crew.State{
		Run: 1, Phase: crew.PhaseRunning, Attempt: 2, Restarts: 2, GoodputPercent: 97,
		Progress:   crew.Progress{Step: 41200, Of: 60000, Loss: "2.31", StepsPerSecond: 1.23456},
		Checkpoint: &crew.Checkpoint{Step: 41000, URI: "/checkpoints/step-41000", At: ago(2 * time.Minute)},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// saw is what is observed of it.
func saw(change ...func(*v1alpha1.RunObservation)) v1alpha1.RunObservation {
	o := v1alpha1.RunObservation{
		Job: "fraud-r1", Number: 1, Phase: "Running", Attempt: new(int32(2)), Restarts: 2, GoodputPercent: new(int32(97)),
		Progress:   &v1alpha1.RunProgress{Step: 41200, Of: 60000, Loss: "2.31", StepsPerMinute: 74.1, At: new(metav1.NewTime(now))},
		Checkpoint: &v1alpha1.RunCheckpoint{Step: 41000, URI: "/checkpoints/step-41000", At: metav1.NewTime(ago(2 * time.Minute))},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// lost is a fault of a whole pod that the crew saw a minute ago.
func lost(index int) *crew.Fault {
	return &crew.Fault{Attempt: 1, Class: crew.ClassInfrastructure, Index: index, Rank: -1, At: ago(50 * time.Second), Message: "the member is lost"}
}

func asJSON(t *testing.T, s *crew.State) string {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
