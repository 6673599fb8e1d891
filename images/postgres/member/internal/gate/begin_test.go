// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/pods"
)

func TestGone(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		list   []pods.Pod
		waited time.Duration
		want   bool
	}{
		"Runs":          {"It makes the data, however long that takes.", []pods.Pod{{Member: "a", Started: true}}, time.Hour, false},
		"Starts":        {"Its container may start a moment later.", []pods.Pod{{Member: "a"}}, time.Second, false},
		"Pending":       {"A Database begins on the nodes that there are.", []pods.Pod{{Member: "a"}}, 2 * time.Minute, true},
		"Recreated":     {"A pod that was deleted comes back.", nil, time.Second, false},
		"Away":          {"A member that was removed makes nothing.", []pods.Pod{{Member: "b", Started: true}}, 2 * time.Minute, true},
		"RestoreFailed": {"Another node may reach the backup.", []pods.Pod{{Member: "a", Started: true, Reason: members.ReasonRestoreFailed}}, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gone(tc.list, "a", tc.waited); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}
