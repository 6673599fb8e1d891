// SPDX-License-Identifier: Apache-2.0

package donor

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

func TestFit(t *testing.T) {
	peer := func(id, state, role string, queue int64) decision.Peer {
		return decision.Peer{Server: id, State: state, Role: role, Queue: queue}
	}
	online := peer("2", decision.Online, decision.Primary, 0)
	for name, tc := range map[string]struct {
		reason string
		group  []decision.Peer
		want   string
	}{
		"Standby": {"One that executes what it receives is copied.", []decision.Peer{peer("1", decision.Online, decision.Secondary, 10), online}, ""},
		"Behind":  {"A backup has what was executed.", []decision.Peer{peer("1", decision.Online, decision.Secondary, behind+1), online}, "it has 10001 transactions to execute"},
		"Joining": {"One that still receives is not complete.", []decision.Peer{peer("1", decision.Recovering, decision.Secondary, 0), online}, "it is RECOVERING in its group"},
		"Outside": {"One in no group may be long behind.", nil, "it is OFFLINE in its group"},
		"CutOff": {
			"One without a majority may be long behind.",
			[]decision.Peer{peer("1", decision.Online, decision.Secondary, 0), peer("2", decision.Unreachable, decision.Primary, 0)},
			"its group has no majority",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := fit(decision.Look{Server: "1", Group: tc.group}); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBetter(t *testing.T) {
	all := []Donor{{Host: "a", IsLeader: true}, {Host: "b", queue: 100}, {Host: "c", queue: 3}, {Host: "d", queue: 3}}
	slices.SortFunc(all, better)
	var got []string
	for _, d := range all {
		got = append(got, d.Host)
	}
	if diff := cmp.Diff([]string{"c", "d", "b", "a"}, got); diff != "" {
		t.Errorf("standbys with little to execute are first, and the leader is last: -want +got:\n%s", diff)
	}
}

func TestOfLeader(t *testing.T) {
	set, err := gtid.Parse("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9")
	if err != nil {
		t.Fatal(err)
	}
	if got := OfLeader([]Donor{{Host: "b"}, {Host: "a", IsLeader: true, Executed: set}}); got.String() != set.String() {
		t.Errorf("the leader had %s, got %s", set, got)
	}
	if got := OfLeader([]Donor{{Host: "b", Executed: set}}); !got.Empty() {
		t.Errorf("without the leader nobody says what it had, got %s", got)
	}
}
