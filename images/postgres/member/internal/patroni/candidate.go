// SPDX-License-Identifier: Apache-2.0

package patroni

import (
	"cmp"
	"slices"
)

// maxLag is how far a member may be behind to take over at once, in bytes: about a second of writes.
const maxLag = 16 << 20

// Candidate returns the name of the pod that is best fit to lead after another, or nothing when none is. Those that stop are never
// fit. With synchronous replication only a synchronous member has all that was acknowledged; Patroni refuses others.
func Candidate(peers []Peer, leader string, stopping []string) string {
	var fit []Peer
	for _, p := range peers {
		if p.Name == leader || slices.Contains(stopping, p.Name) || p.State != "streaming" || p.Tags["nofailover"] == true || p.lag() > maxLag {
			continue
		}
		fit = append(fit, p)
	}
	synchronous := func(p Peer) bool { return p.Role == "sync_standby" || p.Role == "quorum_standby" }
	if slices.ContainsFunc(fit, synchronous) {
		fit = slices.DeleteFunc(fit, func(p Peer) bool { return !synchronous(p) })
	}
	if len(fit) == 0 {
		return ""
	}
	return slices.MinFunc(fit, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.lag(), b.lag()), cmp.Compare(a.Name, b.Name))
	}).Name
}

// lag in bytes; what is unknown is too far.
func (p Peer) lag() float64 {
	if n, ok := p.Lag.(float64); ok {
		return n
	}
	return maxLag + 1
}
