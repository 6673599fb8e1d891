// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// Again is what a member has to know to be copied again from its group, as a person requested.
type Again struct {
	// ID of the request, and Last what became of the last one.
	ID   string
	Last members.ReinitializeReport
	// Former reports that the data is still the one that the Last request replaces.
	Former bool
	// Name of the member, and Own what it is in its group; zero when its server does not answer.
	Name string
	Own  Peer
	// Has are the transactions of the data. Unknown reports that they are not known, because the server answered after
	// the request, and does not any more.
	Has     gtid.Set
	Unknown bool
	// Reported are transactions that the person knew of who made this request: that the group lacks them was reported before it.
	Reported gtid.Set
	// Others that answered, by name, and Count how many others there are.
	Others map[string]Member
	Count  int
	// Seated reports that the record of the group has this member.
	Seated bool
	// Copying is another member that is copied now.
	Copying string
}

// A Step of a member that is copied again.
type Step int

const (
	// Stay as it is.
	Stay Step = iota
	// Leave the group, and stay out of it.
	Leave
	// Discard the data. The member then joins the group as one that has none.
	Discard
)

// CopyAgain decides what becomes of a request, and the next step.
//
// The data is removed only once the member is in no group, the record of the group does not count on it, and more than half of the others
// prove that they have a majority: so all that was acknowledged is there, and an outage of all members does not wait for what was removed.
// After an outage the group may have begun with less, as a person decided. So transactions that it lacks are removed only by a request that was
// made after they were reported. For such a member one other that proves its majority is enough: the group that a person began keeps out all
// members of the one before, and they would wait for each other.
func CopyAgain(a Again) (members.ReinitializeReport, Step) {
	is := func(outcome, message string) members.ReinitializeReport {
		return members.ReinitializeReport{ID: a.ID, Outcome: outcome, Message: message}
	}
	copying := is(members.ReinitializeCopying, "it is copied from the group")
	copied := a.Last.ID == a.ID && a.Last.Outcome == members.ReinitializeCopying && !a.Former
	proven, group, counted := a.seen()
	switch online := a.Own.State == Online; {
	case copied && online:
		return is(members.ReinitializeDone, ""), Stay
	case copied:
		return copying, Stay
	case online && a.Own.Role == Primary:
		return is(members.ReinitializeRefused, "it is the leader: switch over first, and choose another id"), Stay
	case a.Count == 0:
		return is(members.ReinitializeWaiting, "there is no other member to copy from"), Stay
	case a.Copying != "":
		return is(members.ReinitializeWaiting, "member "+a.Copying+" is copied first"), Stay
	case 2*proven <= a.Count && (proven == 0 || !a.keptOut(group, counted)):
		return is(members.ReinitializeWaiting, fmt.Sprintf("more than half of the %d other members have to be in a group with a majority, and %d are", a.Count, proven)), Stay
	case a.Own.State != "" && a.Own.State != Outside, counted, a.Seated:
		return is(members.ReinitializeWaiting, "it leaves the group first"), Leave
	case a.Unknown:
		return is(members.ReinitializeWaiting, "its server does not answer since this request was made, so that it is unknown whether it has transactions that "+
			"the group lacks: if nothing of its data is needed, choose another id"), Stay
	}
	if extra := a.Has.Minus(group).Minus(a.Reported); !extra.Empty() {
		return is(members.ReinitializeWaiting, fmt.Sprintf("it has transactions that the group does not have, which was not known when this request was made: %s. "+
			"Save from it what is needed, then choose another id", extra)), Stay
	}
	return copying, Discard
}

// seen is how many others prove that they have a majority, what these have, and whether the group of any other counts on this member.
func (a Again) seen() (proven int, group gtid.Set, counted bool) {
	for _, o := range a.Others {
		if o.Proven {
			proven++
			group = group.Union(o.Has)
		}
		counted = counted || slices.Contains(o.Group, a.Name)
	}
	return proven, group, counted
}

// keptOut reports whether this member is in no group, is not waited for after an outage, and was known to have transactions that the group lacks
// when the request was made.
func (a Again) keptOut(group gtid.Set, counted bool) bool {
	extra := a.Has.Minus(group)
	out := (a.Own.State == "" || a.Own.State == Outside) && !a.Seated && !counted
	return out && !a.Unknown && !extra.Empty() && extra.Minus(a.Reported).Empty()
}
