// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
)

const (
	// apartAfter is how long a replica does not hear from a member before that is worth a report. A group takes 40 s at most to remove a member
	// that its leader does not hear from either.
	apartAfter = time.Minute
	// leaveAfter is how long a replica that receives too little stays in the group for it.
	leaveAfter = 2 * time.Minute
	// oneAfterOther is how much longer the first by name of two such replicas stays. The other one has left by then, if it has to.
	oneAfterOther = time.Minute
)

// Apart are members that a replica does not hear from, although its leader hears from them and from this one. A group may stay like this, because its
// leader misses no member. Of three members no two are a majority when that leader ends.
type Apart struct {
	// Names of the members, in order.
	Names []string
	// since when the replica does not hear from one of them, and late since when it also receives too little.
	since, late time.Time
}

// Next is what is known after a look at a time, at which the replica does not hear from the silent members, and for how long it has not received
// something that its leader has. The leader is what it says of itself: zero if it did not answer, which says nothing of the others.
func (a Apart) Next(now time.Time, silent []string, leader Member, late time.Duration) Apart {
	if len(leader.Hears) == 0 {
		leader.Hears = a.Names
	}
	next := Apart{since: now}
	for _, name := range silent {
		if slices.Contains(leader.Hears, name) {
			next.Names = append(next.Names, name)
		}
	}
	slices.Sort(next.Names)
	if len(next.Names) == 0 {
		return Apart{}
	}
	if slices.ContainsFunc(a.Names, func(name string) bool { return slices.Contains(next.Names, name) }) {
		next.since, next.late = a.since, a.late
	}
	switch {
	case late <= lateAfter:
		next.late = time.Time{}
	case next.late.IsZero():
		next.late = now
	}
	return next
}

// Report of a member, by its name, that is apart from others for long; empty before that.
func (a Apart) Report(now time.Time, name string) Entry {
	if len(a.Names) == 0 || now.Sub(a.since) < apartAfter {
		return Entry{}
	}
	return Entry{Reason: members.ReasonMembersApart, Message: fmt.Sprintf("%s does not hear from %s, and the leader hears from both: check the network between "+
		"their nodes. A failover needs a majority of members that hear from each other", name, strings.Join(a.Names, ", "))}
}

// Leaves reports whether a member leaves its group for that: it receives too little to be of use, and the group keeps more and more for it. What the
// leader says of itself shows that the others survive the loss of one of them, as three do and two do not. Of two members that are apart the later
// one by name goes first, so that not both do.
func (a Apart) Leaves(now time.Time, name string, leader Member) bool {
	if len(a.Names) == 0 || a.late.IsZero() || now.Sub(a.since) < leaveAfter || name < a.Names[0] && now.Sub(a.late) < oneAfterOther {
		return false
	}
	other := func(n string) bool { return n != name }
	return 2*(count(leader.Hears, other)-1) > count(leader.Group, other)
}

func count(names []string, match func(string) bool) int {
	n := 0
	for _, name := range names {
		if match(name) {
			n++
		}
	}
	return n
}

// StayOut is how long a member stays out of its group after it left for that the nth time in a row: not at all after the first time, and then longer
// each time. A network that lets some packets through must not bring it back every few minutes.
func StayOut(n int) time.Duration {
	if n < 2 {
		return 0
	}
	return min(time.Minute<<min(n-1, 10), 30*time.Minute)
}

// divided are the members that this one left its group for, and cannot reach yet, although they are in the group that others prove.
func (k Known) divided() []string {
	return slices.DeleteFunc(slices.Clone(k.LeftFor), func(name string) bool {
		for _, o := range k.Others {
			if o.Proven && slices.Contains(o.Group, name) {
				return false
			}
		}
		return true
	})
}
