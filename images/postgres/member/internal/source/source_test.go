// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"testing"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// TestFollowed is the stanza of the same data; others may have later backups.
func TestFollowed(t *testing.T) {
	stanza := func(name string, system uint64, ended int64) pgbackrest.Stanza {
		s := pgbackrest.Stanza{Name: name, Backups: make([]pgbackrest.Backup, 1), Servers: []pgbackrest.Origin{{System: system, Version: "17"}}}
		s.Backups[0].Timestamp.Stop = ended
		return s
	}
	all := []pgbackrest.Stanza{stanza("own-17", 7, 100), stanza("own-g2-17", 7, 200), stanza("stranger-17", 8, 300)}
	for name, tc := range map[string]struct {
		reason, named, system, want string
	}{
		"Latest":  {"Of those of the data the one with the latest backup counts.", "", "7", "own-g2-17"},
		"Named":   {"One is named.", "own-17", "7", "own-17"},
		"Foreign": {"The one that is named is of other data.", "stranger-17", "7", ""},
		"None":    {"There is none of the data.", "", "9", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Followed(all, pgmember.Source{Stanza: tc.named}, tc.system)
			if got.Name != tc.want || errors.Is(err, ErrUnknown) != (tc.want == "") {
				t.Errorf("%s: got %q, %v, want %q", tc.reason, got.Name, err, tc.want)
			}
		})
	}
}
