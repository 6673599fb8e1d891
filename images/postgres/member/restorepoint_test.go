// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

func TestRestorable(t *testing.T) {
	point := func(name, stanza, at string) members.RestorePoint {
		return members.RestorePoint{Name: name, Stanza: stanza, At: at}
	}
	p := points{stanza: "orders-17", all: []members.RestorePoint{
		point("expired", "orders-17", "2026-11-01T00:00:00Z"),
		point("other", "orders-16", "2026-11-20T00:00:00Z"),
		point("old", "orders-17", "2026-11-10T00:00:00Z"),
	}}
	for i := range toldPoints {
		p.all = append(p.all, point("v"+strconv.Itoa(i), "orders-17", "2026-11-20T00:00:00Z"))
	}
	for name, tc := range map[string]struct {
		reason, earliest, asked string
		first                   string
		n                       int
	}{
		"Last":    {"The last ones are told.", "2026-11-05T00:00:00Z", "v3", "v0", toldPoints},
		"Asked":   {"So is the one that is asked for, however old.", "2026-11-05T00:00:00Z", "old", "old", toldPoints + 1},
		"Expired": {"One whose backup is gone cannot be restored.", "2026-11-05T00:00:00Z", "expired", "v0", toldPoints},
		"Other":   {"Neither can one of other data.", "2026-11-05T00:00:00Z", "other", "v0", toldPoints},
		"None":    {"Without a backup none can.", "", "v3", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := p.restorable(tc.earliest, tc.asked)
			if len(got) != tc.n || tc.n > 0 && got[0].Name != tc.first {
				t.Errorf("%s: %d are told, the first of %+v", tc.reason, len(got), got)
			}
		})
	}
}

func TestToPoint(t *testing.T) {
	var stanza pgbackrest.Stanza
	for label, stop := range map[string]string{"1F": "0/3000000", "2F": "0/5000000"} {
		b := pgbackrest.Backup{Label: label}
		b.LSN.Stop = stop
		stanza.Backups = append(stanza.Backups, b)
	}
	slices.SortFunc(stanza.Backups, func(a, b pgbackrest.Backup) int { return strings.Compare(a.Label, b.Label) })
	for name, tc := range map[string]struct {
		reason, lsn string
		want        []string
		err         string
	}{
		"Between": {
			"It begins with the backup before, along the timeline of then.", "0/4000000",
			[]string{"--set=1F", "--type=name", "--target=v1@x", "--target-action=promote", "--target-timeline=3"},
			"",
		},
		"Expired": {"What was before the first backup is gone.", "0/2000000", nil, "the backup before it is kept no longer"},
		"Nowhere": {"A place that is none leads nowhere.", "nowhere", nil, "cannot understand"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := toPoint(stanza, members.RestorePoint{Name: "v1", Label: "v1@x", LSN: tc.lsn, Timeline: 3})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
		})
	}
}
