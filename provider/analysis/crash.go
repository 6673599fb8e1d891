// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

const (
	// maxLines is how many of the last lines that a container wrote are told.
	maxLines = 3

	// outOfMemory is how the kubelet calls it.
	outOfMemory = "OOMKilled"

	// Exit codes that a shell or the kernel give a meaning.
	exitNotExecutable = 126
	exitNotFound      = 127
	exitAborted       = 128 + 6
	exitKilled        = 128 + 9
	exitSegfault      = 128 + 11
	exitTerminated    = 128 + 15
)

const remedyCommand = "correct spec.command and spec.args, or the entrypoint of the image"

// crash finds a container that starts and ends again.
func crash(s subject) *cause {
	if w := s.status.State.Waiting; w != nil && w.Reason == "RunContainerError" {
		return notStarted(s, w.Message)
	}

	t := ended(s.status)
	if t == nil {
		return nil
	}

	c := &cause{
		reason: v1alpha1.ReasonCrashLooping,
		detail: lastLines(t.Message, s.pod),
		remedy: "see the logs of its pods, and correct the image, spec.args or spec.env",
	}

	switch {
	case startFailed(t):
		return notStarted(s, t.Message)
	case t.Reason == outOfMemory:
		c.what = "the container is killed for using more memory than its limit" + limit(s)
		c.remedy = "raise spec.resources.memory"
	case t.ExitCode == 0:
		c.what = "the container ends by itself, with exit code 0, where it should keep serving"
		c.remedy = remedyCommand
	case t.ExitCode == exitNotExecutable:
		c.what = "the container ends with exit code 126: its command cannot be executed"
		c.remedy = remedyCommand
	case t.ExitCode == exitNotFound:
		c.what = "the container ends with exit code 127: its command, or one that it calls, is not found"
		c.remedy = remedyCommand
	case t.ExitCode == exitAborted:
		c.what = "the container crashes with exit code 134 (it aborts itself)"
	case t.ExitCode == exitKilled, t.ExitCode == exitTerminated:
		c.what = fmt.Sprintf("the container is killed from outside, with exit code %d", t.ExitCode)
		c.remedy = "see the events of its pods for a failing probe, and that it listens on spec.port soon after its start"
	case t.ExitCode == exitSegfault:
		c.what = "the container crashes with exit code 139 (segmentation fault)"
		c.remedy = "see the logs of its pods, and that image and node have the same platform and drivers"
	default:
		c.what = fmt.Sprintf("the container crashes with exit code %d", t.ExitCode)
	}

	return c
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

// notStarted is a container whose command the runtime cannot start. How it says
// so depends on the moment; the end of its chain of errors does not.
func notStarted(s subject, message string) *cause {
	if _, after, ok := strings.Cut(message, "unable to start container process: "); ok {
		message = after
	}

	return &cause{
		reason: v1alpha1.ReasonCrashLooping,
		what:   "the command of the container cannot be started",
		detail: steady(strings.TrimPrefix(message, "error during container init: "), s.pod),
		remedy: remedyCommand,
	}
}

func limit(s subject) string {
	q, ok := s.spec.Resources.Limits[corev1.ResourceMemory]
	if !ok {
		return ""
	}

	return " of " + q.String()
}

// lastLines that a container wrote before it ended: where it says why. A panic
// of Go is followed by its stack, so there the first line counts.
func lastLines(message string, p *corev1.Pod) string {
	message = message[max(0, len(message)-maxHeard):]

	var lines []string

	for l := range strings.Lines(message) {
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") {
			return steady(l, p)
		}

		lines = append(lines, l)
	}

	var last []string

	for _, l := range slices.Backward(lines) {
		if l = steady(l, p); l != "" {
			last = append(last, l)
		}

		if len(last) == maxLines {
			break
		}
	}

	slices.Reverse(last)

	return bounded(strings.Join(last, " / "), maxDetail)
}
