// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"

	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

// Exit codes that a shell or the kernel give a meaning.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitAborted       = 128 + 6
	exitSegfault      = 128 + 11
)

const (
	remedyCommand = "correct spec.command and spec.args, or the entrypoint of the image"
	remedyLogs    = "see the logs of its pods, and correct the image, spec.args or spec.env"
)

// crashes of the containers of replicas.
var crashes = podhealth.Ends{
	Unstartable: remedyCommand,
	OutOfMemory: "raise spec.resources.memory",
	Killed:      "see the events of its pods for a failing probe, and that it listens on spec.port soon after its start",
	Exit:        exit,
}

// crash finds a container that starts and ends again.
func crash(s subject) *podhealth.Hindrance { return s.Crash(crashes) }

// exit is what an exit code means.
func exit(code int32) (what, remedy string) {
	switch code {
	case 0:
		return "the container ends by itself, with exit code 0, where it should keep serving", remedyCommand
	case exitNotExecutable:
		return "the container ends with exit code 126: its command cannot be executed", remedyCommand
	case exitNotFound:
		return "the container ends with exit code 127: its command, or one that it calls, is not found", remedyCommand
	case exitAborted:
		return "the container crashes with exit code 134 (it aborts itself)", remedyLogs
	case exitSegfault:
		return "the container crashes with exit code 139 (segmentation fault)",
			"see the logs of its pods, and that image and node have the same platform and drivers"
	default:
		return fmt.Sprintf("the container crashes with exit code %d", code), remedyLogs
	}
}
