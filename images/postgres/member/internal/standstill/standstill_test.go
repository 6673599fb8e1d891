// SPDX-License-Identifier: Apache-2.0

package standstill

import (
	"testing"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/pods"
)

func TestNext(t *testing.T) {
	own, leader := pods.Pod{Name: "b-0", Member: "b", Started: true, Streams: true}, pods.Pod{Name: "a-0", Member: "a", Started: true}
	third := func(change func(*pods.Pod)) []pods.Pod {
		p := pods.Pod{Name: "c-0", Member: "c", Started: true, Streams: true}
		change(&p)
		return []pods.Pod{leader, own, p}
	}
	well := third(func(*pods.Pod) {})
	for name, tc := range map[string]struct {
		reason string
		now    situation
		want   string
	}{
		"Standby":    {"The others go on.", situation{holder: "a-0", others: well}, members.FenceStopped},
		"Leader":     {"Clients would wait.", situation{leads: true, holder: "b-0", others: well}, members.FenceRefused},
		"Holder":     {"It leads at the next moment.", situation{holder: "b-0", others: well}, members.FenceRefused},
		"NoLeader":   {"It may be needed.", situation{others: well}, members.FenceWaiting},
		"Strict":     {"Another one acknowledges.", situation{holder: "a-0", strict: true, others: well}, members.FenceStopped},
		"StrictLast": {"No commit would end.", situation{holder: "a-0", strict: true, others: []pods.Pod{leader, own}}, members.FenceWaiting},
		"StrictAway": {"One that does not follow acknowledges nothing.", situation{holder: "a-0", strict: true, others: third(func(p *pods.Pod) { p.Streams = false })}, members.FenceWaiting},
		"Last":       {"A leader goes on alone.", situation{holder: "a-0", others: []pods.Pod{leader, own}}, members.FenceStopped},
		"Other":      {"One at a time.", situation{holder: "a-0", others: third(func(p *pods.Pod) { p.Reason = members.ReasonStopped })}, members.FenceWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			tc.now.pod = "b-0"
			if got, message := tc.now.next(); got != tc.want || (message == "") != (tc.want == members.FenceStopped) {
				t.Errorf("%s\ngot %s: %s, want %s", tc.reason, got, message, tc.want)
			}
		})
	}
}
