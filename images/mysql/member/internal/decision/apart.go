// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
)

// apartAfter is how long a replica does not hear from a member before that is worth a report. A group takes 40 s at most to remove a member that its
// leader does not hear from either.
const apartAfter = time.Minute

// Apart are members that a replica does not hear from, although its leader hears from them and from this one. A group may stay like this, because its
// leader misses no member. Of three members no two are a majority when that leader ends.
type Apart struct {
	// Names of the members, in order.
	Names []string
	// since when the replica does not hear from one of them.
	since time.Time
}

// Next is what is known after a look at a time, at which the replica does not hear from the silent members. The leader is what it says of itself:
// zero if it did not answer, which says nothing of the others.
func (a Apart) Next(now time.Time, silent []string, leader Member) Apart {
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
		next.since = a.since
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
