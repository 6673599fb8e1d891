// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// unblockEvery is the time between two looks at what blocks the applier, and unblockSoon that on a member that was elected.
const (
	unblockEvery = 5 * time.Second
	unblockSoon  = time.Second
)

// An Unblocker ends sessions of clients that keep this member, as a standby, from applying what the group has committed.
type Unblocker struct {
	server *mysql.Server
	seen   func() Seen
	log    *slog.Logger

	obstacles decision.Obstacles
	last      string
}

// once looks, ends what has blocked for too long, and returns the pause before the next look.
func (u *Unblocker) once(ctx context.Context) time.Duration {
	// One that was elected is read-only until it has applied what it received, and clients that write wait for it.
	s := u.seen()
	own := s.Own()
	if own.State != decision.Online || !s.ReadOnly {
		u.obstacles = decision.Obstacles{}
		return unblockEvery
	}
	elected, pause := own.Role == decision.Primary, unblockEvery
	if elected {
		pause = unblockSoon
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	var blockers []decision.Blocker
	obstacles, err := u.server.Obstacles(ctx)
	if err == nil {
		u.obstacles, blockers = u.obstacles.Next(time.Now(), obstacles, elected)
	}
	for _, b := range blockers {
		ended, failed := u.server.End(ctx, b.Session)
		if failed != nil {
			err = failed // it ends at a later look
		}
		if ended {
			u.log.Warn("ended a session that blocked what the group has committed", "user", b.User, "host", b.Host, "session", b.Session,
				"type", b.Type, "name", b.Name, "seconds", int(b.For.Seconds()), "has", b.Has, "wanted", b.Wants, "transaction", b.Transaction)
		}
	}
	u.note(err)
	return pause
}

// note an error, if it is another one than before.
func (u *Unblocker) note(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != u.last {
		u.log.Warn("cannot see to it that clients do not block the applier, trying on", "error", text)
	}
	u.last = text
}
