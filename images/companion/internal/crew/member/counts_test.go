// SPDX-License-Identifier: Apache-2.0

package member

import (
	"testing"

	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
)

func TestCounts(t *testing.T) {
	cause, effect := &protocol.Fault{}, &protocol.Fault{Secondary: true}
	for name, tc := range map[string]struct {
		reason    string
		before, f *protocol.Fault
		halted    protocol.How
		own       bool
		want      bool
	}{
		"First":        {"The first fault ends the attempt.", nil, effect, "", true, true},
		"FirstSignal":  {"Another program may kill a rank.", nil, cause, "", false, true},
		"Explains":     {"A rank that lost another one is seen before that one.", effect, cause, "", true, true},
		"SecondCause":  {"The first cause stays.", cause, cause, "", true, false},
		"SecondEffect": {"Ranks that lost another one explain nothing.", effect, effect, "", true, false},
		"SeenLate":     {"A rank that ended by itself was not killed.", effect, cause, protocol.Kill, true, true},
		"OtherPod":     {"What this pod saw late may be the cause for another pod.", nil, cause, protocol.Kill, true, true},
		"OtherPodsToo": {"All ranks lose the one that ended.", nil, effect, protocol.Kill, true, false},
		"Killed":       {"A rank that is killed ends by a signal.", effect, cause, protocol.Kill, false, false},
		"Terminated":   {"A rank may end with an error when it has to stop.", nil, cause, protocol.Terminate, true, false},
		"Aborted":      {"Stacks are written, and a code follows.", effect, cause, protocol.Abort, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := counts(tc.before, tc.f, tc.halted, tc.own); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}
