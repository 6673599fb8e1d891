// SPDX-License-Identifier: Apache-2.0

package run

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

type (
	observation = v1alpha1.RunObservation
	state       = crew.State
)

func TestFacts(t *testing.T) {
	succeeded := asJSON(t, running(func(s *state) { s.Phase = crew.PhaseSucceeded }))
	gaveUp := asJSON(t, running(func(s *state) {
		s.Phase, s.Message = crew.PhaseFailed, "no progress in 3 attempts\nValueError: batch\x1b[0m"
	}))
	asked := asJSON(t, running(func(s *state) { s.Checkpoint.Step = 41100 }))
	overMemory := "the container of index 3 is killed for using more memory than its limit of 8Gi: raise spec.resources.memory, or have each process use less"
	oom := &v1alpha1.RunFault{
		Attempt: 1, Class: "OutOfMemory", Index: 3, Rank: -1, Node: "node-3", At: metav1.NewTime(ago(50 * time.Second)), Message: overMemory,
	}
	cases := map[string]struct {
		reason string
		was    observation
		pods   []corev1.Pod
		state  *state
		silent string
		want   observation
	}{
		"Nothing": {reason: "Before there is a pod nothing is known.", want: observation{Job: "fraud-r1", Number: 1}},
		"Well":    {reason: "What the coordinator says is observed.", pods: []corev1.Pod{pod(0), pod(1)}, state: running(), want: saw()},
		"Stranger": {
			reason: "Pods of others, or without an index, are none of the run.",
			pods: []corev1.Pod{
				pod(0, func(p *corev1.Pod) { p.OwnerReferences = nil }),
				pod(1, unschedulable("0/3 nodes are available: 3 Insufficient cpu."), func(p *corev1.Pod) { p.OwnerReferences[0].Name = "other" }),
				pod(2, unschedulable("0/3 nodes are available: 3 Insufficient cpu."), func(p *corev1.Pod) { p.Labels[batchv1.JobCompletionIndexAnnotation] = "x" }),
			},
			want: observation{Job: "fraud-r1", Number: 1},
		},
		"Another": {
			reason: "What was observed of another run is forgotten.",
			was:    saw(func(o *observation) { o.Job, o.Number, o.PodRestarts = "fraud-r0", 0, 7 }),
			pods:   []corev1.Pod{pod(0, waits)}, want: observation{Job: "fraud-r1", Number: 1},
		},
		"Unschedulable": {
			reason: "What blocks most pods is reported, without counts and names.",
			pods: []corev1.Pod{
				pod(0), pod(1, unschedulable("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")),
				pod(2, unschedulable("0/3 nodes are available: 3 Insufficient cpu.")), pod(3, unschedulable("0/4 nodes are available: 4 Insufficient cpu.")),
			},
			state: running(),
			want: saw(func(o *observation) {
				o.Pods = &v1alpha1.RunPods{
					Reason: "Unschedulable", Message: "no node takes a pod: Insufficient cpu; lower spec.resources.cpu, or add nodes that fit",
				}
			}),
		},
		"GPU": {
			reason: "A device has a remedy of its own.",
			pods:   []corev1.Pod{pod(0, unschedulable("0/3 nodes are available: 3 Insufficient nvidia.com/gpu."))},
			want: observation{Job: "fraud-r1", Number: 1, Pods: &v1alpha1.RunPods{
				Reason: "InsufficientGPU", Message: "no node has enough nvidia.com/gpu free for a pod: Insufficient nvidia.com/gpu; " +
					"lower spec.resources.gpuCount, name another device in spec.resources.gpu, or add nodes that have it",
			}},
		},
		"Pull": {
			reason: "An image that is not there is reported with its remedy.",
			pods: []corev1.Pod{pod(0, waits, func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "rpc error: code = NotFound desc = not found"}
			})},
			want: observation{Job: "fraud-r1", Number: 1, Pods: &v1alpha1.RunPods{
				Reason: "ImagePullFailed", Message: `image "registry.example.org/fraud:1" cannot be pulled: the registry has no such image or tag; correct spec.image, or push the image`,
			}},
		},
		"Evicted": {
			reason: "A pod that was evicted and has no successor yet blocks the run.",
			pods: []corev1.Pod{pod(0), pod(1, ended(137, "Error", ""), func(p *corev1.Pod) {
				p.Status.Reason, p.Status.Message = "Evicted", "The node was low on resource: memory."
			})},
			state: running(),
			want: saw(func(o *observation) {
				o.Pods = &v1alpha1.RunPods{
					Reason: "Evicted", Message: "the node evicted the pod: The node was low on resource: memory; ask for as much in spec.resources as the pod uses",
				}
			}),
		},
		"Init": {
			reason: "A container beside the companion is named.",
			pods: []corev1.Pod{pod(0, ended(1, "Error", ""), func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = p.Status.ContainerStatuses
				p.Status.InitContainerStatuses[0].Name = "companion"
				p.Status.ContainerStatuses = nil
			})},
			want: observation{Job: "fraud-r1", Number: 1, Pods: &v1alpha1.RunPods{
				Reason: "CrashLooping", Message: "the container ends with exit code 1 (container companion); see the logs of the pods",
			}},
		},
		"OutOfMemory": {
			reason: "The crew sees a lost member. The status of its container has the cause, and the pod of that time the node.",
			pods:   []corev1.Pod{pod(0), pod(3, ended(137, "OOMKilled", "")), pod(3, again("1"))},
			state:  running(func(s *state) { s.LastFault = lost(3) }),
			want:   saw(func(o *observation) { o.LastFault, o.PodRestarts = oom, 1 }),
		},
		"StillOutOfMemory": {
			reason: "What was found out stays when the pod is gone.",
			was:    saw(func(o *observation) { o.LastFault, o.PodRestarts = oom, 1 }),
			pods:   []corev1.Pod{pod(0), pod(3, again("1"))},
			state:  running(func(s *state) { s.LastFault = lost(3) }),
			want:   saw(func(o *observation) { o.LastFault, o.PodRestarts = oom, 1 }),
		},
		"Lost": {
			reason: "A member that is lost otherwise is lost.",
			pods:   []corev1.Pod{pod(0), pod(3, ended(143, "Error", "")), pod(3, again("1"))},
			state:  running(func(s *state) { s.LastFault = lost(3) }),
			want: saw(func(o *observation) {
				o.PodRestarts = 1
				o.LastFault = &v1alpha1.RunFault{
					Attempt: 1, Class: "Infrastructure", Index: 3, Rank: -1, Node: "node-3", At: metav1.NewTime(ago(50 * time.Second)), Message: "the member is lost",
				}
			}),
		},
		"Replaced": {
			reason: "The Job counts what was replaced, whatever the provider has missed, and nothing is counted down.",
			was:    saw(func(o *observation) { o.PodRestarts = 2 }),
			pods: []corev1.Pod{pod(0), pod(1, again("3"), func(p *corev1.Pod) {
				p.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = "2"
			}), pod(2, again("x"))},
			state: running(), want: saw(func(o *observation) { o.PodRestarts = 5 }),
		},
		"Kept": {
			reason: "A count whose pod is gone stays.",
			was:    saw(func(o *observation) { o.PodRestarts = 2 }),
			pods:   []corev1.Pod{pod(0)}, state: running(), want: saw(func(o *observation) { o.PodRestarts = 2 }),
		},
		"Silent": {
			reason: "A coordinator that does not answer leaves all as it was.",
			was:    saw(), pods: []corev1.Pod{pod(0)}, silent: "it does not answer",
			want: saw(func(o *observation) { o.Silent = "it does not answer" }),
		},
		"SilentStill": {
			reason: "A provider that begins asks some times before it knows better.",
			was:    saw(func(o *observation) { o.Silent = "it does not answer" }), pods: []corev1.Pod{pod(0)},
			want: saw(func(o *observation) { o.Silent = "it does not answer" }),
		},
		"Amnesia": {
			reason: "A new coordinator knows nothing of the time before, and nothing is forgotten with it.",
			was:    saw(func(o *observation) { o.LastFault = oom }),
			pods:   []corev1.Pod{pod(0)},
			state:  &state{Run: 1, Phase: crew.PhaseGathering, Missing: []crew.Missing{{Index: 1, Since: ago(time.Minute)}}},
			want: saw(func(o *observation) {
				o.Phase, o.LastFault, o.GoodputPercent = "Gathering", oom, new(int32(0))
				o.Progress = &v1alpha1.RunProgress{At: new(metav1.NewTime(now))}
				o.Missing = []v1alpha1.RunMember{{Index: 1, Since: metav1.NewTime(ago(time.Minute))}}
			}),
		},
		"Succeeded": {
			reason: "The last words of the coordinator are in its termination message.",
			was:    saw(), pods: []corev1.Pod{pod(0, ended(0, "Completed", succeeded)), pod(1, ended(0, "Completed", ""))},
			want: saw(func(o *observation) { o.Phase = "Succeeded" }),
		},
		"SucceededWithoutWords": {
			reason: "Without words the exit code counts.",
			was:    saw(func(o *observation) { o.Missing = []v1alpha1.RunMember{{Index: 1, Since: metav1.NewTime(now)}} }),
			pods:   []corev1.Pod{pod(0, ended(0, "Completed", "panic: …"))},
			want:   saw(func(o *observation) { o.Phase = "Succeeded" }),
		},
		"GaveUp": {
			reason: "A run that failed says why, on one line and without control characters.",
			was:    saw(), pods: []corev1.Pod{pod(0, ended(64, "Error", gaveUp))},
			want: saw(func(o *observation) {
				o.Phase, o.Message = "Failed", "no progress in 3 attempts / ValueError: batch [0m"
			}),
		},
		"GaveUpWithoutWords": {
			reason: "Longer than a termination message can be, it is none.",
			was:    saw(), pods: []corev1.Pod{pod(0, ended(64, "Error", gaveUp+strings.Repeat(" ", crew.MaxMessage)))},
			want: saw(func(o *observation) {
				o.Phase, o.Message = "Failed", "the coordinator gave the run up with exit code 64 and left no State: see the log of the pod with index 0"
			}),
		},
		"WordsOfAnother": {
			reason: "Words about another run are not believed.",
			was:    saw(), pods: []corev1.Pod{pod(0, ended(0, "Completed", asJSON(t, running(func(s *state) { s.Run, s.Phase = 2, crew.PhaseFailed }))))},
			want: saw(func(o *observation) { o.Phase = "Succeeded" }),
		},
		"AskedToGo": {
			reason: "A coordinator that was asked to go has lost its crew, and the checkpoint that it wrote is known.",
			was:    saw(), pods: []corev1.Pod{pod(0, ended(143, "Error", asked)), pod(1)},
			want: saw(func(o *observation) {
				o.Phase, o.Checkpoint.Step = "Recovering", 41100
				o.Missing = []v1alpha1.RunMember{{Index: 0, Since: metav1.NewTime(ago(time.Minute))}}
				o.LastFault = &v1alpha1.RunFault{
					Attempt: 2, Class: "Infrastructure", Index: 0, Rank: -1, Node: "node-0", At: metav1.NewTime(ago(time.Minute)),
					Message: "the pod of the coordinator had to go",
				}
			}),
		},
		"CoordinatorOutOfMemory": {
			reason: "A coordinator that was killed for its memory leaves no words.",
			was:    saw(), pods: []corev1.Pod{pod(0, ended(137, "OOMKilled", ""))},
			want: saw(func(o *observation) {
				o.Phase, o.Missing = "Recovering", []v1alpha1.RunMember{{Index: 0, Since: metav1.NewTime(ago(time.Minute))}}
				o.LastFault = &v1alpha1.RunFault{
					Attempt: 2, Class: "OutOfMemory", Index: 0, Rank: -1, Node: "node-0", At: metav1.NewTime(ago(time.Minute)),
					Message: strings.Replace(overMemory, "index 3", "index 0", 1),
				}
				o.Pods = &v1alpha1.RunPods{
					Reason:  "OutOfMemory",
					Message: "the container is killed for using more memory than its limit of 8Gi; raise spec.resources.memory, or have each process use less",
				}
			}),
		},
		"CoordinatorOnADeadNode": {
			reason: "A pod that should be gone and does not answer is lost, although its node never says so.",
			was:    saw(), pods: []corev1.Pod{pod(0, deleted(time.Minute)), pod(1)}, silent: "it does not answer",
			want: saw(func(o *observation) {
				o.Phase, o.Missing = "Recovering", []v1alpha1.RunMember{{Index: 0, Since: metav1.NewTime(ago(time.Minute))}}
			}),
		},
		"RunOnADeadNode": {
			reason: "Of a run that is over it counts which members may still run, and where the first is that should have ended.",
			was:    saw(),
			pods: []corev1.Pod{
				pod(0, deleted(time.Minute)), pod(1, ended(143, "Error", ""), deleted(time.Minute)), pod(2, deleted(-2*time.Hour)), pod(3, deleted(time.Minute)),
			},
			silent: "it does not answer",
			want: saw(func(o *observation) {
				o.Phase, o.Missing = "Recovering", []v1alpha1.RunMember{{Index: 0, Since: metav1.NewTime(ago(time.Minute))}}
				o.Remains = &v1alpha1.RunRemains{Members: 3, Index: 0, Node: "node-0"}
			}),
		},
		"RunThatEnds": {
			reason: "Pods that still have time to end are no news.",
			was:    saw(), pods: []corev1.Pod{pod(0, deleted(-2*time.Hour)), pod(1, deleted(-2*time.Hour))}, state: running(), want: saw(),
		},
		"RunThatContinues": {
			reason: "A pod that was deleted alone is replaced, and a crew misses it until then.",
			was:    saw(), pods: []corev1.Pod{pod(0), pod(1, deleted(time.Hour))}, state: running(), want: saw(),
		},
		"CoordinatorGone": {
			reason: "Without the pod of the coordinator no rank makes progress.",
			was:    saw(), pods: []corev1.Pod{pod(1)},
			want: saw(func(o *observation) {
				o.Phase, o.Missing = "Recovering", []v1alpha1.RunMember{{Index: 0, Since: metav1.NewTime(now)}}
			}),
		},
		"Over": {
			reason: "What was the end stays when the pods are gone.",
			was:    saw(func(o *observation) { o.Phase, o.Message = "Failed", "no progress" }),
			want:   saw(func(o *observation) { o.Phase, o.Message = "Failed", "no progress" }),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := newView(runOf(tc.was), tc.pods, now)
			v.state, v.silent = tc.state, tc.silent
			got := v.facts()
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}

			// Looked at again, nothing has changed.
			v = newView(runOf(got), tc.pods, now.Add(time.Hour))
			v.state, v.silent = tc.state, tc.silent
			next := v.facts()
			if next.Progress != nil {
				next.Progress.At = got.Progress.At
			}
			if diff := cmp.Diff(got, next, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\nAn hour later: -before, +after:\n%s", diff)
			}
		})
	}
}
