// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestHindrance(t *testing.T) {
	const (
		image = "postgres:17"
		logs  = "; see the logs of the pod"
	)
	unscheduled := func(said string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: said,
		}}}}
	}
	of := func(name string, state corev1.ContainerState) *corev1.Pod {
		return &corev1.Pod{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: name, Image: image,
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
			}}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: name, State: state, RestartCount: 2}}},
		}
	}
	waits := func(reason, message string) *corev1.Pod {
		return of("postgres", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
	}
	ended := func(name, reason string, code int32, message string) *corev1.Pod {
		return of(name, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, Message: message}})
	}
	for name, tc := range map[string]struct {
		reason  string
		in      *corev1.Pod
		want    string
		message string
	}{
		"Well": {
			reason: "A container that runs is blocked by nothing.",
			in:     &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "postgres"}}}},
		},
		"Unschedulable": {
			reason: "Each objection of the scheduler has its remedy.",
			in: unscheduled("0/3 nodes are available: 1 Insufficient memory, 2 node(s) had volume node affinity conflict. " +
				"preemption: 0/3 nodes are available."),
			want: "Unschedulable",
			message: "no node takes the pod: Insufficient memory, node(s) had volume node affinity conflict; ask for less memory, " +
				"bring back a node that reaches the volume: it is bound to a zone or a node, or add nodes that fit",
		},
		"VolumePending": {
			reason: "No node can help where there is no volume.",
			in:     unscheduled(`0/3 nodes are available: persistentvolumeclaim "data-a" not found.`),
			want:   "VolumePending",
			message: `the volume is not there yet: persistentvolumeclaim "data-a" not found; ` +
				"see the events of the claim: its storage class must be able to provide the volume",
		},
		"Forbidden": {
			reason: "The image is the platform's, and so is the access to it.",
			in:     waits("ImagePullBackOff", "denied"),
			want:   "ImagePullFailed",
			message: `image "postgres:17" cannot be pulled: the registry gives no access, or has no such repository; ` +
				"see that the nodes have access to the registry",
		},
		"ConfigError": {
			reason:  "The words of the kubelet name what is missing.",
			in:      waits("CreateContainerConfigError", `secret "orders-db" not found`),
			want:    "ConfigError",
			message: `the container cannot be made: secret "orders-db" not found; see that the Secrets and ConfigMaps that the pod names are there`,
		},
		"OutOfMemory": {
			reason:  "The limit is told.",
			in:      ended("postgres", "OOMKilled", 137, ""),
			want:    "CrashLooping",
			message: "the container is killed for using more memory than its limit of 1Gi; give it more memory",
		},
		"Killed": {
			reason:  "A signal comes from outside.",
			in:      ended("postgres", "Error", 143, ""),
			want:    "CrashLooping",
			message: "the container is killed from outside, with exit code 143; see the events of the pod for a failing probe",
		},
		"Crash": {
			reason:  "The last that the container says is told, with the level and without the time.",
			in:      ended("postgres", "Error", 1, "2026-11-22 12:00:00,123 ERROR: no room\n"),
			want:    "CrashLooping",
			message: "the container ends with exit code 1: ERROR: no room" + logs,
		},
		"Panic": {
			reason:  "Of a panic the first line says why.",
			in:      ended("postgres", "Error", 2, "starts\npanic: no room\n\ngoroutine 1 [running]:\nmain.main()\n"),
			want:    "CrashLooping",
			message: "the container ends with exit code 2: panic: no room" + logs,
		},
		"Beside": {
			reason:  "Another container of the pod is named.",
			in:      ended("exporter", "Error", 1, ""),
			want:    "CrashLooping",
			message: "the container ends with exit code 1 (container exporter)" + logs,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Labels = map[string]string{labelApp: "postgres"}
			got, message := "", ""
			if h := hindrance(tc.in); h != nil {
				got, message = string(h.Reason), h.Message()
			}
			if diff := cmp.Diff([]string{tc.want, tc.message}, []string{got, message}); diff != "" {
				t.Errorf("%s\nhindrance(…): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPullRemedies looks that no fault is left without a remedy.
func TestPullRemedies(t *testing.T) {
	for fault, remedy := range images {
		if remedy == "" {
			t.Errorf("images[%d]: every fault of pulling must have a remedy", fault)
		}
	}
}
