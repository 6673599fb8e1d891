// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
)

// TestApart looks at a group of a, b and c every ten seconds, as b, which a leads.
func TestApart(t *testing.T) {
	all := []string{"a", "b", "c"}
	heard, unheard, nothing := Member{Group: all, Hears: all}, Member{Group: all, Hears: []string{"a", "b"}}, Member{}
	type at struct {
		silent string
		leader Member
	}
	many := func(n int, a at) []at {
		out := make([]at, n)
		for i := range out {
			out[i] = a
		}
		return out
	}
	const late, inTime = 61 * time.Second, 10 * time.Second
	cases := map[string]struct {
		reason string
		name   string
		looks  []at
		late   time.Duration
		report string
		leaves bool
	}{
		"Short":     {"What ends soon is not worth a report.", "b", many(6, at{"c", heard}), late, "", false},
		"Long":      {"After a minute both report it.", "b", many(7, at{"c", heard}), late, members.ReasonMembersApart, false},
		"Lost":      {"A member that its leader does not hear from either is removed by the group.", "b", many(30, at{"c", unheard}), late, "", false},
		"Unknown":   {"A leader that does not answer says nothing of the others.", "b", many(30, at{"c", nothing}), late, "", false},
		"Slow":      {"One answer that is missing does not begin the time again.", "b", append(many(6, at{"c", heard}), at{"c", nothing}), late, members.ReasonMembersApart, false},
		"Back":      {"When it is heard again the time begins again.", "b", append(append(many(20, at{"c", heard}), at{"", heard}), many(6, at{"c", heard})...), late, "", false},
		"First":     {"The first by name stays for longer, so that not both leave.", "b", many(18, at{"c", heard}), late, members.ReasonMembersApart, false},
		"FirstLong": {"It leaves when the other one has not.", "b", many(19, at{"c", heard}), late, members.ReasonMembersApart, true},
		"Last":      {"The later one by name leaves first.", "d", many(13, at{"c", heard}), late, members.ReasonMembersApart, true},
		"InTime":    {"One that receives what it has to is of use.", "d", many(60, at{"c", heard}), inTime, members.ReasonMembersApart, false},
		"NoMajority": {
			"Without it the others would be no majority.", "d", many(60, at{"c", Member{Group: []string{"a", "b", "c", "d", "e"}, Hears: []string{"a", "c", "d"}}}), late,
			members.ReasonMembersApart, false,
		},
		"LeaderUnknown": {"A leader that does not answer does not prove that it has a majority.", "d", append(many(60, at{"c", heard}), at{"c", nothing}), late, members.ReasonMembersApart, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now, a := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Apart{}
			var last at
			for _, last = range tc.looks {
				now = now.Add(10 * time.Second)
				var silent []string
				if last.silent != "" {
					silent = []string{last.silent}
				}
				a = a.Next(now, silent, last.leader)
			}
			if diff := cmp.Diff(tc.report, a.Report(now, tc.name).Reason); diff != "" {
				t.Errorf("%s: report: -want, +got\n%s", tc.reason, diff)
			}
			if got := a.Leaves(now, tc.name, tc.late, last.leader); got != tc.leaves {
				t.Errorf("%s: leaves: %t", tc.reason, got)
			}
		})
	}
}

// TestReturn of a member that left its group because it did not hear from c.
func TestReturn(t *testing.T) {
	proven := member("a", Grouped, "1-9")
	proven.Proven, proven.Group = true, []string{"a", "c"}
	without := proven
	without.Group = []string{"a"}
	cases := map[string]struct {
		reason  string
		others  map[string]Member
		leftFor []string
		want    What
	}{
		"Apart": {"It would receive too little again.", map[string]Member{"a": proven}, []string{"c"}, Wait},
		"Heard": {"It hears from c again.", map[string]Member{"a": proven, "c": member("c", Grouped, "1-9")}, []string{"c"}, Join},
		"Gone":  {"The group removed c meanwhile.", map[string]Member{"a": without}, []string{"c"}, Join},
		"Other": {"A member that left for no other joins, even if one does not answer.", map[string]Member{"a": proven}, nil, Join},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := Enter(Known{Name: "b", Own: member("b", Offline, "1-5"), Others: tc.others, View: seats("a", "b", "c"), LeftFor: tc.leftFor})
			reason := ""
			if tc.want == Wait {
				reason = members.ReasonMembersApart
			}
			if e.What != tc.want || e.Reason != reason {
				t.Errorf("%s: %v %s %s", tc.reason, e.What, e.Reason, e.Message)
			}
		})
	}
}
