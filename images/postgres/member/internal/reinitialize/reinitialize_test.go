// SPDX-License-Identifier: Apache-2.0

package reinitialize

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
)

func TestNext(t *testing.T) {
	streams := patroni.State{Role: "replica", State: "running", Replication: "streaming"}
	alone := patroni.State{Role: "replica", State: "running"}
	fresh := patroni.State{Role: "uninitialized", State: "creating replica"}
	begun := members.ReinitializeReport{ID: "1", Outcome: members.ReinitializeCopying, Message: "it is copied from the leader"}
	for name, tc := range map[string]struct {
		reason string
		now    situation
		last   members.ReinitializeReport
		want   string
		copies bool
	}{
		"Healthy":   {"A person may doubt data that looks well.", situation{State: streams, holder: "b"}, members.ReinitializeReport{}, members.ReinitializeCopying, true},
		"Stuck":     {"A standby that does not follow is the usual one.", situation{State: alone, holder: "b"}, members.ReinitializeReport{ID: "0", Outcome: members.ReinitializeDone}, members.ReinitializeCopying, true},
		"Leader":    {"Its data is the data.", situation{State: patroni.State{Leads: true}, holder: "a"}, members.ReinitializeReport{}, members.ReinitializeRefused, false},
		"NoLeader":  {"Its data may be the last copy.", situation{State: alone}, members.ReinitializeReport{}, members.ReinitializeWaiting, false},
		"Other":     {"One copy less at a time.", situation{State: streams, holder: "b", other: "c"}, members.ReinitializeReport{}, members.ReinitializeWaiting, false},
		"Copying":   {"Patroni is at it.", situation{State: fresh, holder: "b"}, begun, members.ReinitializeCopying, false},
		"Stopping":  {"So it is before it removes the data.", situation{State: patroni.State{Role: "replica", State: "stopping"}, stale: true, holder: "b"}, begun, members.ReinitializeCopying, false},
		"Forgotten": {"A Patroni that ended in between has to be asked again.", situation{State: streams, stale: true, holder: "b"}, begun, members.ReinitializeCopying, true},
		"Alone":     {"A new copy that does not follow yet is not done.", situation{State: alone, holder: "b"}, begun, members.ReinitializeCopying, false},
		"Done":      {"A new copy follows.", situation{State: streams, holder: "b"}, begun, members.ReinitializeDone, false},
		"Promoted":  {"A new copy may be needed at once.", situation{State: patroni.State{Leads: true}, holder: "a"}, begun, members.ReinitializeDone, false},
		"Elected":   {"The former data leads before it was removed, and is the data.", situation{State: patroni.State{Leads: true}, stale: true, holder: "a"}, begun, members.ReinitializeRefused, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, copies := tc.now.next("1", tc.last)
			if diff := cmp.Diff(tc.want, got.Outcome); diff != "" || copies != tc.copies || got.ID != "1" {
				t.Errorf("%s\n-want, +got:\n%s%v, copies %t", tc.reason, diff, got, copies)
			}
		})
	}
}
