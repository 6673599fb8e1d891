// SPDX-License-Identifier: Apache-2.0

package following

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

const system = "7300000000000000001"

// archive of a stanza up to a segment.
func archive(name, last string, system uint64, ended int64) pgbackrest.Stanza {
	s := pgbackrest.Stanza{
		Name: name, Archives: []pgbackrest.Archive{{ID: "17-1", Max: last}}, Backups: make([]pgbackrest.Backup, 1),
		Servers: []pgbackrest.Origin{{System: system, Version: "17"}},
	}
	s.Backups[0].Timestamp.Stop = ended
	return s
}

// TestNext: what a standby reports, look by look.
func TestNext(t *testing.T) {
	const own = 7300000000000000001
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	here := func(replayed pgbackrest.LSN) server {
		return server{recovery: true, system: system, replayed: replayed, at: &at}
	}
	type look struct {
		reason string
		after  time.Duration
		own    server
		all    []pgbackrest.Stanza
		err    error
		state  string
		active bool
		words  string
	}
	first := []pgbackrest.Stanza{archive("orders-1-17", "000000010000000000000005", own, 100), archive("stranger-17", "000000010000000000000009", 1, 200)}
	cases := map[string][]look{
		"CaughtUp": {
			{"An archive is new until it is known not to grow.", 0, here(0x6000000), first[:1], nil, members.FollowCaughtUp, true, ""},
			{"It has not grown for two minutes.", 3 * time.Minute, here(0x6000000), first[:1], nil, members.FollowCaughtUp, false, ""},
			{"It grows again, and what is new is replayed next.", time.Minute, here(0x6000000), []pgbackrest.Stanza{archive("orders-1-17", "000000010000000000000007", own, 100)}, nil, members.FollowCaughtUp, true, ""},
			{"It was not replayed for minutes.", 3 * time.Minute, here(0x6000000), []pgbackrest.Stanza{archive("orders-1-17", "000000010000000000000007", own, 100)}, nil, members.FollowBehind, false, "since 2026-11-25T12:04:00Z"},
			{"It is replayed.", time.Minute, here(0x8000000), []pgbackrest.Stanza{archive("orders-1-17", "000000010000000000000007", own, 100)}, nil, members.FollowCaughtUp, false, ""},
		},
		"Unreachable": {
			{"It can be read.", 0, here(0x6000000), first[:1], nil, members.FollowCaughtUp, true, ""},
			{"It cannot, and grew a moment ago.", time.Minute, here(0x6000000), nil, errors.New("no route to the bucket"), members.FollowUnreachable, true, "no route to the bucket"},
			{"It grew long ago, as far as is known.", 2 * time.Minute, here(0x6000000), nil, errors.New("no route to the bucket"), members.FollowUnreachable, false, "no route to the bucket"},
		},
		"Foreign": {
			{"No stanza is of the data.", 0, here(0x6000000), first[1:], nil, members.FollowUnreachable, false, "no backup of the data"},
		},
		"Replaced": {
			{"Another stanza has a later backup: the primary archives there.", 0, here(0x6000000), first, nil, members.FollowReplaced, true, "stranger-17"},
		},
	}
	for name, looks := range cases {
		t.Run(name, func(t *testing.T) {
			var s seen
			now := at
			for _, l := range looks {
				now = now.Add(l.after)
				got := s.next(l.own, l.all, pgmember.Source{Follow: true}, l.err, now)
				if got.State != l.state || got.Active != l.active || !strings.Contains(got.Message, l.words) {
					t.Errorf("%s: got %+v, want state %s, active %t, %q", l.reason, got, l.state, l.active, l.words)
				}
				s.report = got
			}
		})
	}
}

// TestReplayed changes at most every five minutes.
func TestReplayed(t *testing.T) {
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	var s seen
	for _, tc := range []struct {
		after time.Duration
		want  string
	}{{0, "2026-11-25T12:00:00Z"}, {4 * time.Minute, "2026-11-25T12:00:00Z"}, {time.Minute, "2026-11-25T12:05:00Z"}} {
		at = at.Add(tc.after)
		if s.report = s.replayed(server{at: &at}); s.report.ReplayedTo != tc.want {
			t.Errorf("at %s: got %s, want %s", at, s.report.ReplayedTo, tc.want)
		}
	}
}

// TestSecondPrimary: a former primary writes if it archived anything that a promoted Database did not replay before.
func TestSecondPrimary(t *testing.T) {
	data := t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "pg_wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	// It was promoted in the middle of segment 5, and had a failover of its own later.
	history := "1\t0/5A00000\tno recovery target specified\n\n2\t0/8000000\tno recovery target specified\n"
	if err := os.WriteFile(filepath.Join(data, "pg_wal", "00000003.history"), []byte(history), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, last string
		want         bool
	}{
		"Gone":     {"What it archived last is replayed.", "000000010000000000000005", false},
		"Goes on":  {"The next segment came after the promotion.", "000000010000000000000006", true},
		"Timeline": {"It has a timeline that is not this Database's.", "000000040000000000000005", true},
		"Nothing":  {"It never archived.", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen{last: tc.last}
			got := s.promoted(data, server{timeline: 3}, archive("orders-1-17", tc.last, 1, 100))
			if (got.State == members.FollowSecondPrimary) != tc.want {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
			if tc.want && !strings.Contains(got.Message, tc.last) {
				t.Errorf("the message does not name the segment: %s", got.Message)
			}
		})
	}
}
