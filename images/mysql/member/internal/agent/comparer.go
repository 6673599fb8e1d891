// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/peers"
)

// compareEvery is the time between two comparisons of a replica with its leader.
const compareEvery = 10 * time.Second

// A Comparer asks the leader of a replica what it has. Its loop is its own, because a leader that does not answer must not delay the Keeper.
type Comparer struct {
	scope string
	seen  func() Seen

	receipt decision.Receipt
	late    atomic.Int64
}

// Late is for how long this member has not received something that its leader has.
func (c *Comparer) Late() time.Duration { return time.Duration(c.late.Load()) }

// once compares, and returns the pause before the next time.
func (c *Comparer) once(ctx context.Context) time.Duration {
	s := c.seen()
	own, err := has(s.Look)
	if at := s.Own(); err != nil || at.State != decision.Online || at.Role != decision.Secondary {
		c.receipt = decision.Receipt{}
	} else {
		// What the leader has now is what this member has to have at the next comparison: what is under way has time until then.
		c.receipt = c.receipt.Next(time.Now(), own, c.leaderHas(ctx, s.Look))
	}
	c.late.Store(int64(c.receipt.Late()))
	return compareEvery
}

// leaderHas is what the leader has that this member hears from, or nothing.
func (c *Comparer) leaderHas(ctx context.Context, l decision.Look) gtid.Set {
	leader, hosts := l.Leader(), map[string]string{}
	for _, p := range l.Group {
		if p.Server == leader {
			hosts[layout.MemberOf(p.Host)] = p.Host
		}
	}
	for _, m := range peers.AskNow(ctx, c.scope, hosts) {
		if m.Server == leader {
			return m.Has
		}
	}
	return gtid.Set{}
}
