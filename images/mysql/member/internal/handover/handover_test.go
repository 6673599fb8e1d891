// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"testing"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
)

func TestCandidate(t *testing.T) {
	peer := func(letter, state, version string, queue int64) decision.Peer {
		return decision.Peer{Server: "data of " + letter, Host: "orders-" + letter + "-0.orders-pods.shop.svc", State: state, Version: version, Queue: queue}
	}
	own := peer("a", decision.Online, "9.7.4", 0)
	cases := map[string]struct {
		reason   string
		others   []decision.Peer
		stopping []string
		want     string
	}{
		"Nobody":     {"The only member has nobody to hand over to.", nil, nil, ""},
		"Shortest":   {"The one with the shortest queue leads soonest.", []decision.Peer{peer("b", decision.Online, "9.7.4", 40), peer("c", decision.Online, "9.7.4", 3)}, nil, "orders-c"},
		"First":      {"Among equals the first by name.", []decision.Peer{peer("c", decision.Online, "9.7.4", 0), peer("b", decision.Online, "9.7.4", 0)}, nil, "orders-b"},
		"Recovering": {"One that receives what it lacks cannot.", []decision.Peer{peer("b", decision.Recovering, "9.7.4", 0)}, nil, ""},
		"Newer":      {"The group refuses one of a newer version, because this one could not follow it.", []decision.Peer{peer("b", decision.Online, "9.7.5", 0)}, nil, ""},
		"Behind":     {"One with a long queue would let all clients wait.", []decision.Peer{peer("b", decision.Online, "9.7.4", 100_000)}, nil, ""},
		"Stopping":   {"One that stops as well would lead for a moment.", []decision.Peer{peer("b", decision.Online, "9.7.4", 0), peer("c", decision.Online, "9.7.4", 9)}, []string{"orders-a-0", "orders-b-0"}, "orders-c"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := decision.Look{Server: own.Server, Group: append([]decision.Peer{own}, tc.others...)}
			if _, got := Candidate(l, tc.stopping); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
