// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
)

func TestCopyAgain(t *testing.T) {
	grouped := func(proven bool, names ...string) Member { return Member{State: Grouped, Proven: proven, Group: names} }
	both := map[string]Member{"a": grouped(true, "a", "b", "c"), "c": grouped(true, "a", "b", "c")}
	without := map[string]Member{"a": grouped(true, "a", "c"), "c": grouped(true, "a", "c")}
	secondary, primary := Peer{State: Online, Role: Secondary}, Peer{State: Online, Role: Primary}
	begun := members.ReinitializeReport{ID: "1", Outcome: members.ReinitializeCopying, Message: "it is copied from the group"}
	for name, tc := range map[string]struct {
		reason string
		again  Again
		want   string
		step   Step
	}{
		"Healthy":    {"A person may doubt data that looks well.", Again{Own: secondary, Others: both, Count: 2, Seated: true}, members.ReinitializeWaiting, Leave},
		"Recovering": {"It may never end.", Again{Own: Peer{State: Recovering}, Others: both, Count: 2, Seated: true}, members.ReinitializeWaiting, Leave},
		"Leader":     {"Its data is the data.", Again{Own: primary, Others: both, Count: 2, Seated: true}, members.ReinitializeRefused, Stay},
		"Elected":    {"So it is when it was elected before its data was removed.", Again{Own: primary, Others: both, Count: 2, Last: begun, Former: true}, members.ReinitializeRefused, Stay},
		"Alone":      {"Its data is all there is.", Again{}, members.ReinitializeWaiting, Stay},
		"Copying":    {"One copy less at a time.", Again{Own: secondary, Others: both, Count: 2, Copying: "orders-db-c"}, members.ReinitializeWaiting, Stay},
		"OneOfTwo":   {"The one that is left could be lost meanwhile.", Again{Own: secondary, Others: map[string]Member{"a": grouped(true, "a", "b")}, Count: 2}, members.ReinitializeWaiting, Stay},
		"Unproven":   {"Members without a majority may lack what was acknowledged.", Again{Own: Peer{State: Outside}, Others: map[string]Member{"a": grouped(false, "a"), "c": grouped(true, "c")}, Count: 2}, members.ReinitializeWaiting, Stay},
		"Two":        {"A leader commits without the other.", Again{Own: secondary, Others: map[string]Member{"a": grouped(true, "a", "b")}, Count: 1}, members.ReinitializeWaiting, Leave},
		"Counted":    {"The group would wait for it.", Again{Own: Peer{State: Outside}, Others: both, Count: 2}, members.ReinitializeWaiting, Leave},
		"Seated":     {"After an outage members would wait for what was removed.", Again{Own: Peer{State: Outside}, Others: without, Count: 2, Seated: true}, members.ReinitializeWaiting, Leave},
		"Left":       {"Nothing counts on its data.", Again{Own: Peer{State: Outside}, Others: without, Count: 2}, members.ReinitializeCopying, Discard},
		"Broken":     {"A server that does not even start is the usual one.", Again{Others: without, Count: 2}, members.ReinitializeCopying, Discard},
		"Again":      {"A program that ended before it removed the data does so.", Again{Others: without, Count: 2, Last: begun, Former: true}, members.ReinitializeCopying, Discard},
		"Lost":       {"Unless the others were lost meanwhile.", Again{Others: map[string]Member{"a": grouped(false, "a", "c")}, Count: 2, Last: begun, Former: true}, members.ReinitializeWaiting, Stay},
		"Joining":    {"New data that is in no group yet is not done.", Again{Own: Peer{State: Recovering}, Others: both, Count: 2, Last: begun}, members.ReinitializeCopying, Stay},
		"Done":       {"A new copy is in the group.", Again{Own: secondary, Others: both, Count: 2, Seated: true, Last: begun}, members.ReinitializeDone, Stay},
		"Promoted":   {"A new copy may be needed at once.", Again{Own: primary, Last: begun}, members.ReinitializeDone, Stay},
		"Next":       {"Another id is another request.", Again{Own: secondary, Others: both, Count: 2, Last: members.ReinitializeReport{ID: "0", Outcome: members.ReinitializeDone}}, members.ReinitializeWaiting, Leave},
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
