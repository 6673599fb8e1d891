// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
)

func TestMayBegin(t *testing.T) {
	empty := Content{Empty: true}
	led := func(timeline int64) Content { return Content{Led: true, Timeline: timeline, System: "1"} }
	followed := func(timeline int64) Content { return Content{Timeline: timeline, System: "1"} }
	all := []string{"a", "b", "c"}
	cases := map[string]struct {
		reason string
		own    Content
		told   map[string]Content
		want   string
	}{
		"New": {
			reason: "A Database whose volumes are all empty begins.",
			own:    empty, told: map[string]Content{"a": empty, "b": empty, "c": empty},
		},
		"NewUnknown": {
			reason: "An empty member must not make a new database beside data that it has not heard of.",
			own:    empty, told: map[string]Content{"b": empty}, want: members.ReasonWaitingForMembers,
		},
		"EmptyBesideData": {
			reason: "An empty member waits for one with data, also when not all have told.",
			own:    empty, told: map[string]Content{"b": followed(1)}, want: members.ReasonWaitingForFormerLeader,
		},
		"Leader": {
			reason: "The one that led last begins.",
			own:    led(3), told: map[string]Content{"a": led(3), "b": followed(3), "c": empty},
		},
		"LeaderUnknown": {
			reason: "One that led may have led long ago: another may have later data.",
			own:    led(3), told: map[string]Content{"b": followed(3)}, want: members.ReasonWaitingForMembers,
		},
		"LeaderLongAgo": {
			reason: "One that led before the last change of the lead follows, whatever it thinks of itself.",
			own:    led(2), told: map[string]Content{"b": followed(3), "c": led(3)}, want: members.ReasonWaitingForFormerLeader,
		},
		"LeaderLongAgoLastLost": {
			reason: "It follows also when only a replica has the later data.",
			own:    led(2), told: map[string]Content{"b": followed(3), "c": empty}, want: members.ReasonWaitingForFormerLeader,
		},
		"Replica": {
			reason: "One that followed waits for the one that led.",
			own:    followed(3), told: map[string]Content{"b": led(3), "c": followed(3)}, want: members.ReasonWaitingForFormerLeader,
		},
		"ReplicasOnly": {
			reason: "Without the data of the one that led, a person decides.",
			own:    followed(3), told: map[string]Content{"b": followed(3), "c": empty}, want: members.ReasonWaitingForFormerLeader,
		},
		"ReplicaUnknown": {
			reason: "One that followed waits for those that have not told.",
			own:    followed(3), told: map[string]Content{"b": followed(3)}, want: members.ReasonWaitingForMembers,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if w := MayBegin("a", tc.own, tc.told, all); w != nil {
				got = w.Reason
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nMayBegin(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOneBegins: of any members with any data that know of each other, at most one with data begins, and it has the most recent.
func TestOneBegins(t *testing.T) {
	contents := []Content{{Empty: true}}
	for timeline := int64(1); timeline <= 3; timeline++ {
		contents = append(contents, Content{Timeline: timeline, System: "1"}, Content{Timeline: timeline, Led: true, System: "1"})
	}
	names := []string{"a", "b", "c"}
	for _, a := range contents {
		for _, b := range contents {
			for _, c := range contents {
				told := map[string]Content{"a": a, "b": b, "c": c}
				for _, self := range names {
					if MayBegin(self, told[self], told, names) != nil {
						continue
					}
					for other, content := range told {
						if newer(content, told[self]) {
							t.Errorf("%v: %s begins, and %s has more recent data", told, self, other)
						}
					}
				}
			}
		}
	}
}
