// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

func TestCopyAgain(t *testing.T) {
	grouped := func(proven bool, names ...string) Member { return Member{State: Grouped, Proven: proven, Group: names} }
	both := map[string]Member{"a": grouped(true, "a", "b", "c"), "c": grouped(true, "a", "b", "c")}
	without := map[string]Member{"a": grouped(true, "a", "c"), "c": grouped(true, "a", "c")}
	of := func(m Member, numbers string) Member {
		m.Has = member("", "", numbers).Has
		return m
	}
	has := func(numbers string) gtid.Set { return member("", "", numbers).Has }
	outside := Peer{State: Outside}
	ahead := map[string]Member{"a": of(grouped(true, "a", "c"), "1-7"), "c": of(grouped(true, "a", "c"), "1-9")}
	one := map[string]Member{"a": of(grouped(true, "a"), "1-9"), "c": {State: Offline, Has: has("1-12")}}
	secondary, primary := Peer{State: Online, Role: Secondary}, Peer{State: Online, Role: Primary}
	begun := members.ReinitializeReport{ID: "1", Outcome: members.ReinitializeCopying, Message: "it is copied from the group"}
	for name, tc := range map[string]struct {
		reason string
		again  Again
		want   string
		step   Step
	}{
		"Healthy":        {"A person may doubt data that looks well.", Again{Own: secondary, Others: both, Count: 2, Seated: true}, members.ReinitializeWaiting, Leave},
		"Recovering":     {"It may never end.", Again{Own: Peer{State: Recovering}, Others: both, Count: 2, Seated: true}, members.ReinitializeWaiting, Leave},
		"Leader":         {"Its data is the data.", Again{Own: primary, Others: both, Count: 2, Seated: true}, members.ReinitializeRefused, Stay},
		"Elected":        {"So it is when it was elected before its data was removed.", Again{Own: primary, Others: both, Count: 2, Last: begun, Former: true}, members.ReinitializeRefused, Stay},
		"Alone":          {"Its data is all there is.", Again{}, members.ReinitializeWaiting, Stay},
		"Copying":        {"One copy less at a time.", Again{Own: secondary, Others: both, Count: 2, Copying: "orders-db-c"}, members.ReinitializeWaiting, Stay},
		"OneOfTwo":       {"The one that is left could be lost meanwhile.", Again{Own: secondary, Others: map[string]Member{"a": grouped(true, "a", "b")}, Count: 2}, members.ReinitializeWaiting, Stay},
		"Unproven":       {"Members without a majority may lack what was acknowledged.", Again{Own: Peer{State: Outside}, Others: map[string]Member{"a": grouped(false, "a"), "c": grouped(true, "c")}, Count: 2}, members.ReinitializeWaiting, Stay},
		"Two":            {"A leader commits without the other.", Again{Own: secondary, Others: map[string]Member{"a": grouped(true, "a", "b")}, Count: 1}, members.ReinitializeWaiting, Leave},
		"Counted":        {"The group would wait for it.", Again{Own: Peer{State: Outside}, Others: both, Count: 2}, members.ReinitializeWaiting, Leave},
		"Seated":         {"After an outage members would wait for what was removed.", Again{Own: Peer{State: Outside}, Others: without, Count: 2, Seated: true}, members.ReinitializeWaiting, Leave},
		"Left":           {"Nothing counts on its data.", Again{Own: Peer{State: Outside}, Others: without, Count: 2}, members.ReinitializeCopying, Discard},
		"Broken":         {"A server that does not even start is the usual one.", Again{Others: without, Count: 2}, members.ReinitializeCopying, Discard},
		"Again":          {"A program that ended before it removed the data does so.", Again{Others: without, Count: 2, Last: begun, Former: true}, members.ReinitializeCopying, Discard},
		"Lost":           {"Unless the others were lost meanwhile.", Again{Others: map[string]Member{"a": grouped(false, "a", "c")}, Count: 2, Last: begun, Former: true}, members.ReinitializeWaiting, Stay},
		"Joining":        {"New data that is in no group yet is not done.", Again{Own: Peer{State: Recovering}, Others: both, Count: 2, Last: begun}, members.ReinitializeCopying, Stay},
		"Done":           {"A new copy is in the group.", Again{Own: secondary, Others: both, Count: 2, Seated: true, Last: begun}, members.ReinitializeDone, Stay},
		"Promoted":       {"A new copy may be needed at once.", Again{Own: primary, Last: begun}, members.ReinitializeDone, Stay},
		"Next":           {"Another id is another request.", Again{Own: secondary, Others: both, Count: 2, Last: members.ReinitializeReport{ID: "0", Outcome: members.ReinitializeDone}}, members.ReinitializeWaiting, Leave},
		"Behind":         {"The others have all of it.", Again{Own: outside, Others: ahead, Count: 2, Has: has("1-9")}, members.ReinitializeCopying, Discard},
		"Extra":          {"It waited, and an outage has made its data the only copy of something since.", Again{Own: outside, Others: ahead, Count: 2, Has: has("1-12")}, members.ReinitializeWaiting, Stay},
		"ExtraAgain":     {"Also after it was decided.", Again{Own: outside, Others: ahead, Count: 2, Has: has("1-12"), Last: begun, Former: true}, members.ReinitializeWaiting, Stay},
		"Told":           {"A person requests it who was told.", Again{Own: outside, Others: ahead, Count: 2, Has: has("1-12"), Reported: has("1-12")}, members.ReinitializeCopying, Discard},
		"ToldLess":       {"And was told of all.", Again{Own: outside, Others: ahead, Count: 2, Has: has("1-12"), Reported: has("1-11")}, members.ReinitializeWaiting, Stay},
		"KeptOut":        {"A group that a person began with one member keeps out all others, and none of them could come back.", Again{Own: outside, Others: one, Count: 2, Has: has("1-12"), Reported: has("1-12")}, members.ReinitializeCopying, Discard},
		"KeptOutNot":     {"It was not known when this was requested.", Again{Own: outside, Others: one, Count: 2, Has: has("1-12")}, members.ReinitializeWaiting, Stay},
		"KeptOutEnded":   {"Its server has stopped, and what it has is known.", Again{Others: one, Count: 2, Has: has("1-12"), Reported: has("1-12"), Last: begun, Former: true}, members.ReinitializeCopying, Discard},
		"KeptOutUnknown": {"Its server has ended, and what it has is not known.", Again{Others: one, Count: 2, Unknown: true, Has: has("1-12"), Reported: has("1-12")}, members.ReinitializeWaiting, Stay},
		"KeptOutSeated":  {"An outage would wait for it.", Again{Own: outside, Others: one, Count: 2, Has: has("1-12"), Reported: has("1-12"), Seated: true}, members.ReinitializeWaiting, Stay},
		"KeptOutAlone":   {"No member proves that it has a majority.", Again{Own: outside, Others: map[string]Member{"a": of(grouped(false, "a"), "1-9")}, Count: 2, Has: has("1-12"), Reported: has("1-12")}, members.ReinitializeWaiting, Stay},
		"InGroup":        {"A member of the group is not kept out of it.", Again{Own: secondary, Others: one, Count: 2, Has: has("1-12"), Reported: has("1-12")}, members.ReinitializeWaiting, Stay},
		"Fenced":         {"What a member without a majority has is not the group's.", Again{Own: outside, Others: map[string]Member{"a": of(grouped(true, "a", "c"), "1-7"), "c": of(grouped(true, "a", "c"), "1-7"), "d": of(grouped(false, "d"), "1-9")}, Count: 3, Has: has("1-9")}, members.ReinitializeWaiting, Stay},
		"Unknown":        {"Its server was well when it was requested, and ended with who knows what.", Again{Others: ahead, Count: 2, Unknown: true}, members.ReinitializeWaiting, Stay},
	} {
		t.Run(name, func(t *testing.T) {
			tc.again.ID, tc.again.Name = "1", "b"
			got, step := CopyAgain(tc.again)
			if diff := cmp.Diff(tc.want, got.Outcome); diff != "" || step != tc.step || got.ID != "1" {
				t.Errorf("%s\n-want, +got:\n%s%v, step %d", tc.reason, diff, got, step)
			}
		})
	}
}
