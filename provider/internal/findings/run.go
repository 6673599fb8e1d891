// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// What is wrong with a container that has started: it does not answer, or does not keep running.

const (
	// timeout is how long a container may run without answering before it is reported. Most servers answer within seconds; those
	// that load a model for minutes are reported early, which does not harm them.
	timeout = time.Minute
	// grace is more than containers are given to end by default.
	grace = 45 * time.Second
)

// notListening finds a container that runs and does not answer its probe: it has run in silence for a while, or was killed for
// its silence.
func notListening(s subject) *podhealth.Hindrance {
	at, runs := s.silentAt()
	if (!runs || s.Now.Before(at)) && !silenced(s) {
		return nil
	}
	probe, port := question(s.Spec)
	return &podhealth.Hindrance{
		Reason: v1alpha1.ReasonNotListening,
		What:   "the container runs and does not answer " + probe,
		Remedy: fmt.Sprintf("make it listen on all addresses (0.0.0.0%s), or set spec.port to the port that it listens on; "+
			"while it still loads, nothing needs to be done", port),
	}
}

// silentAt is when the container counts as silent, if it runs and nothing else happens. One that crashed before may need as long
// as it lived then, and a little more, before it has done better.
func (s subject) silentAt() (time.Time, bool) {
	r := s.Status.State.Running
	if r == nil || s.Spec.StartupProbe == nil && s.Spec.ReadinessProbe == nil {
		return time.Time{}, false
	}
	at := r.StartedAt.Add(timeout)
	if t := s.Status.LastTerminationState.Terminated; t != nil && !silenced(s) {
		at = at.Add(lived(t))
	}
	return at, true
}

// silenced reports whether the container was killed for not answering its startup probe. No status says so; that it was ended by
// a signal, about when the probe fails, does. A server that handles the signal ends with 0.
func silenced(s subject) bool {
	t, probe := s.Ended(), s.Spec.StartupProbe
	if t == nil || probe == nil || t.Reason == podhealth.OutOfMemory {
		return false
	}
	if t.ExitCode != podhealth.ExitKilled && t.ExitCode != podhealth.ExitTerminated && t.ExitCode != 0 {
		return false
	}
	period := time.Duration(probe.PeriodSeconds) * time.Second
	window := time.Duration(probe.InitialDelaySeconds)*time.Second + time.Duration(probe.FailureThreshold)*period
	lived := t.FinishedAt.Sub(t.StartedAt.Time)
	// The first probe comes at a random moment of the first period, the last one may time out, and ending takes as long as the
	// container is given.
	return lived >= window-period && lived <= window+period+grace
}

// question that the container does not answer, and ":port" if it has one.
func question(c corev1.Container) (probe, port string) {
	for _, p := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		switch {
		case p == nil:
		case p.HTTPGet != nil:
			n := number(p.HTTPGet.Port, c)
			return fmt.Sprintf("GET %s on port %s", words.Bounded(p.HTTPGet.Path, words.MaxDetail), n), ":" + n
		case p.TCPSocket != nil:
			n := number(p.TCPSocket.Port, c)
			return "on port " + n, ":" + n
		case p.GRPC != nil:
			n := strconv.Itoa(int(p.GRPC.Port))
			return "the gRPC health check on port " + n, ":" + n
		}
	}
	return "its probe", ""
}

// number of a port that may be given by name.
func number(p intstr.IntOrString, c corev1.Container) string {
	for _, known := range c.Ports {
		if p.Type == intstr.String && known.Name == p.StrVal {
			return strconv.Itoa(int(known.ContainerPort))
		}
	}
	return p.String()
}

const (
	remedyCommand = "correct spec.command and spec.args, or the entrypoint of the image"
	remedyLogs    = "see the logs of its pods, and correct the image, spec.args or spec.env"
)

// crash finds a container that starts and ends again.
func crash(s subject) *podhealth.Hindrance {
	return s.Crash(podhealth.Ends{
		Unstartable: remedyCommand,
		OutOfMemory: "raise spec.resources.memory",
		Killed:      "see the events of its pods for a failing probe, and that it listens on spec.port soon after its start",
		Exit:        exit,
	})
}

// exit is what an exit code means that a shell or the kernel gives a meaning.
func exit(code int32) (what, remedy string) {
	switch code {
	case 0:
		return "the container ends by itself, with exit code 0, where it should keep serving", remedyCommand
	case 126:
		return "the container ends with exit code 126: its command cannot be executed", remedyCommand
	case 127:
		return "the container ends with exit code 127: its command, or one that it calls, is not found", remedyCommand
	case 134:
		return "the container crashes with exit code 134 (it aborts itself)", remedyLogs
	case 139:
		return "the container crashes with exit code 139 (segmentation fault)",
			"see the logs of its pods, and that image and node have the same platform and drivers"
	default:
		return fmt.Sprintf("the container crashes with exit code %d", code), remedyLogs
	}
}
