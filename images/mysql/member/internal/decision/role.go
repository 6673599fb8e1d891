// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"slices"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// Words of MySQL for a member of the group, and for what it is there.
const (
	Online      = "ONLINE"
	Recovering  = "RECOVERING"
	Unreachable = "UNREACHABLE"
	Failed      = "ERROR"
	Outside     = "OFFLINE"

	Primary   = "PRIMARY"
	Secondary = "SECONDARY"
)

// A Peer is a member of the group as this member sees it.
type Peer struct {
	// Server is the id of its data, and Host its name.
	Server, Host string
	// State and Role in MySQL's words, and Version of its server.
	State, Role, Version string
	// Queue is how many transactions it received and did not execute yet.
	Queue int64
}

// A Look is what a member's own server said at a moment.
type Look struct {
	Server, Version string
	// ReadOnly reports that the server takes no writes, and Shut that it lets no clients in.
	ReadOnly, Shut bool
	// GroupName is what the group is called that it is in, or was in last.
	GroupName string
	// Executed and Received are sets of transactions, in MySQL's words.
	Executed, Received string
	// Group has the members, with this one among them.
	Group []Peer
}

// Own is this member in its group. A server that was not in a group since its start may have no id there.
func (l Look) Own() Peer {
	for _, p := range l.Group {
		if p.Server == l.Server || p.Server == "" {
			return p
		}
	}
	return Peer{State: Outside}
}

// Majority reports whether this member hears from more than half of its group.
func (l Look) Majority() bool {
	heard := 0
	for _, p := range l.Group {
		if p.State == Online || p.State == Recovering {
			heard++
		}
	}
	return 2*heard > len(l.Group)
}

// Online reports whether any member of the group is online: others can copy or transfer what they lack from it.
func (l Look) Online() bool {
	return slices.ContainsFunc(l.Group, func(p Peer) bool { return p.State == Online })
}

// HasLeader reports whether this member hears from a leader of its group.
func (l Look) HasLeader() bool {
	return slices.ContainsFunc(l.Group, func(p Peer) bool { return p.State == Online && p.Role == Primary })
}

// Leader is the id of the data of the leader that this member hears from, in a group with a majority.
func (l Look) Leader() string {
	if !l.Majority() {
		return ""
	}
	for _, p := range l.Group {
		if p.State == Online && p.Role == Primary {
			return p.Server
		}
	}
	return ""
}

// Witnessed reports whether more than half of the group, with this member, hear from it as their leader.
func (l Look) Witnessed(others map[string]Member) bool {
	n := 0
	if l.Leader() == l.Server {
		n++
	}
	for _, o := range others {
		if o.Follows == l.Server {
			n++
		}
	}
	return 2*n > len(l.Group)
}

// Roomier is the id of the data of a member that can lead in place of this one, whose volume is full: one that hears from it, and has room. Of
// several it is the one that has received most. It is "" without one.
func (l Look) Roomier(others map[string]Member) string {
	executed, _ := gtid.Parse(l.Executed) // what cannot be read is the same for all
	best, least := "", int64(0)
	for _, name := range slices.Sorted(maps.Keys(others)) {
		o := others[name]
		is := func(p Peer) bool { return p.Server == o.Server && p.State == Online }
		if o.Full || o.Follows != l.Server || !slices.ContainsFunc(l.Group, is) {
			continue
		}
		if lacks := executed.Minus(o.Has).Count(); best == "" || lacks < least {
			best, least = o.Server, lacks
		}
	}
	return best
}

// Silent are the members of the group that this member does not hear from.
func (l Look) Silent() []Peer {
	return slices.DeleteFunc(slices.Clone(l.Group), func(p Peer) bool { return p.State != Unreachable })
}

// A Standing is what a member is for its clients.
type Standing struct {
	// Role for the label of its pod: RoleLeader, RoleReplica or none.
	Role string
	// Open reports that clients may come. Others are sent away.
	Open bool
	// Ready reports that clients should be sent here.
	Ready bool
}

// Stand decides it. A leader has to prove that it is: one that was frozen or cut off takes itself for the leader for some seconds.
func Stand(l Look, proven, stopping bool, lag string) Standing {
	own := l.Own()
	if own.State != Online || !l.Majority() || stopping && l.Shut {
		return Standing{}
	}
	switch {
	case own.Role == Primary && proven && !l.ReadOnly:
		return Standing{members.RoleLeader, true, true}
	case own.Role == Primary:
		// One that was just elected executes what it has received first. Clients that come already wait for it.
		return Standing{"", proven, false}
	case stopping:
		return Standing{}
	}
	return Standing{members.RoleReplica, true, lag != members.LagFarBehind}
}
