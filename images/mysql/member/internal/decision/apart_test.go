// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// TestApart looks at a group of a, b, c and d every ten seconds, as b, which a leads.
func TestApart(t *testing.T) {
	type at struct {
		silent string // members, with spaces between
		leader Member
	}
	of := func(names, hears string) Member {
		return Member{Group: strings.Fields(names), Hears: strings.Fields(hears)}
	}
	four := of("a b c d", "a b c d")
	apart := at{"c", four}
	many := func(n int, a at) []at { return slices.Repeat([]at{a}, n) }
	cases := map[string]struct {
		reason string
		looks  []at
		report bool
	}{
		"Short":   {"What ends soon is not worth a report.", many(6, apart), false},
		"Long":    {"After a minute both report it.", many(7, apart), true},
		"Lost":    {"A member that its leader does not hear from either is removed by the group.", many(30, at{"c", of("a b c d", "a b d")}), false},
		"Unknown": {"A leader that does not answer says nothing of the others.", many(30, at{"c", Member{}}), false},
		"Earlier": {"Nor does a leader with an earlier version of this program.", many(30, at{"c", Member{Group: four.Group}}), false},
		"Slow":    {"One answer that is missing does not begin the time again.", append(many(6, apart), at{"c", Member{}}), true},
		"Back":    {"When it is heard again the time begins again.", slices.Concat(many(20, apart), many(1, at{"", four}), many(6, apart)), false},
		"Another": {"Another member that is silent for a moment has its own time.", append(many(6, apart), at{"d", four}), false},
		"Both":    {"With more silent members the time goes on.", append(many(6, apart), at{"c d", four}), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now, a := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Apart{}
			for _, look := range tc.looks {
				now = now.Add(10 * time.Second)
				a = a.Next(now, strings.Fields(look.silent), look.leader)
			}
			want := ""
			if tc.report {
				want = members.ReasonMembersApart
			}
			if diff := cmp.Diff(want, a.Report(now, "b").Reason); diff != "" {
				t.Errorf("%s: report: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnreached: a member that could not stay in its group, because it does not reach c, waits until it does.
func TestUnreached(t *testing.T) {
	proven := member("a", Grouped, "1-9")
	proven.Proven, proven.Group = true, []string{"c", "a"}
	others := map[string]Member{"a": proven, "d": {State: Grouped, Group: []string{"e"}}}
	if diff := cmp.Diff([]string{"a", "c"}, Proven(others)); diff != "" {
		t.Errorf("members of a proven group: -want, +got\n%s", diff)
	}
	delete(others, "d")
	cases := map[string]struct {
		reason    string
		has       string
		unreached []string
		want      What
		why       string
	}{
		"Apart":   {"The group would remove it again.", "1-5", []string{"c"}, Wait, members.ReasonMembersApart},
		"Reached": {"It reaches all of them.", "1-5", nil, Join, ""},
		"Extra":   {"What it has and the group has not is more important.", "1-12", []string{"c"}, Wait, mysqlmember.ReasonExtraTransactions},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := Enter(Known{Name: "b", Own: member("b", Offline, tc.has), Others: others, View: seats("a", "b", "c"), Unreached: tc.unreached})
			if e.What != tc.want || e.Reason != tc.why {
				t.Errorf("%s: %v %s %s", tc.reason, e.What, e.Reason, e.Message)
			}
		})
	}
}
