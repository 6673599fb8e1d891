// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// Bounds of how long a replica may lack what its leader has. The second one is the way back.
const (
	lateAfter = time.Minute
	inTime    = 15 * time.Second
)

// A Receipt is how a replica receives what its leader has, from one comparison to the next. One that hears from its leader, and not from another
// member, stays in the group and may receive less and less. It has executed all of that, so that its queue is empty.
type Receipt struct {
	// goal is what it has to receive, since a time.
	goal  gtid.Set
	since time.Time
	// late is for how long it has not reached the goal, and took how long it took to reach the one before.
	late, took time.Duration
}

// Next is the receipt after a comparison at a time. Has is what the replica has executed or received, and leader what its leader has: nothing
// if that did not answer, which says nothing of the replica.
func (r Receipt) Next(now time.Time, has, leader gtid.Set) Receipt {
	if !r.goal.Empty() {
		r.late = now.Sub(r.since)
		if !has.Contains(r.goal) {
			return r
		}
		r.took = r.late
	}
	r.goal, r.since, r.late = leader, now, 0
	if leader.Empty() {
		r.took = 0
	}
	return r
}

// Late is for how long the replica lacks something, or lacked it before it received it. One that has reached a goal late may be as late with the
// next one.
func (r Receipt) Late() time.Duration { return max(r.late, r.took) }

// Lag in words, by the queue of transactions to execute, and by how long the replica lacks what its leader has. The way back is a good deal
// later, so that a replica at the border does not change its word all the time.
func Lag(before string, queue int64, late time.Duration) string {
	behind, far, most := int64(1_000), int64(50_000), lateAfter
	switch before {
	case members.LagFarBehind:
		behind, far, most = 100, 5_000, inTime
	case members.LagBehind:
		behind = 100
	}
	switch {
	case queue > far, late > most:
		return members.LagFarBehind
	case queue > behind:
		return members.LagBehind
	}
	return members.LagInSync
}
