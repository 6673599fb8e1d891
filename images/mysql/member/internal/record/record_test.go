// SPDX-License-Identifier: Apache-2.0

package record

import "testing"

func TestLastLeader(t *testing.T) {
	view := []Seat{{Name: "orders-a"}, {Name: "orders-b", Leader: true}}
	for name, tc := range map[string]struct {
		reason string
		record Record
		want   string
	}{
		"Leads":   {"A leader has its seat.", Record{Leader: "orders-b-0", View: view}, "orders-b"},
		"Back":    {"After an outage its program is back, and says that it does not lead.", Record{View: view}, "orders-b"},
		"Earlier": {"A member of an earlier version leads.", Record{Leader: "orders-a-0", View: []Seat{{Name: "orders-a"}}}, "orders-a"},
		"None":    {"Nothing is known.", Record{View: []Seat{{Name: "orders-a"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.record.LastLeader(); got != tc.want {
				t.Errorf("%s LastLeader is %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
