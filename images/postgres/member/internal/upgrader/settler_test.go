// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"testing"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/upgrade"
)

func TestPartOf(t *testing.T) {
	settling := &upgrade.State{ID: "u2", Stage: upgrade.Settling}
	wanted := &pgmember.Upgrade{ID: "u2", Member: "orders-g2-a"}
	pod := func(letter, id, phase string) pods.Pod {
		p := pods.Pod{Name: letter + "-0", Member: "orders-g2-" + letter}
		if id != "" {
			p.Upgrade = &members.UpgradeReport{ID: id, Phase: phase}
		}
		return p
	}
	for name, tc := range map[string]struct {
		reason string
		pod    string
		leads  bool
		state  *upgrade.State
		wanted *pgmember.Upgrade
		list   []pods.Pod
		want   part
	}{
		"Usual": {
			reason: "The member that did the upgrade leads, and settles.",
			pod:    "a-0", leads: true, state: settling, wanted: wanted, list: []pods.Pod{pod("a", "u2", members.UpgradeConverting)}, want: work,
		},
		"NotYet": {
			reason: "It settles once it leads.",
			pod:    "a-0", state: settling, wanted: wanted, list: []pods.Pod{pod("a", "u2", members.UpgradeConverting)}, want: idle,
		},
		"Another": {
			reason: "Another one leads before it is done, and settles.",
			pod:    "b-0", leads: true, wanted: wanted, list: []pods.Pod{pod("a", "u2", members.UpgradeSettling), pod("b", "", "")}, want: work,
		},
		"AnotherFollows": {
			reason: "One that follows cannot.",
			pod:    "b-0", wanted: wanted, list: []pods.Pod{pod("a", "u2", members.UpgradeSettling), pod("b", "", "")}, want: idle,
		},
		"AnotherOnce": {
			reason: "It does it once.",
			pod:    "b-0", leads: true, wanted: wanted, list: []pods.Pod{pod("a", "u2", members.UpgradeSettling), pod("b", "u2", members.UpgradeDone)}, want: idle,
		},
		"Tidy": {
			reason: "The copy goes when another one has settled.",
			pod:    "a-0", state: settling, wanted: wanted, list: []pods.Pod{pod("a", "u2", members.UpgradeSettling), pod("b", "u2", members.UpgradeDone)}, want: tidy,
		},
		"Earlier": {
			reason: "Another upgrade that was settled says nothing of this one.",
			pod:    "a-0", state: settling, wanted: wanted, list: []pods.Pod{pod("a", "u2", members.UpgradeSettling), pod("b", "u1", members.UpgradeDone)}, want: idle,
		},
		"None": {
			reason: "A generation that does not come from an upgrade has nothing to settle.",
			pod:    "a-0", leads: true, list: []pods.Pod{pod("a", "", "")}, want: idle,
		},
		"Done": {
			reason: "Nothing is left when it was done.",
			pod:    "a-0", leads: true, wanted: wanted, list: []pods.Pod{pod("a", "u2", members.UpgradeDone)}, want: idle,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := partOf(tc.pod, tc.leads, tc.state, tc.wanted, tc.list); got != tc.want {
				t.Errorf("%s\npartOf(...) = %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
