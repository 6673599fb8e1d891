// SPDX-License-Identifier: Apache-2.0

package pgbackrest

import "testing"

func TestParseLSN(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text, want string
		bad                bool
	}{
		"Short":   {reason: "PostgreSQL writes no zeros in front.", text: "0/3000148", want: "0/3000148"},
		"High":    {reason: "Both halves count.", text: "1F/FFFFFFFF", want: "1F/FFFFFFFF"},
		"Nothing": {reason: "Nothing is no place.", bad: true},
		"Half":    {reason: "Half of it is none.", text: "3000148", bad: true},
		"Long":    {reason: "A half has eight digits.", text: "0/123456789", bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseLSN(tc.text)
			if (err != nil) != tc.bad || err == nil && got.String() != tc.want {
				t.Errorf("%s: got %s, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestLastArchived(t *testing.T) {
	s := Stanza{Archives: []Archive{{Max: "000000010000000000000042"}, {Max: "000000030000000100000002"}, {Max: ""}}}
	if got := s.Archived().String(); got != "1/2000000" {
		t.Errorf("the last segment begins at %s, want 1/2000000", got)
	}
}

func TestBefore(t *testing.T) {
	var s Stanza
	for i, stop := range []string{"0/1000", "0/2000", "0/3000"} {
		b := Backup{Label: string(rune('a' + i))}
		b.LSN.Stop = stop
		s.Backups = append(s.Backups, b)
	}
	s.Backups[1].Error = true
	for name, tc := range map[string]struct {
		reason string
		at     LSN
		want   string
	}{
		"Later":   {"The last one before is the shortest way.", 0x4000, "c"},
		"Exact":   {"Where it ends it is consistent.", 0x3000, "c"},
		"Damaged": {"One with errors is passed over.", 0x2fff, "a"},
		"Earlier": {"Before the first there is none.", 0xfff, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := s.Before(tc.at); got.Label != tc.want || ok != (tc.want != "") {
				t.Errorf("%s: got %q, want %q", tc.reason, got.Label, tc.want)
			}
		})
	}
}
