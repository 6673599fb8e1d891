// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	container = "algorithm"
	image     = "registry.example.org/algo/reco:2.1.4"
	revision  = "7c1d9e0a42"
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
			Annotations: map[string]string{
				v1alpha1.AnnotationRevision: revision, "kubectl.kubernetes.io/last-applied-configuration": "{}",
			},
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

func terminated(code int32, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].RestartCount = 2
		p.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, Message: message, StartedAt: ago(2 * time.Minute), FinishedAt: ago(2 * time.Minute),
		}
	}
}

// before is how the container ended the last time, after it had lived for some time, and how often it has been restarted.
func before(code int32, message string, lived time.Duration, restarts int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].RestartCount = restarts
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: "Error", Message: message, StartedAt: ago(time.Minute + lived), FinishedAt: ago(time.Minute),
		}
	}
}

func unfit(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = nil
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		}}
	}
}

const backoff = `Back-off pulling image "` + image + `": ErrImagePull: `

// causes are what a single pod says, and the one finding that comes of it.
var causes = map[string]struct {
	reason  string
	mods    []func(*corev1.Pod)
	finding string
	cause   v1alpha1.FindingCause
	message string
}{
	"ImageMissing": {
		reason: "The first attempt to pull says what is wrong.",
		mods: []func(*corev1.Pod){waiting("ErrImagePull", `rpc error: code = NotFound desc = failed to pull and unpack image "`+
			image+`": failed to resolve image: `+image+`: not found`)},
		finding: "ImagePullFailed",
		cause:   v1alpha1.FindingOfRevision,
		message: `image "` + image + `" cannot be pulled: the registry has no such image or tag; ` +
			"correct spec.image, or push the image",
	},
	"ImageMissingBackOff": {
		reason: "The wait between attempts says the same, so the finding stays the same.",
		mods: []func(*corev1.Pod){waiting("ImagePullBackOff", backoff+`rpc error: code = NotFound desc = failed to pull and unpack image "`+
			image+`": failed to resolve image: `+image+`: not found`)},
		finding: "ImagePullFailed",
		cause:   v1alpha1.FindingOfRevision,
		message: `image "` + image + `" cannot be pulled: the registry has no such image or tag; ` +
			"correct spec.image, or push the image",
	},
	"ImageForbidden": {
		reason: "A registry that wants a login names the field for it.",
		mods: []func(*corev1.Pod){waiting("ImagePullBackOff", backoff+`failed to authorize: failed to fetch oauth token: unexpected status `+
			`from GET request to https://registry.example.org/token?scope=a: 401 Unauthorized`)},
		finding: "ImagePullFailed",
		cause:   v1alpha1.FindingOfRevision,
		message: `image "` + image + `" cannot be pulled: the registry gives no access, or has no such repository; ` +
			"name a Secret that opens the registry in spec.pod.imagePullSecrets, or correct spec.image",
	},
	"ImageHostUnknown": {
		reason: "Addresses and ports of a failed look-up do not show.",
		mods: []func(*corev1.Pod){waiting("ImagePullBackOff", backoff+`failed to do request: Head "https://registry.example.org/v2/": dial tcp: `+
			`lookup registry.example.org on 10.0.0.53:53: read udp 198.18.3.11:38628->10.0.0.53:53: i/o timeout`)},
		finding: "ImagePullFailed",
		cause:   v1alpha1.FindingOutside,
		message: `image "` + image + `" cannot be pulled: the name of the registry cannot be resolved; ` +
			"see that the nodes reach the registry, or name another one in spec.image",
	},
	"ImageRegistryDown": {
		reason: "A port of 5000 is no status of 500.",
		mods: []func(*corev1.Pod){waiting("ErrImagePull", `failed to do request: Head "https://registry.example.org:5000/v2/": dial tcp `+
			`10.0.0.9:5000: connect: connection refused`)},
		finding: "ImagePullFailed",
		cause:   v1alpha1.FindingOutside,
		message: `image "` + image + `" cannot be pulled: the registry refuses connections; ` +
			"see that the nodes reach the registry, or name another one in spec.image",
	},
	"ImageRegistryFails": {
		reason: "A registry that fails says nothing about the image.",
		mods: []func(*corev1.Pod){waiting("ErrImagePull", `failed to resolve reference "`+image+`": unexpected status from HEAD request to `+
			`https://registry.example.org/v2/reco/manifests/1: 502 Bad Gateway`)},
		finding: "ImagePullFailed",
		cause:   v1alpha1.FindingOutside,
		message: `image "` + image + `" cannot be pulled: the registry fails; ` +
			"see that the nodes reach the registry, or name another one in spec.image",
	},
	"ImageRateLimited": {
		reason:  "Nor does one that wants to be asked later.",
		mods:    []func(*corev1.Pod){waiting("ErrImagePull", `failed to resolve image: 429 Too Many Requests`)},
		finding: "ImagePullFailed",
		cause:   v1alpha1.FindingOutside,
		message: `image "` + image + `" cannot be pulled: the registry limits the rate of pulls; ` +
			"name a Secret with a greater allowance in spec.pod.imagePullSecrets, or another registry in spec.image",
	},
	"ImageOtherCause": {
		reason: "A cause that we do not know is told in the registry's words, without what is volatile.",
		mods: []func(*corev1.Pod){waiting("ImagePullBackOff", backoff+`rpc error: code = Unknown desc = failed to extract layer `+
			"after 1.532s at 2026-11-20T13:59:58Z:\nunexpected media type")},
		finding: "ImagePullFailed",
		message: `image "` + image + `" cannot be pulled: failed to extract layer after … at : unexpected media type; ` +
			"correct spec.image, or push the image",
	},
	"ImageWithWordsInItsName": {
		reason: "Words within the reference are not the registry's.",
		mods: []func(*corev1.Pod){
			func(p *corev1.Pod) { p.Spec.Containers[0].Image = "r.example.org/denied:429" },
			waiting("ErrImagePull", `failed to resolve image: r.example.org/denied:429: not found`),
		},
		finding: "ImagePullFailed",
		cause:   v1alpha1.FindingOfRevision,
		message: `image "r.example.org/denied:429" cannot be pulled: the registry has no such image or tag; ` +
			"correct spec.image, or push the image",
	},
	"ImageNameInvalid": {
		reason: "A reference that no registry could have.",
		mods: []func(*corev1.Pod){waiting("InvalidImageName",
			`Failed to apply default image tag "A/b": couldn't parse image name "A/b": invalid reference format`)},
		finding: "ImagePullFailed",
		cause:   v1alpha1.FindingOfRevision,
		message: `image "` + image + `" is not a valid reference; correct spec.image`,
	},
	"NoGPU": {
		reason: "The device and how many of it are asked for are named; how many nodes there are is not.",
		mods: []func(*corev1.Pod){unfit("0/3 nodes are available: 1 node(s) had untolerated taint {gpu: only}, 2 Insufficient nvidia.com/gpu. " +
			"no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")},
		finding: "InsufficientGPU",
		message: "no node has 2 nvidia.com/gpu free for a replica: Insufficient nvidia.com/gpu, node(s) had untolerated taint {gpu: only}; " +
			"lower spec.resources.gpuCount, name another device in spec.resources.gpu, or add nodes that have it",
	},
	"NoDevices": {
		reason: "The scheduler does not say which claim it cannot allocate.",
		mods: []func(*corev1.Pod){unfit("0/1 nodes are available: 1 cannot allocate all claims. no new claims to deallocate, " +
			"preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.")},
		finding: "InsufficientGPU",
		message: "no node has the devices free that a replica claims: cannot allocate all claims; " +
			"lower count or correct selectors in spec.resources.deviceRequest, or add nodes that have such devices",
	},
	"NoDeviceClass": {
		reason:  "A DeviceClass that is missing is named by the scheduler.",
		mods:    []func(*corev1.Pod){unfit("0/1 nodes are available: request devices: device class gpu.none does not exist. no new claims to deallocate, preemption: not eligible.")},
		finding: "Unschedulable",
		message: "no node takes a replica: request devices: device class gpu.none does not exist; " +
			"name a DeviceClass that exists in spec.resources.deviceRequest.deviceClassName, or add nodes that fit",
	},
	"NoRoom": {
		reason: "Each thing that is short names its field.",
		mods: []func(*corev1.Pod){unfit("0/5 nodes are available: 2 Insufficient cpu, 3 Insufficient memory. " +
			"preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod.")},
		finding: "Unschedulable",
		message: "no node takes a replica: Insufficient cpu, Insufficient memory; " +
			"lower spec.resources.cpu, lower spec.resources.memory, or add nodes that fit",
	},
	"Tainted": {
		reason:  "Taints and labels of nodes name the fields for them.",
		mods:    []func(*corev1.Pod){unfit("0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint {a: b}.")},
		finding: "Unschedulable",
		message: "no node takes a replica: node(s) didn't match Pod's node affinity/selector, node(s) had untolerated taint {a: b}; " +
			"tolerate the taint in spec.pod.tolerations, correct spec.pod.nodeSelector, or add nodes that fit",
	},
	"SecretMissing": {
		reason:  "A Secret that is missing is named.",
		mods:    []func(*corev1.Pod){waiting("CreateContainerConfigError", `secret "reco-license" not found`)},
		finding: "ConfigError",
		cause:   v1alpha1.FindingOfRevision,
		message: `the container cannot be made: secret "reco-license" not found; make the Secret or key, or correct spec.env`,
	},
	"KeyMissing": {
		reason:  "A key that is missing is named.",
		mods:    []func(*corev1.Pod){waiting("CreateContainerConfigError", `couldn't find key k in ConfigMap shop/tuning`)},
		finding: "ConfigError",
		cause:   v1alpha1.FindingOfRevision,
		message: `the container cannot be made: couldn't find key k in ConfigMap shop/tuning; make the ConfigMap or key, or correct spec.env`,
	},
	"Root": {
		reason: "An image that runs as root names the field that helps, and not the pod.",
		mods: []func(*corev1.Pod){waiting("CreateContainerConfigError", `container has runAsNonRoot and image will run as root `+
			`(pod: "reco-a-6544fb8cd6-8vkfz_shop(69f96f2b-eef6-46b9-ad7d-97a3f9e2b4fc)", container: algorithm)`)},
		finding: "RunsAsRoot",
		cause:   v1alpha1.FindingOfRevision,
		message: `image "` + image + `" runs as root, which pods must not; ` +
			"set spec.pod.securityContext.runAsUser to a number above 0, or give the image a numeric USER",
	},
	"UserByName": {
		reason: "A user that is only known by name is named.",
		mods: []func(*corev1.Pod){waiting("CreateContainerConfigError", `container has runAsNonRoot and image has non-numeric user (nobody), `+
			`cannot verify user is non-root (pod: "x_shop(69f96f2b-eef6-46b9-ad7d-97a3f9e2b4fc)", container: algorithm)`)},
		finding: "RunsAsRoot",
		cause:   v1alpha1.FindingOfRevision,
		message: `image "` + image + `" runs as user "nobody", which may be root: its name does not show it; ` +
			"set spec.pod.securityContext.runAsUser to a number above 0, or give the image a numeric USER",
	},
	"Crash": {
		reason: "The last lines tell why, without the time and the pod's name.",
		mods: []func(*corev1.Pod){terminated(3, "Error",
			"Fri Nov 20 13:58:00 UTC 2026\n2026/11/20 13:58:00 reco-a-1: cannot open model\n")},
		finding: "CrashLooping",
		message: "the container crashes with exit code 3: the pod: cannot open model; " +
			"see the logs of its pods, and correct the image, spec.args or spec.env",
	},
	"CrashBackOff": {
		reason: "Between two attempts it is the same crash.",
		mods: []func(*corev1.Pod){
			before(3, "2026/11/20 13:57:11 reco-a-1: cannot open model\n", 0, 1),
			waiting("CrashLoopBackOff", `back-off 40s restarting failed container=algorithm pod=reco-a-1_shop(4f38745e-d07c-42a3-913e-9498e634d863)`),
		},
		finding: "CrashLooping",
		message: "the container crashes with exit code 3: the pod: cannot open model; " +
			"see the logs of its pods, and correct the image, spec.args or spec.env",
	},
	"CrashRestarted": {
		reason:  "A container that has just been restarted has not become well by that.",
		mods:    []func(*corev1.Pod){before(3, "cannot open model", 70*time.Second, 3), running(2 * time.Minute)},
		finding: "CrashLooping",
		message: "the container crashes with exit code 3: cannot open model; " +
			"see the logs of its pods, and correct the image, spec.args or spec.env",
	},
	"Panic": {
		reason: "Of a panic the first line tells, not the stack.",
		mods: []func(*corev1.Pod){terminated(2, "Error",
			"panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:8 +0x1d\n")},
		finding: "CrashLooping",
		message: "the container crashes with exit code 2: panic: runtime error: index out of range [5] with length 3; " +
			"see the logs of its pods, and correct the image, spec.args or spec.env",
	},
	"OutOfMemory": {
		reason:  "Memory names its limit and its field.",
		mods:    []func(*corev1.Pod){terminated(137, "OOMKilled", "")},
		finding: "CrashLooping",
		message: "the container is killed for using more memory than its limit of 256Mi; raise spec.resources.memory",
	},
	"Killed": {
		reason:  "A kill that no probe explains is told as such.",
		mods:    []func(*corev1.Pod){terminated(137, "Error", "")},
		finding: "CrashLooping",
		message: "the container is killed from outside, with exit code 137; " +
			"see the events of its pods for a failing probe, and that it listens on spec.port soon after its start",
	},
	"Segfault": {
		reason:  "A segmentation fault is decoded.",
		mods:    []func(*corev1.Pod){terminated(139, "Error", "")},
		finding: "CrashLooping",
		message: "the container crashes with exit code 139 (segmentation fault); " +
			"see the logs of its pods, and that image and node have the same platform and drivers",
	},
	"CommandNotFoundByShell": {
		reason:  "127 is a shell's way to say so.",
		mods:    []func(*corev1.Pod){terminated(127, "Error", "sh: nope: not found\n")},
		finding: "CrashLooping",
		message: "the container ends with exit code 127: its command, or one that it calls, is not found: sh: nope: not found; " +
			"correct spec.command and spec.args, or the entrypoint of the image",
	},
	"CommandNotFound": {
		reason: "The runtime's way to say so.",
		mods: []func(*corev1.Pod){waiting("RunContainerError", `failed to create containerd task: failed to create shim task: OCI runtime create `+
			`failed: runc create failed: unable to start container process: error during container init: exec: "/nope": stat /nope: no such file or directory`)},
		finding: "CrashLooping",
		message: `the command of the container cannot be started: exec: "/nope": stat /nope: no such file or directory; ` +
			"correct spec.command and spec.args, or the entrypoint of the image",
	},
	"CommandNotFoundEnded": {
		reason: "The runtime's other way to say so gives the same finding.",
		mods: []func(*corev1.Pod){terminated(128, "StartError", `failed to create containerd task: failed to create shim task: OCI runtime create `+
			`failed: runc create failed: unable to start container process: error during container init: exec: "/nope": stat /nope: no such file or directory`)},
		finding: "CrashLooping",
		message: `the command of the container cannot be started: exec: "/nope": stat /nope: no such file or directory; ` +
			"correct spec.command and spec.args, or the entrypoint of the image",
	},
	"Ends": {
		reason:  "A job is no service.",
		mods:    []func(*corev1.Pod){terminated(0, "Completed", "")},
		finding: "CrashLooping",
		message: "the container ends by itself, with exit code 0, where it should keep serving; " +
			"correct spec.command and spec.args, or the entrypoint of the image",
	},
	"Silent": {
		reason:  "A container that has run for a minute in silence names the port, also when its probe knows it by name.",
		mods:    []func(*corev1.Pod){running(time.Minute)},
		finding: "NotListening",
		message: silent,
	},
	"Silenced": {
		reason:  "A container that was killed about when its probe gives up was silent.",
		mods:    []func(*corev1.Pod){before(137, "", 5*time.Minute+10*time.Second, 2), running(5 * time.Second)},
		finding: "NotListening",
		message: silent,
	},
	"LongerThanItsCrash": {
		reason:  "A container that has outlived its last crash by a minute crashes no more, but is still silent.",
		mods:    []func(*corev1.Pod){before(1, "", 10*time.Second, 4), running(71 * time.Second)},
		finding: "NotListening",
		message: silent,
	},
	"Sidecar": {
		reason: "A container that somebody else adds is not to be mended in the spec.",
		mods: []func(*corev1.Pod){func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "proxy", Image: "mesh/proxy:1"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
				Name:  "proxy",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}},
			}}
		}, waiting("PodInitializing", "")},
		finding: "ImagePullFailed",
		cause:   v1alpha1.FindingOfRevision,
		message: `image "mesh/proxy:1" cannot be pulled: the registry has no such image or tag; ` +
			`container "proxy" is not the Algorithm's own: correct its entry in spec.pod, or ask the people who add it to the pods`,
	},
}

const silent = "the container runs and does not answer on port 8080; make it listen on all addresses (0.0.0.0:8080), " +
	"or set spec.port to the port that it listens on; while it still loads, nothing needs to be done"

func TestCauses(t *testing.T) {
	for name, tc := range causes {
		t.Run(name, func(t *testing.T) {
			p := pod("reco-a-1", tc.mods...)
			want := []v1alpha1.Finding{{Reason: tc.finding, Message: tc.message, Slot: "a", Revision: revision, Cause: tc.cause}}
			if diff := cmp.Diff(want, Of([]corev1.Pod{p}, container, nil, now)); diff != "" {
				t.Errorf("\n%s\nFindings(...): -want, +got:\n%s", tc.reason, diff)
			}
			o, err := Slim(&p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, Of([]corev1.Pod{*o.(*corev1.Pod)}, container, nil, now)); diff != "" {
				t.Errorf("\nThe cache leaves out what findings are made of\nFindings(Slim(...)): -want, +got:\n%s", diff)
			}
		})
	}
}

func TestNoCause(t *testing.T) {
	cases := map[string]struct {
		reason string
		mods   []func(*corev1.Pod)
	}{
		"Starting":    {reason: "A container that is being made is none.", mods: []func(*corev1.Pod){waiting("ContainerCreating", "")}},
		"JustRunning": {reason: "A container may need a minute.", mods: []func(*corev1.Pod){running(59 * time.Second)}},
		"EndedOnce":   {reason: "One end is no loop.", mods: []func(*corev1.Pod){terminated(1, "Error", ""), restarts(0)}},
		"RestartOnce": {reason: "One restart is no loop.", mods: []func(*corev1.Pod){before(1, "", 0, 1), running(0)}},
		"RestartsOfLongAgo": {reason: "One end after hours is no loop, however often it ended before.", mods: []func(*corev1.Pod){
			before(1, "", 3*time.Hour, 5), running(30 * time.Second),
		}},
		"KubeletStart": {reason: "A kubelet that has just started says so for seconds.", mods: []func(*corev1.Pod){waiting("CreateContainerConfigError", "services have not yet been read at least once, cannot construct envvars")}},
		"Unprobed": {reason: "Without a probe nothing is asked of the container.", mods: []func(*corev1.Pod){
			running(time.Hour), func(p *corev1.Pod) { p.Spec.Containers[0].StartupProbe = nil },
		}},
		"Ready": {reason: "A pod that is ready is well, whatever it was before.", mods: []func(*corev1.Pod){
			before(1, "", 0, 7), running(0), func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionTrue },
		}},
		"Leaving": {reason: "Nobody waits for a pod that is being deleted.", mods: []func(*corev1.Pod){
			waiting("InvalidImageName", ""), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} },
		}},
		"LeavingUnscheduled": {reason: "Nor for one that was never scheduled.", mods: []func(*corev1.Pod){
			unfit("0/1 nodes are available: 1 Insufficient cpu."), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} },
		}},
		"Evicted": {reason: "A pod that has ended for good is replaced.", mods: []func(*corev1.Pod){
			terminated(137, "Error", ""), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		}},
		"Gated": {reason: "A pod that is held back on purpose is not unschedulable.", mods: []func(*corev1.Pod){
			unfit("waiting"), func(p *corev1.Pod) { p.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated },
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Of([]corev1.Pod{pod("reco-a-1", tc.mods...)}, container, nil, now); len(got) != 0 {
				t.Errorf("\n%s\nFindings(...): want none, got %+v", tc.reason, got)
			}
		})
	}
}

func restarts(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = n }
}

func TestMany(t *testing.T) {
	pods := make([]corev1.Pod, 0, 54)
	for i := range 50 {
		pods = append(pods, pod(fmt.Sprintf("reco-a-%d", i), slot("a"),
			terminated(1, "Error", fmt.Sprintf("2026-11-20T13:%02d:00Z reco-a-%d died", i, i))))
	}
	for i := range 3 {
		pods = append(pods, pod(fmt.Sprintf("reco-b-%d", i), slot("b"), waiting("InvalidImageName", "")))
	}
	pods = append(pods, pod("reco-b-9", slot("b"), terminated(1, "Error", "reco-b-9 died")))
	got := Of(pods, container, nil, now)
	want := []v1alpha1.Finding{
		{Slot: "a", Revision: revision, Reason: "CrashLooping", Message: "the container crashes with exit code 1: the pod died; see the logs of its pods, and correct the image, spec.args or spec.env"},
		{Slot: "b", Revision: revision, Reason: "ImagePullFailed", Cause: v1alpha1.FindingOfRevision, Message: `image "` + image + `" is not a valid reference; correct spec.image`},
		{Slot: "b", Revision: revision, Reason: "CrashLooping", Extent: v1alpha1.FindingOfFew, Message: "the container crashes with exit code 1: the pod died; see the logs of its pods, and correct the image, spec.args or spec.env"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Each cause of a slot should be told once, the most frequent first: -want, +got:\n%s", diff)
	}
}

func TestMajoritySpeaks(t *testing.T) {
	pods := []corev1.Pod{
		pod("1", terminated(1, "Error", "a rare word")),
		pod("2", terminated(1, "Error", "the usual words")),
		pod("3", terminated(1, "Error", "the usual words")),
	}
	got := Of(pods, container, nil, now)
	if len(got) != 1 || !strings.Contains(got[0].Message, "the usual words") {
		t.Errorf("One exit code should be one finding, in the words of most pods, got %+v", got)
	}
}

func TestAtMostEight(t *testing.T) {
	pods := make([]corev1.Pod, 0, 20)
	for code := range int32(20) {
		pods = append(pods, pod("reco", terminated(20+code, "Error", "")))
	}
	if got := Of(pods, container, nil, now); len(got) != maxFindings {
		t.Errorf("Findings(...): want %d, got %d", maxFindings, len(got))
	}
}

func TestNextChange(t *testing.T) {
	cases := map[string]struct {
		reason string
		pods   []corev1.Pod
		want   time.Time
	}{
		"None":   {reason: "Without pods nothing changes by itself."},
		"Silent": {reason: "What has been told changes no more.", pods: []corev1.Pod{pod("a", running(time.Hour))}},
		"First": {
			reason: "The container that runs longest counts.",
			pods:   []corev1.Pod{pod("a", running(20*time.Second)), pod("b", running(50*time.Second))},
			want:   now.Add(10 * time.Second),
		},
		"Crashed": {
			reason: "One that crashed before has to do better first.",
			pods:   []corev1.Pod{pod("a", before(1, "", 30*time.Second, 2), running(20*time.Second))},
			want:   now.Add(70 * time.Second),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := NextChange(tc.pods, container, now); !got.Equal(tc.want) {
				t.Errorf("\n%s\nNextChange(...): want %s, got %s", tc.reason, tc.want, got)
			}
			if tc.want.IsZero() {
				return
			}
			if diff := cmp.Diff(Of(tc.pods, container, nil, now), Of(tc.pods, container, nil, tc.want)); diff == "" {
				t.Errorf("\n%s\nFindings at NextChange(...) should differ from those of now", tc.reason)
			}
		})
	}
}

func FuzzFindings(f *testing.F) {
	for _, tc := range causes {
		p := pod("reco-a-1", tc.mods...)
		var reason, message string
		if s := p.Status.ContainerStatuses; len(s) > 0 {
			if w := s[0].State.Waiting; w != nil {
				reason, message = w.Reason, w.Message
			}
			if t := s[0].State.Terminated; t != nil {
				reason, message = t.Reason, t.Message
			}
		} else {
			message = p.Status.Conditions[0].Message
		}
		f.Add(uint64(len(message)), reason, message, image, int32(1), int32(5))
	}
	f.Fuzz(func(t *testing.T, seed uint64, reason, message, image string, code, period int32) {
		r := rand.New(rand.NewPCG(seed, 0))
		pods := make([]corev1.Pod, 0, 12)
		for i := range 12 {
			p := pod(fmt.Sprintf("reco-%d", i), slot(string(rune('a'+r.IntN(3)))), func(p *corev1.Pod) {
				p.Spec.Containers[0].Image = image
				p.Spec.Containers[0].StartupProbe.PeriodSeconds = period
			})
			switch r.IntN(6) {
			case 0:
				waiting(reason, message)(&p)
			case 1:
				terminated(code, reason, message)(&p)
			case 2:
				before(code, message, time.Duration(r.IntN(1000))*time.Second, r.Int32N(4))(&p)
				running(time.Duration(r.IntN(200)) * time.Second)(&p)
			case 3:
				unfit(message)(&p)
			case 4:
				waiting("CrashLoopBackOff", message)(&p)
			case 5:
				p.Spec.Containers, p.Status.Conditions = nil, nil
				waiting("ErrImagePull", message)(&p)
			}
			pods = append(pods, p)
		}
		got := Of(pods, container, nil, now)
		next := NextChange(pods, container, now)
		if len(got) > maxFindings {
			t.Errorf("too many findings: %d", len(got))
		}
		for i, f := range got {
			if f.Reason == "" || f.Message == "" || len(f.Message) > 1024 || !utf8.ValidString(f.Message) {
				t.Errorf("not a finding for people: %+v", f)
			}
			if slices.Contains(got[:i], f) {
				t.Errorf("told twice: %+v", f)
			}
		}
		slim := make([]corev1.Pod, 0, len(pods))
		for i := range pods {
			o, err := Slim(&pods[i])
			if err != nil {
				t.Fatal(err)
			}
			slim = append(slim, *o.(*corev1.Pod))
		}
		r.Shuffle(len(slim), func(i, j int) { slim[i], slim[j] = slim[j], slim[i] })
		if diff := cmp.Diff(got, Of(slim, container, nil, now)); diff != "" {
			t.Errorf("findings depend on the order of pods, or on what the cache leaves out:\n%s", diff)
		}
		if !next.Equal(NextChange(slim, container, now)) {
			t.Error("the next change depends on the order of pods, or on what the cache leaves out")
		}
	})
}

func TestSlim(t *testing.T) {
	p := pod("reco-a-1", running(time.Hour))
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "precious"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "model"}}
	o, err := Slim(&p)
	if err != nil {
		t.Fatal(err)
	}
	got := o.(*corev1.Pod)
	if diff := cmp.Diff(map[string]string{v1alpha1.AnnotationRevision: revision}, got.Annotations); diff != "" {
		t.Errorf("Slim(...) should leave the annotation that findings name, and no other: -want, +got:\n%s", diff)
	}
	if got.ManagedFields != nil || got.Spec.Containers[0].Env != nil || got.Spec.Volumes != nil {
		t.Errorf("Slim(...) should leave out what findings are not made of, got %+v", got)
	}
	if o, err := Slim("a tombstone"); err != nil || o != "a tombstone" {
		t.Errorf("Slim(...) should leave everything else as it is, got %v and %v", o, err)
	}
}

// TestMissingSecret shows when a missing Secret blocks a pod.
func TestMissingSecret(t *testing.T) {
	creating := func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	cases := map[string]struct {
		reason string
		mods   []func(*corev1.Pod)
		want   []string
	}{
		"Creating": {reason: "A pod whose volumes cannot be mounted starts no container.", mods: []func(*corev1.Pod){creating}, want: []string{"ConfigError"}},
		"Running":  {reason: "One that runs has what it needs.", mods: []func(*corev1.Pod){running(time.Second)}},
		"Pulling":  {reason: "Neither does one that waits for an image wait for it.", mods: []func(*corev1.Pod){waiting("InvalidImageName", "")}, want: []string{"ImagePullFailed"}},
		"NoNode":   {reason: "Without a node nothing is mounted.", mods: []func(*corev1.Pod){unfit("0/1 nodes are available: 1 Insufficient cpu.")}, want: []string{"Unschedulable"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range Of([]corev1.Pod{pod("reco-a-1", tc.mods...)}, container, []string{"license"}, now) {
				got = append(got, f.Reason)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("\n%s\nwant %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
	got := Of([]corev1.Pod{pod("reco-a-1", creating)}, container, []string{"license"}, now)
	want := `Secret "license" is missing, and the containers wait for it; make it, or correct the field of the spec that names it`
	if got[0].Message != want || got[0].Slot != "a" {
		t.Errorf("want %q, got %+v", want, got)
	}
}
