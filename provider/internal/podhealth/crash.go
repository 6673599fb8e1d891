// SPDX-License-Identifier: Apache-2.0

package podhealth

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// maxLines is how many of the last lines that a container wrote are told.
const maxLines = 3

// config finds a container that cannot be made from its configuration.
func config(s subject) *Hindrance {
	w := s.status.State.Waiting
	if w == nil || (w.Reason != "CreateContainerConfigError" && w.Reason != "CreateContainerError") {
		return nil
	}

	said := Steady(w.Message, s.pod.GetName())

	// The kubelet says so for seconds after its own start.
	if strings.Contains(said, "services have not yet been read") {
		return nil
	}

	return &Hindrance{
		Reason: v1alpha1.ReasonConfigError,
		What:   "the container cannot be made",
		Detail: said,
		Remedy: "see that the Secrets and ConfigMaps that the pod names are there",
	}
}

// crash finds a container that starts and ends again.
func crash(s subject) *Hindrance {
	if w := s.status.State.Waiting; w != nil && w.Reason == "RunContainerError" {
		return notStarted(s, w.Message)
	}

	t := ended(s.status)
	if t == nil {
		return nil
	}

	h := &Hindrance{
		Reason: v1alpha1.ReasonCrashLooping,
		What:   fmt.Sprintf("the container ends with exit code %d", t.ExitCode),
		Detail: lastLines(t.Message, s.pod.GetName()),
		Remedy: "see the logs of the pod",
	}

	switch {
	case startFailed(t):
		return notStarted(s, t.Message)
	case t.Reason == "OOMKilled":
		h.What = "the container is killed for using more memory than its limit" + limit(s)
		h.Remedy = "give it more memory"
	case t.ExitCode == 128+9, t.ExitCode == 128+15:
		h.What = fmt.Sprintf("the container is killed from outside, with exit code %d", t.ExitCode)
		h.Remedy = "see the events of the pod for a failing probe"
	}

	return h
}

// ended is how the container ended, if it does so again and again. Between two
// ends it runs for a while, which does not make it well.
func ended(st corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	last := st.LastTerminationState.Terminated

	switch now := st.State; {
	case now.Terminated != nil && (st.RestartCount > 0 || startFailed(now.Terminated)):
		return now.Terminated
	case now.Waiting != nil && now.Waiting.Reason == "CrashLoopBackOff":
		return last
	case now.Terminated == nil && st.RestartCount > 1:
		return last
	}

	return nil
}

// startFailed tells whether the runtime could not even start the command.
func startFailed(t *corev1.ContainerStateTerminated) bool {
	return t.Reason == "StartError" || t.Reason == "ContainerCannotRun"
}

// notStarted is a container whose command the runtime cannot start.
func notStarted(s subject, message string) *Hindrance {
	if _, after, ok := strings.Cut(message, "unable to start container process: "); ok {
		message = after
	}

	return &Hindrance{
		Reason: v1alpha1.ReasonCrashLooping,
		What:   "the command of the container cannot be started",
		Detail: Steady(strings.TrimPrefix(message, "error during container init: "), s.pod.GetName()),
		Remedy: "see that the image is the one that the platform's settings mean",
	}
}

func limit(s subject) string {
	q, ok := s.spec.Resources.Limits[corev1.ResourceMemory]
	if !ok {
		return ""
	}

	return " of " + q.String()
}

// lastLines that a container wrote before it ended: where it says why.
func lastLines(message, pod string) string {
	message = message[max(0, len(message)-maxHeard):]

	var last []string

	for _, l := range slices.Backward(strings.Split(message, "\n")) {
		if l = Steady(l, pod); l != "" {
			last = append(last, l)
		}

		if len(last) == maxLines {
			break
		}
	}

	slices.Reverse(last)

	return Bounded(strings.Join(last, " / "), maxDetail)
}
