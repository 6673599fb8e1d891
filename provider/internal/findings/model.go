// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// Containers that Capstan adds to the pods of an Algorithm.
const (
	containerModel  = "model"
	containerWarmUp = "warm-up"
)

const remedyCompanion = "ask the platform team: it is the image that their settings name in algorithm.companionImage"

// lastWords of the container that downloads the model, when it fails.
var lastWords = regexp.MustCompile(`(?m)^\s*(Model[A-Za-z]+): (.+)$`)

// modelReasons that it may give, with where their causes lie.
var modelReasons = map[xpv2.ConditionReason]observev1alpha1.FindingCause{
	v1alpha1.ReasonModelNotFound:       observev1alpha1.FindingOfRevision,
	v1alpha1.ReasonModelForbidden:      observev1alpha1.FindingOfRevision,
	v1alpha1.ReasonModelDigestMismatch: observev1alpha1.FindingOfRevision,
	v1alpha1.ReasonModelSizeMismatch:   observev1alpha1.FindingOfRevision,
	v1alpha1.ReasonModelInvalid:        observev1alpha1.FindingOfRevision,
	v1alpha1.ReasonModelUnreachable:    observev1alpha1.FindingOutside,
	v1alpha1.ReasonModelNoSpace:        observev1alpha1.FindingOutside,
}

// fetching finds a model that cannot be downloaded, or is being downloaded for a while.
func fetching(s subject) *podhealth.Hindrance {
	if at, runs := s.fetchingAt(); runs && !s.Now.Before(at) {
		return &podhealth.Hindrance{
			Reason: v1alpha1.ReasonModelFetching,
			What:   "the model is being downloaded",
			Remedy: "nothing needs to be done; spec.model.cache keeps large models for the next replicas",
		}
	}
	t := s.failed()
	if t == nil {
		return nil
	}
	if m := lastWords.FindStringSubmatch(words.Bounded(t.Message, words.MaxHeard)); m != nil {
		reason := xpv2.ConditionReason(m[1])
		if cause, known := modelReasons[reason]; known {
			return &podhealth.Hindrance{
				Reason: reason,
				What:   "the model cannot be used",
				Detail: words.Steady(m[2], s.Pod.GetName()),
				Cause:  cause,
			}
		}
	}
	h := &podhealth.Hindrance{
		Reason: v1alpha1.ReasonCrashLooping,
		What:   fmt.Sprintf("the container that downloads the model ends with exit code %d", t.ExitCode),
		Detail: podhealth.LastLines(t.Message, s.Pod),
		Remedy: "see the logs of container " + containerModel + " of its pods",
	}
	if t.Reason == podhealth.OutOfMemory {
		h.What = s.OverLimit("the container that downloads the model")
		h.Remedy = remedyCompanion
	}
	return h
}

// failed is how the last attempt ended, if it failed. One is enough: it has tried for minutes.
func (s subject) failed() *corev1.ContainerStateTerminated {
	for _, t := range []*corev1.ContainerStateTerminated{s.Status.State.Terminated, s.Status.LastTerminationState.Terminated} {
		if t != nil && t.ExitCode != 0 {
			return t
		}
	}
	return nil
}

// fetchingAt is when it is worth reporting that the container is still downloading. One that failed before may need as long as it
// did then, and a little more, before it has done better.
func (s subject) fetchingAt() (time.Time, bool) {
	r := s.Status.State.Running
	if r == nil {
		return time.Time{}, false
	}
	at := r.StartedAt.Add(timeout)
	if t := s.failed(); t != nil {
		at = at.Add(lived(t))
	}
	return at, true
}

// notWarm finds a replica that serves and whose first requests do not succeed.
func notWarm(s subject) *podhealth.Hindrance {
	at, cold := s.coldAt()
	if !cold || s.Now.Before(at) {
		return nil
	}
	return &podhealth.Hindrance{
		Reason: v1alpha1.ReasonNotWarm,
		What:   "the requests that warm a replica up are not answered with success",
		Remedy: "see the logs of container " + containerWarmUp + " of its pods, and correct spec.probes.warmUp or the server; " +
			"while it still warms up, nothing needs to be done",
	}
}

// coldAt is when a replica counts as cold, if the container that warms it up runs and the Algorithm's own has started.
func (s subject) coldAt() (time.Time, bool) {
	r := s.Status.State.Running
	i := slices.IndexFunc(s.Pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == s.container })
	if r == nil || i < 0 {
		return time.Time{}, false
	}
	own := s.Pod.Status.ContainerStatuses[i]
	if own.State.Running == nil || own.Started == nil || !*own.Started {
		return time.Time{}, false
	}
	at := r.StartedAt.Time
	if own.State.Running.StartedAt.After(at) {
		at = own.State.Running.StartedAt.Time
	}
	return at.Add(timeout), true
}
