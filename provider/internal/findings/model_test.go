// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const companion = "registry.example.org/capstan/companion:1"

// fetchingModel is a pod whose container model is in some state.
func fetchingModel(mods ...func(*corev1.ContainerStatus)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		st := corev1.ContainerStatus{Name: containerModel}
		for _, mod := range mods {
			mod(&st)
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: containerModel, Image: companion})
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, st)
		p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	}
}

func runs(since time.Duration) func(*corev1.ContainerStatus) {
	return func(st *corev1.ContainerStatus) {
		st.State.Running = &corev1.ContainerStateRunning{StartedAt: ago(since)}
	}
}

func waits(reason, message string) func(*corev1.ContainerStatus) {
	return func(st *corev1.ContainerStatus) {
		st.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	}
}

// gave up after some time, now or the last time.
func gaveUp(message string, lived time.Duration, last bool) func(*corev1.ContainerStatus) {
	return func(st *corev1.ContainerStatus) {
		t := &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: message, StartedAt: ago(time.Hour), FinishedAt: ago(time.Hour - lived)}
		if last {
			st.LastTerminationState.Terminated = t
			st.RestartCount = 1
		} else {
			st.State.Terminated = t
		}
	}
}

// warming is a pod whose own container serves, and whose container warm-up is in some state.
func warming(started bool, mods ...func(*corev1.ContainerStatus)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		st := corev1.ContainerStatus{Name: containerWarmUp, Started: new(true)}
		for _, mod := range mods {
			mod(&st)
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: containerWarmUp, Image: companion})
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, st)
		own := &p.Status.ContainerStatuses[0]
		own.State.Running = &corev1.ContainerStateRunning{StartedAt: ago(10 * time.Minute)}
		own.Started, own.Ready = new(started), started
	}
}

func TestModelFindings(t *testing.T) {
	const (
		words   = "ModelNotFound: there is no object s3://models/reco/7: correct spec.model.uri"
		missing = "the model cannot be used: there is no object s3://models/reco/7: correct spec.model.uri"
		volume  = "registry.example.org/models/reco:7"
	)
	cases := map[string]struct {
		reason  string
		mod     func(*corev1.Pod)
		finding string
		cause   v1alpha1.FindingCause
		message string
		next    time.Time
	}{
		"Missing": {
			reason:  "One attempt is enough, and the companion's words are told as they are.",
			mod:     fetchingModel(gaveUp(words, time.Minute, false)),
			finding: "ModelNotFound", cause: v1alpha1.FindingOfRevision, message: missing,
		},
		"MissingBackOff": {
			reason:  "Between two attempts it is the same.",
			mod:     fetchingModel(waits("CrashLoopBackOff", "back-off 20s restarting failed container=model"), gaveUp("fetching\n"+words+"\n", time.Minute, true)),
			finding: "ModelNotFound", cause: v1alpha1.FindingOfRevision, message: missing,
		},
		"MissingAgain": {
			reason:  "While it is tried again it stays, until that has taken longer than the last time.",
			mod:     fetchingModel(runs(90*time.Second), gaveUp(words, time.Minute, true)),
			finding: "ModelNotFound", cause: v1alpha1.FindingOfRevision, message: missing, next: now.Add(30 * time.Second),
		},
		"Better": {
			reason:  "Then it is being downloaded.",
			mod:     fetchingModel(runs(2*time.Minute), gaveUp(words, time.Minute, true)),
			finding: "ModelFetching",
			message: "the model is being downloaded; nothing needs to be done; spec.model.cache keeps large models for the next replicas",
		},
		"Fetching": {
			reason:  "A download that takes a while is told.",
			mod:     fetchingModel(runs(time.Minute)),
			finding: "ModelFetching",
			message: "the model is being downloaded; nothing needs to be done; spec.model.cache keeps large models for the next replicas",
		},
		"FetchingYet": {reason: "A quick one is not.", mod: fetchingModel(runs(59 * time.Second)), next: now.Add(time.Second)},
		"Steady": {
			reason:  "What differs from one attempt to the next is left out.",
			mod:     fetchingModel(gaveUp("ModelUnreachable: the server did not answer within 30.1s at 2026-11-20T13:59:58Z: see that it runs", time.Minute, false)),
			finding: "ModelUnreachable", cause: v1alpha1.FindingOutside, message: "the model cannot be used: the server did not answer within … at : see that it runs",
		},
		"OtherWords": {
			reason:  "Without a reason that is known it is a crash.",
			mod:     fetchingModel(gaveUp("ModelWhatever: panic", time.Minute, false)),
			finding: "CrashLooping", message: "the container that downloads the model ends with exit code 1: ModelWhatever: panic; see the logs of container model of its pods",
		},
		"CompanionImage": {
			reason:  "The companion's image is the platform's.",
			mod:     fetchingModel(waits("ErrImagePull", "failed to resolve image: "+companion+": not found")),
			finding: "ImagePullFailed", cause: v1alpha1.FindingOfRevision,
			message: `image "` + companion + `" cannot be pulled: the registry has no such image or tag; ` + remedyCompanion,
		},
		"ImageVolume": {
			reason: "An image that is a volume fails at the container that mounts it.",
			mod: func(p *corev1.Pod) {
				waiting("ImagePullBackOff", `Back-off pulling image "`+volume+`": ErrImagePull: failed to resolve image: `+volume+`: not found`)(p)
				p.Spec.Volumes = []corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: volume}}}}
			},
			finding: "ImagePullFailed", cause: v1alpha1.FindingOfRevision,
			message: `image "` + volume + `" cannot be pulled: the registry has no such image or tag; ` +
				"correct spec.model.uri, or push the image (spec.model.uri names the image)",
		},
		"NoClaim": {
			reason:  "A claim that is missing names its field.",
			mod:     unfit(`0/2 nodes are available: persistentvolumeclaim "models" not found. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.`),
			finding: "Unschedulable",
			message: `no node takes a replica: persistentvolumeclaim "models" not found; make the claim, or correct the claim in spec.model.uri, or add nodes that fit`,
		},
		"Cold": {
			reason:  "A replica that serves and does not become warm.",
			mod:     warming(true, runs(10*time.Minute)),
			finding: "NotWarm",
			message: "the requests that warm a replica up are not answered with success; see the logs of container warm-up of its pods, " +
				"and correct spec.probes.warmUp or the server; while it still warms up, nothing needs to be done",
		},
		"ColdYet":    {reason: "It may take a while.", mod: warming(true, runs(30*time.Second)), next: now.Add(30 * time.Second)},
		"NotStarted": {reason: "Before the server has started it cannot.", mod: warming(false, runs(10*time.Minute)), finding: "NotListening", message: silent},
		"Warm": {reason: "A warm one is well.", mod: func(p *corev1.Pod) {
			warming(true, runs(10*time.Minute))(p)
			p.Status.InitContainerStatuses[0].Ready = true
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := pod("reco-a-1", tc.mod)
			var want []v1alpha1.Finding
			if tc.finding != "" {
				want = []v1alpha1.Finding{{Reason: tc.finding, Message: tc.message, Slot: "a", Revision: revision, Cause: tc.cause}}
			}
			slim, err := Slim(&p)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range []corev1.Pod{p, *slim.(*corev1.Pod)} {
				got := Of([]corev1.Pod{one}, container, nil, now)
				if diff := cmp.Diff(want, got, cmp.Transformer("empty", func(f []v1alpha1.Finding) []v1alpha1.Finding { return append([]v1alpha1.Finding{}, f...) })); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
				}
				if next := NextChange([]corev1.Pod{one}, container, now); !tc.next.IsZero() && !next.Equal(tc.next) {
					t.Errorf("\n%s\nNextChange(...): want %s, got %s", tc.reason, tc.next, next)
				}
			}
		})
	}
}
