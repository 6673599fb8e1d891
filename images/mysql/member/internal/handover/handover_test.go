// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

func TestNext(t *testing.T) {
	const group = "3f2a9c1b-0000-0000-0000-000000000001:1-"
	peer := func(letter, state, version string, queue int64) decision.Peer {
		return decision.Peer{Server: "data of " + letter, Host: "orders-" + letter + "-0.orders-pods.shop.svc", State: state, Version: version, Queue: queue}
	}
	own, b, c := peer("a", decision.Online, "9.7.4", 0), peer("b", decision.Online, "9.7.4", 0), peer("c", decision.Online, "9.7.4", 9)
	cases := map[string]struct {
		reason string
		others []decision.Peer
		// has is the last transaction of a member, by its name. One that is not here does not answer. The leader has 5,000.
		has      map[string]int
		stopping []string
		want     string
		// named are whether a person can choose the pod b, or why not.
		named string
	}{
		"Nobody":     {"The only member has nobody to hand over to.", nil, nil, nil, "", "orders-b-0 is not online"},
		"Shortest":   {"The one with the shortest queue leads soonest.", []decision.Peer{peer("b", decision.Online, "9.7.4", 40), c}, nil, nil, "orders-c", ""},
		"First":      {"Among equals the first by name.", []decision.Peer{peer("c", decision.Online, "9.7.4", 0), b}, nil, nil, "orders-b", ""},
		"Recovering": {"One that receives what it lacks cannot.", []decision.Peer{peer("b", decision.Recovering, "9.7.4", 0)}, nil, nil, "", "orders-b-0 is not online"},
		"Newer":      {"The group refuses one of a newer version, because this one could not follow it.", []decision.Peer{peer("b", decision.Online, "9.7.5", 0)}, nil, nil, "", ""},
		"Behind":     {"One with a long queue would let all clients wait. A person may choose that.", []decision.Peer{peer("b", decision.Online, "9.7.4", 100_000)}, nil, nil, "", ""},
		"Stopping":   {"One that stops as well would lead for a moment.", []decision.Peer{b, c}, nil, []string{"orders-a-0", "orders-b-0"}, "orders-c", ""},
		"ReceivesLess": {
			"One that does not hear from another member executed all that it received, and would let clients wait for what it did not receive.",
			[]decision.Peer{b, c},
			map[string]int{"orders-b": 3_000, "orders-c": 4_999},
			nil, "orders-c",
			"orders-b-0 has not received 2000 transactions that the leader has: see the condition HighlyAvailable of the Database",
		},
		"ReceivesLessAlone": {
			"It is no candidate where there is no other one.",
			[]decision.Peer{b},
			map[string]int{"orders-b": 3_000},
			nil, "",
			"orders-b-0 has not received 2000 transactions that the leader has: see the condition HighlyAvailable of the Database",
		},
		"OnItsWay": {"What the leader executed a moment ago is on its way to all.", []decision.Peer{b, c}, map[string]int{"orders-b": 4_999, "orders-c": 4_980}, nil, "orders-b", ""},
		"Silent":   {"One that says what it has is better than one whose program does not answer.", []decision.Peer{b, c}, map[string]int{"orders-c": 4_980}, nil, "orders-c", ""},
		"More":     {"Transactions that came after the look do no harm.", []decision.Peer{b}, map[string]int{"orders-b": 5_100}, nil, "orders-b", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := decision.Look{Server: own.Server, Group: append([]decision.Peer{own}, tc.others...), Executed: group + "5000"}
			others := map[string]decision.Member{}
			for name, last := range tc.has {
				set, err := gtid.Parse(group + strconv.Itoa(last))
				if err != nil {
					t.Fatal(err)
				}
				others[name] = decision.Member{Server: "data of " + strings.TrimPrefix(name, "orders-"), Has: set}
			}
			got := ""
			if fit := Candidates(l, others, tc.stopping); len(fit) > 0 {
				got = fit[0].Member
			}
			if got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
			said := ""
			if _, err := Next(l, others, "orders-b-0"); err != nil {
				said = err.Error()
			}
			if diff := cmp.Diff(tc.named, said); diff != "" {
				t.Errorf("%s: a person chooses b: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}
