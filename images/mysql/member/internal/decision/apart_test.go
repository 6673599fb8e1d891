// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
)

// TestApart looks at a group of a, b, c and d every ten seconds, as a replica that a leads.
func TestApart(t *testing.T) {
	type at struct {
		silent string // members, with spaces between
		leader Member
		late   time.Duration
	}
	const late, inTime = 61 * time.Second, 10 * time.Second
	of := func(names, hears string) Member {
		return Member{Group: strings.Fields(names), Hears: strings.Fields(hears)}
	}
	four := of("a b c d", "a b c d")
	apart, fine := at{"c", four, late}, at{"", four, 0}
	many := func(n int, a at) []at { return slices.Repeat([]at{a}, n) }
	cases := map[string]struct {
		reason string
		name   string
		looks  []at
		report string
		leaves bool
	}{
		"Short":   {"What ends soon is not worth a report.", "b", many(6, apart), "", false},
		"Long":    {"After a minute both report it.", "b", many(7, apart), members.ReasonMembersApart, false},
		"Lost":    {"A member that its leader does not hear from either is removed by the group.", "b", many(30, at{"c", of("a b c d", "a b d"), late}), "", false},
		"Unknown": {"A leader that does not answer says nothing of the others.", "b", many(30, at{"c", Member{}, late}), "", false},
		"Earlier": {"Nor does a leader with an earlier version of this program.", "b", many(30, at{"c", Member{Group: four.Group}, late}), "", false},
		"Slow":    {"One answer that is missing does not begin the time again.", "b", append(many(6, apart), at{"c", Member{}, late}), members.ReasonMembersApart, false},
		"Back":    {"When it is heard again the time begins again.", "b", slices.Concat(many(20, apart), many(1, fine), many(6, apart)), "", false},
		"Another": {"Another member that is silent for a moment has its own time.", "b", append(many(6, apart), at{"d", four, late}), "", false},
		"Both":    {"With more silent members the time goes on.", "b", append(many(6, apart), at{"c d", four, late}), members.ReasonMembersApart, false},
		"First":   {"Of the first by name the other one has to have left, which it has not for a minute.", "b", append(many(14, at{"c", four, inTime}), many(6, apart)...), members.ReasonMembersApart, false},
		"FirstLong": {
			"It leaves when the other one has not.", "b", append(many(14, at{"c", four, inTime}), many(7, apart)...), members.ReasonMembersApart, true,
		},
		"Last":     {"The later one by name leaves first.", "d", many(13, apart), members.ReasonMembersApart, true},
		"LastSoon": {"It stays for two minutes.", "d", many(12, apart), members.ReasonMembersApart, false},
		"InTime":   {"One that receives what it has to is of use.", "d", many(60, at{"c", four, inTime}), members.ReasonMembersApart, false},
		"InTimeAgain": {
			"One that received it again has a new minute.", "b", slices.Concat(many(20, apart), many(1, at{"c", four, inTime}), many(6, apart)), members.ReasonMembersApart, false,
		},
		"Three": {
			"Two that are left would survive no loss, and with it they survive the loss of the other one.", "d", many(60, at{"c", of("a c d", "a c d"), late}),
			members.ReasonMembersApart, false,
		},
		"Missing": {
			"So would three of whom one is missing.", "d", many(60, at{"c", of("a b c d", "a c d"), late}), members.ReasonMembersApart, false,
		},
		"Five":          {"Four survive the loss of one.", "d", many(60, at{"c", of("a b c d e", "a b c d e"), late}), members.ReasonMembersApart, true},
		"LeaderUnknown": {"A leader that does not answer does not prove anything.", "d", append(many(60, apart), at{"c", Member{}, late}), members.ReasonMembersApart, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now, a := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Apart{}
			var last at
			for _, last = range tc.looks {
				now = now.Add(10 * time.Second)
				a = a.Next(now, strings.Fields(last.silent), last.leader, last.late)
			}
			if diff := cmp.Diff(tc.report, a.Report(now, tc.name).Reason); diff != "" {
				t.Errorf("%s: report: -want, +got\n%s", tc.reason, diff)
			}
			if got := a.Leaves(now, tc.name, last.leader); got != tc.leaves {
				t.Errorf("%s: leaves: %t", tc.reason, got)
			}
		})
	}
}

func TestStayOut(t *testing.T) {
	var got []time.Duration
	for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 100} {
		got = append(got, StayOut(n))
	}
	const m = time.Minute
	if diff := cmp.Diff([]time.Duration{0, 0, 2 * m, 4 * m, 8 * m, 16 * m, 30 * m, 30 * m}, got); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
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
		has     string
		others  map[string]Member
		leftFor []string
		want    What
		why     string
	}{
		"Apart":   {"It would receive too little again.", "1-5", map[string]Member{"a": proven}, []string{"c"}, Wait, members.ReasonMembersApart},
		"Gone":    {"The group removed c meanwhile.", "1-5", map[string]Member{"a": without}, []string{"c"}, Join, ""},
		"Reached": {"It reaches c, or left for no other.", "1-5", map[string]Member{"a": proven}, nil, Join, ""},
		"Extra":   {"What it has and the group has not is more important.", "1-12", map[string]Member{"a": proven}, []string{"c"}, Wait, "ExtraTransactions"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := Enter(Known{Name: "b", Own: member("b", Offline, tc.has), Others: tc.others, View: seats("a", "b", "c"), LeftFor: tc.leftFor})
			if e.What != tc.want || e.Reason != tc.why {
				t.Errorf("%s: %v %s %s", tc.reason, e.What, e.Reason, e.Message)
			}
		})
	}
}
