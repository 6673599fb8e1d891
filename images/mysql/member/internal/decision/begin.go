// SPDX-License-Identifier: Apache-2.0

// Package decision decides, by what a member observes and nothing else, whether it joins or begins a group, which role it has, and
// whether clients may come.
package decision

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// State of a member as far as the group is concerned.
type State string

const (
	// Starting members have a server that does not answer yet.
	Starting State = "Starting"
	// Offline members are in no group, and do not enter one before they have asked all others.
	Offline State = "Offline"
	// Entering members are about to begin or join a group.
	Entering State = "Entering"
	// Grouped members are in a group, if not one that can commit.
	Grouped State = "Grouped"
)

// A Member is what one says of itself, to other members as JSON. Members of an earlier version do not say what came later.
type Member struct {
	State State `json:"state"`
	// Proven members showed a moment ago that their group has a majority.
	Proven bool `json:"proven,omitempty"`
	// Server is the id of the data, by its UUID.
	Server string `json:"server,omitempty"`
	// Has are the transactions that it executed, and those that it received and did not execute yet.
	Has gtid.Set `json:"has"`
	// Group are the members of the group that it is in, by name, and GroupName is what the group is called.
	Group     []string `json:"group,omitempty"`
	GroupName string   `json:"groupName,omitempty"`
	// Hears are the members of that group that it hears from, by name, with itself.
	Hears []string `json:"hears,omitempty"`
	// Follows is the id of the data of the leader that it hears from, if its group has a majority.
	Follows string `json:"follows,omitempty"`
	// Addresses reports that it lets members into its group that have an address there, and no name. A member of an earlier version does not.
	Addresses bool `json:"addresses,omitempty"`
	// Full reports that its volume has no room for what a leader writes.
	Full bool `json:"full,omitempty"`
}

// ByName reports whether a group takes names only, because a member of an earlier version is in it.
func ByName(others map[string]Member) bool {
	for _, m := range others {
		if m.State == Grouped && !m.Addresses {
			return true
		}
	}
	return false
}

// Proven are the members of groups that others prove, by name.
func Proven(others map[string]Member) []string {
	var out []string
	for _, o := range others {
		if o.Proven {
			out = append(out, o.Group...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// A Seat is a member of the last group that is known to have had a majority, with the id of its data.
type Seat struct{ Name, Server string }

// Known is what a member has to know to enter a group.
type Known struct {
	// Name of the member, and what it says of itself.
	Name string
	Own  Member
	// Others that answered, by name.
	Others map[string]Member
	// Initialized reports that there is data: no member begins without it.
	Initialized bool
	// View is the last group that is known; empty when none is.
	View []Seat
	// Expected are the members that have to answer when there is no View.
	Expected []string
	// Pods are the members that have one.
	Pods []string
	// GroupName is the first name of a group of this generation. Transactions that have it come from such a group.
	GroupName string
	// Blind members cannot read the record: all that they know is what Others say.
	Blind bool
	// Leader of the View, if it had one.
	Leader string
	// Epoch counts the groups that were begun.
	Epoch int64
	// Unreached are members, by name, of a group that others prove, which this member does not reach, if its last try to stay in the group failed.
	Unreached []string
	// Accepted is what a person decided: the member to begin with and the Epoch at that time, as in orders-db-b@3. What was decided in
	// another one has no effect.
	Accepted string
}

// What a member does.
type What int

const (
	// Wait for others, for the reason that is given.
	Wait What = iota
	// Join the group that others are in.
	Join
	// Begin a group. The others join it.
	Begin
)

// Entry into a group: what to do and, while the member waits, why.
type Entry struct {
	What            What
	Reason, Message string
	// GroupName is what the group to join is called, if its members say so.
	GroupName string
	// Another reports that the group to begin may lack acknowledged transactions. It needs another name: under the same one it would give
	// their ids to other transactions, and a member that still has them would join without a notice.
	Another bool
}

func wait(reason, message string) Entry { return Entry{What: Wait, Reason: reason, Message: message} }

// Enter decides how a member enters a group that it is not in.
//
// A group that can prove its majority is joined, and nothing else is begun. Without one, the member begins that has every transaction of
// all others, executed or received. Each one that was in the last group has to say what it has first: nothing is decided by silence.
//
// To join takes no record: what proves a majority cannot be a second group. To begin does.
func Enter(k Known) Entry {
	var unproven []string
	group, called := gtid.Set{}, ""
	proven, former := false, false
	for _, name := range slices.Sorted(maps.Keys(k.Others)) {
		o := k.Others[name]
		former = former || slices.Contains(o.Group, k.Name)
		switch {
		case o.Proven:
			proven, called = true, cmp.Or(called, o.GroupName)
			group = group.Union(o.Has)
		case o.State == Entering || o.State == Grouped:
			unproven = append(unproven, name)
		}
	}
	switch {
	case former:
		// Coming back at this moment it would be taken for the former one, and the group would never remove that.
		return wait("", "the group has not removed this member yet, as it was before its server ended")
	case proven:
		return k.join(group, called)
	case len(unproven) > 0:
		return wait(members.ReasonWaitingForMembers, strings.Join(unproven, ", ")+
			" is in a group, or about to enter one, and cannot prove yet that it has a majority")
	case k.Blind:
		return wait(members.ReasonWaitingForMembers, "no member proves that its group has a majority, and the API server does not answer: without the "+
			"record of the last group this member begins none")
	}
	switch accepted := k.accepted(); accepted {
	case k.Name:
		return Entry{What: Begin, Another: true}
	case "":
		if name := k.restores(); name != "" {
			return wait(members.ReasonWaitingForFormerLeader, fmt.Sprintf("member %s restores a backup, and this one joins it. Only if %[1]s is lost for good, choose "+
				"another member to restore it: annotate the ConfigMap that ends with -config with %s=<member>@%d", name, AnnotationBeginFrom, k.Epoch))
		}
		return k.begin()
	default:
		return wait(members.ReasonWaitingForFormerLeader, fmt.Sprintf("member %s begins, as was decided, and this one joins it", accepted))
	}
}

// restores is another member that claimed to restore the backup that the Database begins with; "" when none did, or there is data.
func (k Known) restores() string {
	if k.Initialized || !k.Own.Has.Empty() || len(k.View) != 1 || k.View[0].Server != "" || k.View[0].Name == k.Name {
		return ""
	}
	return k.View[0].Name
}

// accepted member to begin with; "" while no person decided about this outage.
func (k Known) accepted() string {
	name, epoch, _ := strings.Cut(k.Accepted, "@")
	if epoch != strconv.FormatInt(k.Epoch, 10) {
		return ""
	}
	_, answers := k.Others[name]
	known := func(s Seat) bool { return s.Name == name }
	if !answers && name != k.Name && !slices.ContainsFunc(k.seats(), known) {
		return ""
	}
	return name
}

// join a group that has these transactions. One with others of its own is kept out: they would be lost, or divide the group.
func (k Known) join(group gtid.Set, called string) Entry {
	extra := k.Own.Has.Minus(group)
	switch {
	case extra.Empty() && len(k.Unreached) > 0:
		// The group would remove it again, or another one, and writes wait each time.
		return wait(members.ReasonMembersApart, fmt.Sprintf("this member could not stay in the group, and does not reach %s there, which others hear from: it joins when it "+
			"does. Check the network between their nodes", strings.Join(k.Unreached, ", ")))
	case extra.Empty():
		return Entry{What: Join, GroupName: called}
	}
	return wait(mysqlmember.ReasonExtraTransactions, fmt.Sprintf("this member has transactions that the group does not have, and stays out of it: %s. "+
		"Save from it what is needed, then copy the member again by spec.reinitialize: it gets the data of the group", extra))
}

// begin a group when no member is in one.
func (k Known) begin() Entry {
	all := maps.Clone(k.Others)
	if all == nil {
		all = map[string]Member{}
	}
	all[k.Name] = k.Own
	seats := k.seats()
	var missing, lost []string
	for _, s := range seats {
		m, ok := all[s.Name]
		switch {
		case !ok || m.State == Starting:
			missing = append(missing, s.Name)
		case s.Server != "" && s.Server != m.Server:
			lost = append(lost, s.Name)
		}
	}
	switch {
	case len(missing) > 0:
		return wait(members.ReasonWaitingForMembers, fmt.Sprintf("no member is in a group, and which one has all transactions is unknown without %s%s. %s",
			strings.Join(missing, ", "), k.absent(missing, seats), k.said(all)))
	case len(lost) > 0:
		return wait(mysqlmember.ReasonRecoveryNeedsDecision, fmt.Sprintf("no member is in a group, and the data of %s is gone, which may have been all that has some "+
			"acknowledged transactions: bring the volume back%s. %s", strings.Join(lost, ", "), k.former(all, lost), k.said(all)))
	}
	who, found := k.most(all, seats)
	switch {
	case !found:
		return wait(mysqlmember.ReasonRecoveryNeedsDecision, "no member is in a group, and none has all transactions. "+k.said(all))
	case len(k.View) == 0 && (k.Initialized || k.outlived(all)):
		return wait(mysqlmember.ReasonRecoveryNeedsDecision, "no member is in a group, and the record of the last one is lost, so that a member with more "+
			"transactions may be missing. "+k.said(all))
	case who != k.Name:
		return wait(members.ReasonWaitingForFormerLeader, fmt.Sprintf("no member is in a group, and member %s has all transactions: it begins, and this one joins it", who))
	}
	return Entry{What: Begin}
}

// outlived reports whether a member has transactions of a group whose record is lost. Volumes that are older than the Database are
// expected to have some.
func (k Known) outlived(all map[string]Member) bool {
	for name, m := range all {
		if m.Has.From(k.GroupName) && !slices.Contains(k.Expected, name) {
			return true
		}
	}
	return false
}

// absent members that have a volume which is older than the Database, and no pod, because it has fewer replicas than the one before.
func (k Known) absent(missing []string, seats []Seat) string {
	without := slices.DeleteFunc(slices.Clone(missing), func(name string) bool { return slices.Contains(k.Pods, name) })
	if len(k.View) > 0 || len(without) == 0 {
		return ""
	}
	return fmt.Sprintf(". The volume of %s was there before this Database, and has no pod now: set spec.replicas to %d until all members follow, then "+
		"lower it", strings.Join(without, ", "), len(seats))
}

// former says that the last leader that is recorded has its data, which helps a person and decides nothing. What another member received and the
// leader did not is not acknowledged, but a member that has it could not join a group without it, so a member with all of it is better. Another member may have been the
// leader after it, when the API server was down or at the very end, and what that one acknowledged may be what is lost.
func (k Known) former(all map[string]Member, lost []string) string {
	led, answers := all[k.Leader]
	if !answers || slices.Contains(lost, k.Leader) {
		return ""
	}
	text := fmt.Sprintf(". %s is the last leader that was recorded, and has its data: unless another member was the leader after it, it has every acknowledged "+
		"transaction", k.Leader)
	var union gtid.Set
	for _, m := range all {
		union = union.Union(m.Has)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if m := all[name]; !slices.Contains(lost, name) && m.Has.Contains(union) && !led.Has.Contains(union) {
			return text + fmt.Sprintf(". So has %s, with transactions that others would be kept out for if the group began without them: begin with this one", name)
		}
	}
	return text
}

// seats of the members that have to answer. When the last group is unknown: all that are expected, and all that answer.
func (k Known) seats() []Seat {
	if len(k.View) > 0 {
		return k.View
	}
	names := map[string]bool{k.Name: true}
	for _, name := range k.Expected {
		names[name] = true
	}
	for name, m := range k.Others {
		if m.State == Offline {
			names[name] = true
		}
	}
	var out []Seat
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, Seat{Name: name})
	}
	return out
}

// most is the member that has what all members with a seat have: the former leader if that is one, or the first by name.
func (k Known) most(all map[string]Member, seats []Seat) (string, bool) {
	var union gtid.Set
	for _, s := range seats {
		union = union.Union(all[s.Name].Has)
	}
	var fit []string
	for _, s := range seats {
		if all[s.Name].Has.Contains(union) {
			fit = append(fit, s.Name)
		}
	}
	if len(fit) == 0 {
		return "", false
	}
	return slices.MinFunc(fit, func(a, b string) int {
		last := func(name string) int {
			if name == k.Leader {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(a, b))
	}), true
}

// AnnotationBeginFrom of <scope>-config is the member that a person decided to begin with, and the number of the last group, as in
// orders-db-b@3.
const AnnotationBeginFrom = "capstan.dev/begin-from"

// said is what each member has, and how a person decides.
func (k Known) said(all map[string]Member) string {
	var sets []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if m := all[name]; m.State != Starting {
			sets = append(sets, fmt.Sprintf("%s has %s", name, cmp.Or(m.Has.String(), "nothing")))
		}
	}
	return fmt.Sprintf("%s. Only if the rest is lost for good, accept the loss and choose the member to begin with: annotate the ConfigMap that ends with "+
		"-config with %s=<member>@%d", strings.Join(sets, "; "), AnnotationBeginFrom, k.Epoch)
}
