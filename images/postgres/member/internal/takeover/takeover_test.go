// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"testing"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/pods"
)

func TestUnready(t *testing.T) {
	leader, standby := pods.Pod{Name: "a-0", Started: true, Yields: true, Role: members.RoleLeader}, pods.Pod{Name: "b-0", Started: true, Yields: true, Role: members.RoleReplica}
	with := func(p pods.Pod, change func(*pods.Pod)) pods.Pod {
		change(&p)
		return p
	}
	for name, tc := range map[string]struct {
		reason string
		list   []pods.Pod
		want   string
	}{
		"Well":       {"The leader stops when it is asked to.", []pods.Pod{leader, standby}, ""},
		"Earlier":    {"It would be promoted.", []pods.Pod{leader, with(standby, func(p *pods.Pod) { p.Yields = false })}, "b-0 runs an earlier image"},
		"Leaves":     {"One that stops decides nothing any more.", []pods.Pod{leader, with(standby, func(p *pods.Pod) { p.Yields, p.Stopping = false, true })}, ""},
		"NotStarted": {"Nobody would stop, and say so.", []pods.Pod{{Name: "a-0"}, {Name: "b-0"}}, "the generation before has no leader"},
		"Leaderless": {"Its data may be damaged.", []pods.Pod{standby}, "the generation before has no leader"},
		"Lost":       {"A label that was left behind leads nothing.", []pods.Pod{with(leader, func(p *pods.Pod) { p.Started = false }), standby}, "the generation before has no leader"},
		"None":       {"There is nobody.", nil, "the generation before has no leader"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unready(tc.list); got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
