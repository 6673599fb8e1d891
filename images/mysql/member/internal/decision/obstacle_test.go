// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// TestObstacles looks every 5 s, unless a case has other pauses, and says after which look which sessions end.
func TestObstacles(t *testing.T) {
	const every = 5 * time.Second
	read := Obstacle{
		Session: 7, User: "api", Host: "10.0.0.9", Event: 3, Type: "TABLE", Name: "shop.orders", Has: "SHARED_READ", Wants: "EXCLUSIVE", Transaction: "u:9",
	}
	with := func(change func(*Obstacle)) Obstacle {
		o := read
		change(&o)
		return o
	}
	of := func(user string) Obstacle { return with(func(o *Obstacle) { o.User = user }) }
	second := with(func(o *Obstacle) { o.Session, o.Event = 8, 1 })
	many := func(n int, o ...Obstacle) [][]Obstacle { return slices.Repeat([][]Obstacle{o}, n) }
	type ends map[int][]int64
	cases := map[string]struct {
		reason string
		looks  [][]Obstacle
		pauses map[int]time.Duration // before a look
		want   ends
	}{
		"Blocks": {"It ends when it has blocked for 30 s.", many(7, read), nil, ends{6: {7}}},
		"Stays":  {"A statement that does not end at once is not ended again at each look.", many(13, read), nil, ends{6: {7}, 12: {7}}},
		"Short":  {"It released the lock in time.", append(many(6, read), nil, []Obstacle{read}), nil, nil},
		"Next": {
			"A session that locks the same again, for another statement, has its own 30 s.",
			append(many(4, read), many(4, with(func(o *Obstacle) { o.Event = 5 }))...), nil, nil,
		},
		"Moves": {
			"The applier waits for another transaction, so it was not blocked in between.",
			append(many(4, read), many(4, with(func(o *Obstacle) { o.Transaction = "u:10" }))...), nil, nil,
		},
		"Both": {"All that block have to end, or the applier still waits.", many(7, read, second), nil, ends{6: {7, 8}}},
		"Later": {
			"One that comes later, in a wait that others began, has its own 30 s.",
			append(many(4, read), many(7, read, second)...), nil,
			ends{6: {7}, 10: {8}},
		},
		"Twice": {"A session with two locks in the way ends once.", many(7, read, with(func(o *Obstacle) { o.Name = "shop.lines" })), nil, ends{6: {7}}},
		"Compatible": {
			"Other readers have a lock on the same table, which the applier's own change of rows does not wait for.",
			many(9, with(func(o *Obstacle) { o.Wants = "SHARED_WRITE" })), nil, nil,
		},
		"Locked": {
			"LOCK TABLES … READ is in the way of changes of rows.",
			many(7, with(func(o *Obstacle) { o.Has, o.Wants = "SHARED_READ_ONLY", "SHARED_WRITE" })), nil,
			ends{6: {7}},
		},
		"Unknown": {"What a later server calls its locks proves nothing.", many(9, with(func(o *Obstacle) { o.Wants = "SHARED_NEW" })), nil, nil},
		"Nothing": {"The thread applies nothing.", many(9, with(func(o *Obstacle) { o.Transaction = "" })), nil, nil},
		"Ours": {
			"Sessions of the platform are never ended.",
			many(9, of(mysqlmember.AccountMember), of(mysqlmember.AccountReplication), of(mysqlmember.AccountBackup), of(mysqlmember.AccountAccess),
				of(mysqlmember.AccountImport), of(mysqlmember.AccountExporter)), nil, nil,
		},
		"Frozen": {
			"While everything was frozen the session could not end: of a minute 10 s count.",
			many(6, read),
			map[int]time.Duration{1: time.Minute},
			ends{5: {7}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var o Obstacles
			var got ends
			now := time.Unix(1_800_000_000, 0)
			for i, seen := range tc.looks {
				pause, other := tc.pauses[i]
				if !other {
					pause = every
				}
				now = now.Add(pause)
				var end []Blocker
				o, end = o.Next(now, seen, false)
				for _, b := range end {
					if b.For < blocksFor {
						t.Errorf("%s\nsession %d ends after %s", tc.reason, b.Session, b.For)
					}
					if got == nil {
						got = ends{}
					}
					got[i] = append(got[i], b.Session)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestElected: clients that write wait for a member that was elected. What is in its way ends after 2 s, unless it is for a moment.
func TestElected(t *testing.T) {
	read := Obstacle{Session: 7, User: "api", Event: 3, Type: "TABLE", Name: "shop.orders", Has: "SHARED_READ", Wants: "EXCLUSIVE", Transaction: "u:9"}
	var o Obstacles
	now := time.Unix(1_800_000_000, 0)
	var ended []int
	for i, seen := range [][]Obstacle{{read}, {read}, nil, {read}, {read}, {read}} {
		now = now.Add(time.Second)
		var end []Blocker
		if o, end = o.Next(now, seen, true); len(end) > 0 {
			ended = append(ended, i)
		}
	}
	if diff := cmp.Diff([]int{5}, ended); diff != "" {
		t.Errorf("looks after which the session ends: -want +got:\n%s", diff)
	}
}

// TestConflicts: two locks of tables conflict whichever is there first, as MySQL documents for all of them.
func TestConflicts(t *testing.T) {
	for wants, all := range conflicts {
		for _, has := range all {
			if !slices.Contains(conflicts[has], wants) {
				t.Errorf("%s waits for %s, and not the other way round", wants, has)
			}
		}
	}
}
