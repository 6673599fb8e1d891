// SPDX-License-Identifier: Apache-2.0

package podhealth

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// maxLines is how many of the last lines that a container wrote are reported.
const maxLines = 3

// OutOfMemory is how the kubelet calls it.
const OutOfMemory = "OOMKilled"

// Exit codes of a container that a signal ended.
const (
	ExitKilled     = 128 + 9
	ExitTerminated = 128 + 15
)

// Ends say what helps when a container does not keep running.
type Ends struct {
	// Unstartable is for one whose command the runtime cannot start.
	Unstartable string
	// OutOfMemory is for one that takes more than its limit.
	OutOfMemory string
	// Killed is for one that a signal ends.
	Killed string

	// Exit is what any other exit code means, and the remedy.
	Exit func(code int32) (what, remedy string)
}

// Crash finds that the container starts and ends again.
func (s Subject) Crash(ends Ends) *Hindrance {
	if w := s.Status.State.Waiting; w != nil && w.Reason == "RunContainerError" {
		return s.notStarted(w.Message, ends.Unstartable)
	}
	t := s.Ended()
	if t == nil {
		return nil
	}
	h := &Hindrance{Reason: v1alpha1.ReasonCrashLooping, Detail: LastLines(t.Message, s.Pod)}
	switch {
	case startFailed(t):
		return s.notStarted(t.Message, ends.Unstartable)
	case t.Reason == OutOfMemory:
		h.What = s.OverLimit("the container")
		h.Remedy = ends.OutOfMemory
	case t.ExitCode == ExitKilled, t.ExitCode == ExitTerminated:
		h.What = fmt.Sprintf("the container is killed from outside, with exit code %d", t.ExitCode)
		h.Remedy = ends.Killed
	default:
		h.What, h.Remedy = ends.Exit(t.ExitCode)
	}
	return h
}

// OverLimit says that a container is killed for using too much memory.
func (s Subject) OverLimit(container string) string {
	said := container + " is killed for using more memory than its limit"
	if q, ok := s.Spec.Resources.Limits[corev1.ResourceMemory]; ok {
		said += " of " + q.String()
	}
	return said
}

// Recently is how long ago a container may have ended to count as one that does so again and again. It is the time after which
// the kubelet, too, restarts a container without a delay again.
const Recently = 10 * time.Minute

// Ended is how the container ended, if it does so again and again. Between two ends it runs for a while, which does not make it
// well. Ends of long ago do not count.
func (s Subject) Ended() *corev1.ContainerStateTerminated {
	st := s.Status
	last := st.LastTerminationState.Terminated
	switch now := st.State; {
	case now.Terminated != nil && (st.RestartCount > 0 && brief(now.Terminated) || startFailed(now.Terminated)):
		return now.Terminated
	case now.Waiting != nil && now.Waiting.Reason == "CrashLoopBackOff":
		return last
	case now.Terminated == nil && st.RestartCount > 1 && last != nil && brief(last) && (s.CalmAt().IsZero() || s.Now.Before(s.CalmAt())):
		return last
	}
	return nil
}

// brief reports whether a container ran so briefly that its end and the one before belong together. Where the runtime does not say
// when it started, they do.
func brief(t *corev1.ContainerStateTerminated) bool {
	return t.StartedAt.IsZero() || t.FinishedAt.Sub(t.StartedAt.Time) < Recently
}

// CalmAt is when the last end of the container is long ago, or zero if it never ended, or ended at an unknown time.
func (s Subject) CalmAt() time.Time {
	t := s.Status.LastTerminationState.Terminated
	if t == nil || t.FinishedAt.IsZero() {
		return time.Time{}
	}
	return t.FinishedAt.Add(Recently)
}

// startFailed reports whether the runtime could not even start the command.
func startFailed(t *corev1.ContainerStateTerminated) bool {
	return t.Reason == "StartError" || t.Reason == "ContainerCannotRun"
}

// notStarted is a container whose command the runtime cannot start. How it says so depends on the moment; the end of its chain of
// errors does not.
func (s Subject) notStarted(message, remedy string) *Hindrance {
	if _, after, ok := strings.Cut(message, "unable to start container process: "); ok {
		message = after
	}
	return &Hindrance{
		Reason: v1alpha1.ReasonCrashLooping,
		What:   "the command of the container cannot be started",
		Detail: words.Steady(strings.TrimPrefix(message, "error during container init: "), s.Pod.GetName()),
		Remedy: remedy,
	}
}

// LastLines that a container of p wrote before it ended: where it says why. A panic of Go is followed by its stack, so there the
// first line counts.
func LastLines(message string, p *corev1.Pod) string {
	message = message[max(0, len(message)-words.MaxHeard):]
	var lines []string
	for l := range strings.Lines(message) {
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") {
			return words.Steady(l, p.GetName())
		}
		lines = append(lines, l)
	}
	var last []string
	for _, l := range slices.Backward(lines) {
		if l = words.Steady(l, p.GetName()); l != "" {
			last = append(last, l)
		}
		if len(last) == maxLines {
			break
		}
	}
	slices.Reverse(last)
	return words.Bounded(strings.Join(last, " / "), words.MaxDetail)
}
