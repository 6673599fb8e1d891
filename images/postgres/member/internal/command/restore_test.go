// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

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
