// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/handover"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/peers"
)

// handLimit is how long a leader with a full volume may take to hand over.
const handLimit = 5 * time.Second

// yield to a member whose volume has room. A server with a full volume does not fail: its commits wait until there is room, and the group keeps
// it as its leader. When all volumes are full nothing is better than to wait.
func (k *Keeper) yield(ctx context.Context, l decision.Look) {
	if l.Own().Role != decision.Primary || !k.full() {
		return
	}
	next := l.Roomier(peers.AskNow(ctx, k.names.Scope, othersOf(l)))
	if next == "" {
		return
	}
	k.log.Warn("the volume is full, handing over to a member that has room", "server", next)
	ctx, cancel := context.WithTimeout(ctx, handLimit)
	defer cancel()
	err := handover.Elect(ctx, k.server, next)
	switch code := mysql.Code(err); {
	case err == nil:
	case code != 0 && code != mysql.TooManySessions:
		// The group refuses that member as its leader, such as one of a later version.
		k.note(err.Error())
	default:
		// Nothing ends a commit that waits for room. The group has what it committed.
		k.log.Warn("cannot hand over, killing the server", "error", err)
		if child := k.child(); child != nil {
			_ = child.Signal(syscall.SIGKILL) // it may have ended by itself
		}
	}
}

// othersOf a group: their hosts by name.
func othersOf(l decision.Look) map[string]string {
	hosts := map[string]string{}
	for _, p := range l.Group {
		if p.Server != l.Server {
			hosts[layout.MemberOf(p.Host)] = p.Host
		}
	}
	return hosts
}
