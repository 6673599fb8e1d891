// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	container = "algorithm"
	image     = "registry.example.org/algo/reco:2.1.4"
)

var now = time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// pod of slot a that is scheduled and not ready.
func pod(name string, mods ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop",
			Name:      name,
			Labels:    map[string]string{v1alpha1.LabelAlgorithm: "reco", v1alpha1.LabelSlot: "a"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name:  container,
			Image: image,
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
				"nvidia.com/gpu":      resource.MustParse("2"),
				corev1.ResourceMemory: resource.MustParse("256Mi"),
			}},
			StartupProbe: &corev1.Probe{
				ProbeHandler:     corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}},
				PeriodSeconds:    5,
				FailureThreshold: 60,
			},
		}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: container}},
		},
	}
	for _, mod := range mods {
		mod(&p)
	}
	return p
}

func slot(s string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[v1alpha1.LabelSlot] = s }
}

func waiting(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	}
}

func running(since time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: ago(since)}
	}
}

const silent = "the container runs and does not answer on port 8080; make it listen on all addresses (0.0.0.0:8080), " +
	"or set spec.port to the port that it listens on; while it still loads, nothing needs to be done"
