// SPDX-License-Identifier: Apache-2.0

package points

import (
	"strconv"
	"testing"

	"github.com/capstan-dev/capstan/apis/members"
)

func TestRestorable(t *testing.T) {
	point := func(name, stanza, at string) members.RestorePoint {
		return members.RestorePoint{Name: name, Stanza: stanza, At: at}
	}
	p := Points{stanza: "orders-17", all: []members.RestorePoint{
		point("expired", "orders-17", "2026-11-01T00:00:00Z"),
		point("other", "orders-16", "2026-11-20T00:00:00Z"),
		point("old", "orders-17", "2026-11-10T00:00:00Z"),
	}}
	for i := range reportedPoints {
		p.all = append(p.all, point("v"+strconv.Itoa(i), "orders-17", "2026-11-20T00:00:00Z"))
	}
	for name, tc := range map[string]struct {
		reason, earliest, asked string
		first                   string
		n                       int
	}{
		"Last":    {"The last ones are told.", "2026-11-05T00:00:00Z", "v3", "v0", reportedPoints},
		"Asked":   {"So is the one that is asked for, however old.", "2026-11-05T00:00:00Z", "old", "old", reportedPoints + 1},
		"Expired": {"One whose backup is gone cannot be restored.", "2026-11-05T00:00:00Z", "expired", "v0", reportedPoints},
		"Other":   {"Neither can one of other data.", "2026-11-05T00:00:00Z", "other", "v0", reportedPoints},
		"None":    {"Without a backup none can.", "", "v3", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := p.Restorable(tc.earliest, tc.asked)
			if len(got) != tc.n || tc.n > 0 && got[0].Name != tc.first {
				t.Errorf("%s: %d are told, the first of %+v", tc.reason, len(got), got)
			}
		})
	}
}
