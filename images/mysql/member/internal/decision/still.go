// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"github.com/capstan-dev/capstan/apis/members"
)

// Still is what a member knows when a person requests that it stops and stays stopped.
type Still struct {
	// Look at its server; zero when that does not answer, or does not run.
	Look Look
	// OtherLeads reports that another member has the label of the leader, and Stopped is the name of one that is stopped on request; "" without
	// one.
	OtherLeads bool
	Stopped    string
}

// Stop decides such a request: an outcome, and its message unless that is members.FenceStopped. A member that stops in good order leaves
// its group, which counts it no longer.
func Stop(s Still) (outcome, message string) {
	own := s.Look.Own()
	grouped := own.State == Online || own.State == Recovering
	switch {
	case s.Stopped != "":
		return members.FenceWaiting, "member " + s.Stopped + " is stopped already: one at a time"
	case grouped && own.Role == Primary:
		return members.FenceRefused, "it is the leader: switch over first, and choose another id"
	case grouped && s.Look.Leader() == "", !grouped && !s.OtherLeads:
		return members.FenceWaiting, "there is no leader, and this member may become it"
	case grouped && !s.Look.without():
		return members.FenceWaiting, "the others would be no majority without it: it stops when more of them are back"
	default:
		return members.FenceStopped, ""
	}
}

// without this member, does the rest of its group have a majority?
func (l Look) without() bool {
	l.Group = slices.DeleteFunc(slices.Clone(l.Group), func(p Peer) bool { return p.Server == l.Server })
	return l.Majority()
}
