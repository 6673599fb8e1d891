// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"testing"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/dcs"
)

func TestNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		s      dcs.Synchronous
		want   int
	}{
		"None":    {"Without synchronous replication no standby acknowledges anything.", dcs.Synchronous{}, 0},
		"Own":     {"It was the leader itself.", dcs.Synchronous{Leader: "b", Voters: []string{"a", "c"}, Quorum: 1}, 0},
		"Only":    {"No other standby can acknowledge.", dcs.Synchronous{Leader: "a", Voters: []string{"b"}}, 0},
		"OneOf2":  {"The other one can.", dcs.Synchronous{Leader: "a", Voters: []string{"b", "c"}, Quorum: 1}, 1},
		"OneOf4":  {"Each of three others can.", dcs.Synchronous{Leader: "a", Voters: []string{"b", "c", "d", "e"}, Quorum: 3}, 3},
		"TwoOf4":  {"A commit needs two of them, so one may be missing.", dcs.Synchronous{Leader: "a", Voters: []string{"b", "c", "d", "e"}, Quorum: 2}, 2},
		"Outside": {"Those who vote are all others.", dcs.Synchronous{Leader: "a", Voters: []string{"c", "d"}, Quorum: 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Needs(tc.s, "b"); got != tc.want {
				t.Errorf("%s\ngot %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
