// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/handover"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/peers"
)

const (
	// leastRoom is what a server needs for what it writes next, in bytes.
	leastRoom = 16 << 20
	// fullFor is how long a leader has less before it hands over, and handLimit how long that may take.
	fullFor   = 10 * time.Second
	handLimit = 5 * time.Second
)

// full reports whether the volume has no room for what a server writes next.
func full() bool {
	u, err := volume.Measure(mysqlmember.FolderVolume)
	return err == nil && u.Free < leastRoom
}

// yield to a member whose volume has room. A server with a full volume does not fail: its commits wait until there is room, and the group keeps
// it as its leader. When all volumes are full nothing is better than to wait.
func (k *Keeper) yield(ctx context.Context, l decision.Look) {
	if l.Own().Role != decision.Primary || !full() {
		k.full = time.Time{}
		return
	}
	if k.full.IsZero() {
		k.full = time.Now()
	}
	if time.Since(k.full) < fullFor {
		return
	}
	next := l.Roomier(peers.AskNow(ctx, k.names.Scope, othersOf(l)))
	if next == "" {
		return
	}
	k.full = time.Time{}
	k.log.Warn("the volume is full, handing over to a member that has room", "server", next)
	ctx, cancel := context.WithTimeout(ctx, handLimit)
	defer cancel()
	if err := handover.Elect(ctx, k.server, next); err != nil {
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
