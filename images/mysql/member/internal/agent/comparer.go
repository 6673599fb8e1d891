// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/peers"
)

// compareEvery is the time between two comparisons of a replica with its leader.
const compareEvery = 10 * time.Second

// A Comparison of a replica with its leader. It is zero for a member that is no replica.
type Comparison struct {
	// Late is for how long the replica has not received something that its leader has.
	Late time.Duration
	// Report names members that it does not hear from for long, although its leader does. It is empty without any.
	Report decision.Entry
}

// A Comparer asks the leader of a replica what it has. Its loop is its own, because a leader that does not answer must not delay the Keeper.
type Comparer struct {
	names layout.Names
	seen  func() Seen

	receipt decision.Receipt
	apart   decision.Apart
	last    atomic.Pointer[Comparison]
}

// Last comparison.
func (c *Comparer) Last() Comparison {
	if last := c.last.Load(); last != nil {
		return *last
	}
	return Comparison{}
}

// once compares, and returns the pause before the next time.
func (c *Comparer) once(ctx context.Context) time.Duration {
	s := c.seen()
	own, err := has(s.Look)
	if at := s.Own(); err != nil || at.State != decision.Online || at.Role != decision.Secondary {
		c.receipt, c.apart = decision.Receipt{}, decision.Apart{}
		c.last.Store(&Comparison{})
		return compareEvery
	}
	leader, now := c.leader(ctx, s.Look), time.Now()
	// What the leader has now is what this member has to have at the next comparison: what is under way has time until then.
	c.receipt = c.receipt.Next(now, own, leader.Has)
	c.apart = c.apart.Next(now, namesOf(s.Silent()), leader)
	c.last.Store(&Comparison{Late: c.receipt.Late(), Report: c.apart.Report(now, c.names.Name)})
	return compareEvery
}

// leader that this member hears from, as it says of itself, or nothing.
func (c *Comparer) leader(ctx context.Context, l decision.Look) decision.Member {
	leader, hosts := l.Leader(), map[string]string{}
	for _, p := range l.Group {
		if p.Server == leader {
			hosts[layout.MemberOf(p.Host)] = p.Host
		}
	}
	for _, m := range peers.AskNow(ctx, c.names.Scope, hosts) {
		if m.Server == leader {
			return m
		}
	}
	return decision.Member{}
}

// namesOf members of a group.
func namesOf(group []decision.Peer) []string {
	names := make([]string, 0, len(group))
	for _, p := range group {
		names = append(names, layout.MemberOf(p.Host))
	}
	return names
}
