// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

const (
	// blocksFor is how long a session of a client may block what its member applies, and blocksElected how long it may do so where all clients that
	// write wait for it.
	blocksFor     = 30 * time.Second
	blocksElected = 2 * time.Second
	// longestStep is what counts at most of the time between two looks: a session whose server was frozen could not end.
	longestStep = 10 * time.Second
)

// An Obstacle is a metadata lock that a session has, on something that a thread of the applier waits to lock. It is comparable: in two looks it is
// the same only if the session has not released it in between, and the same transaction waits for the same.
type Obstacle struct {
	// Session that has it, and the User of that session with its Host.
	Session    int64
	User, Host string
	// Event is the number of what the session did when it got the lock.
	Event int64
	// Type and Name of what is locked, such as TABLE and shop.orders.
	Type, Name string
	// Has is the kind of lock that the session has, and Wants the kind that Transaction waits for, in the words of performance_schema.
	Has, Wants  string
	Transaction string
}

// conflicts are, for a kind of lock that is wanted, the kinds that it waits for when another session has one: the table of MySQL's sql/mdl.cc.
var conflicts = func() map[string][]string {
	const (
		intention, shared, highPrio = "INTENTION_EXCLUSIVE", "SHARED", "SHARED_HIGH_PRIO"
		read, write, lowPrio        = "SHARED_READ", "SHARED_WRITE", "SHARED_WRITE_LOW_PRIO"
		upgradable, readOnly        = "SHARED_UPGRADABLE", "SHARED_READ_ONLY"
		noWrite, noReadWrite        = "SHARED_NO_WRITE", "SHARED_NO_READ_WRITE"
		exclusive                   = "EXCLUSIVE"
	)
	return map[string][]string{
		intention:   {shared, exclusive}, // only of what contains others, such as a database
		shared:      {intention, exclusive},
		highPrio:    {exclusive},
		read:        {noReadWrite, exclusive},
		write:       {readOnly, noWrite, noReadWrite, exclusive},
		lowPrio:     {readOnly, noWrite, noReadWrite, exclusive},
		upgradable:  {upgradable, noWrite, noReadWrite, exclusive},
		readOnly:    {write, lowPrio, noReadWrite, exclusive},
		noWrite:     {write, lowPrio, upgradable, noWrite, noReadWrite, exclusive},
		noReadWrite: {read, write, lowPrio, upgradable, readOnly, noWrite, noReadWrite, exclusive},
		exclusive:   {intention, shared, highPrio, read, write, lowPrio, upgradable, readOnly, noWrite, noReadWrite, exclusive},
	}
}()

// blocks reports whether the applier waits for this lock, and the session is one of a client.
func (o Obstacle) blocks() bool {
	return slices.Contains(conflicts[o.Wants], o.Has) && o.Transaction != "" && !slices.Contains(mysqlmember.Accounts(), o.User)
}

// Obstacles are what the last look found, each with the time for which every look has found it. The zero value is before the first look.
type Obstacles struct {
	at    time.Time
	times map[Obstacle]time.Duration
}

// A Blocker is a session that blocks what its member applies by an Obstacle, For too long.
type Blocker struct {
	Obstacle

	For time.Duration
}

// Next are the obstacles after a look at a time, with the sessions to end now. One that does not end is to end again after the same time. An elected
// member is the leader once it has applied what it received.
func (o Obstacles) Next(now time.Time, seen []Obstacle, elected bool) (next Obstacles, end []Blocker) {
	bound := blocksFor
	if elected {
		bound = blocksElected
	}
	next = Obstacles{now, map[Obstacle]time.Duration{}}
	longest := map[int64]Blocker{}
	for _, one := range seen {
		if !one.blocks() {
			continue
		}
		next.times[one] = 0
		if before, known := o.times[one]; known {
			next.times[one] = before + min(now.Sub(o.at), longestStep)
		}
		if b := (Blocker{one, next.times[one]}); b.For >= bound && b.For > longest[one.Session].For {
			longest[one.Session] = b
		}
	}
	for one := range next.times {
		if _, ends := longest[one.Session]; ends {
			next.times[one] = 0
		}
	}
	for _, session := range slices.Sorted(maps.Keys(longest)) {
		end = append(end, longest[session])
	}
	return next, end
}
