// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/postmaster"
)

const (
	// leashEvery is the time between two looks.
	leashEvery = time.Second
	// leashMargin is how long before the lock runs out the leader stops. Its members may have observed the last renewal earlier
	// than this one did.
	leashMargin = 2 * time.Second
	// leashRead is how old what is known of Patroni's configuration may be, and leashAsk how long the API server gets to answer.
	leashRead = 30 * time.Second
	leashAsk  = time.Second
	// shortestTTL is what Patroni accepts at least. It counts as long as the configuration is unknown.
	shortestTTL = 20 * time.Second
)

// A Leash ends a PostgreSQL that takes writes while no Patroni renews the leader's lock for it: before the lock runs out, and
// another member is promoted. Patroni does the same while it works.
type Leash struct {
	pod string
	// works reports whether Patroni runs, answers, and its loop runs.
	works func() bool
	// lock is who holds the leader's lock, since when it was not renewed, and whether that is known.
	lock func() (holder string, renewed time.Time, known bool)
	// lifetime of the lock; 0 while no member may be promoted.
	lifetime func(context.Context) (time.Duration, error)
	log      *slog.Logger

	// ttl and paused as they were read.
	ttl    time.Duration
	paused bool
	read   time.Time
	// failing is since when Patroni does not work.
	failing time.Time
}

// once looks, and returns the pause before the next look.
func (l *Leash) once(ctx context.Context) time.Duration {
	works, now := l.works(), time.Now()
	switch {
	case works:
		l.failing = time.Time{}
	case l.failing.IsZero():
		l.failing = now
	}
	l.configure(ctx)
	if works {
		return leashEvery
	}
	holder, renewed, known := l.lock()
	if !known {
		holder, renewed = l.pod, l.failing
	}
	if !l.ends(holder, renewed, now) {
		return leashEvery
	}
	// One that stops takes no more writes, and has to end in good order.
	if _, running := postmaster.Find(pgmember.FolderData); !running || postmaster.IsStopping(pgmember.FolderData) {
		return leashEvery
	}
	if writes, err := pgdata.TakesWrites(pgmember.FolderData); err != nil || !writes {
		return leashEvery
	}
	l.log.Error("stopping PostgreSQL: it takes writes, and no Patroni renews its lock", "holder", holder, "failing", now.Sub(l.failing).Round(time.Second).String())
	postmaster.Kill(pgmember.FolderData)
	return leashEvery
}

// ends reports whether a leader without Patroni has to end now: its lock is about to run out, or is another member's.
func (l *Leash) ends(holder string, renewed, now time.Time) bool {
	switch {
	case l.paused:
		return false // no member is promoted
	case holder == l.pod:
		return now.Sub(renewed) >= l.ttl-leashMargin
	case holder == "":
		// It was released, or there was none yet: Patroni may have ended while it made a new Database.
		return now.Sub(l.failing) >= leashMargin
	}
	return true
}

// configure by what Patroni's configuration says, when what is known is old, or Patroni does not work.
func (l *Leash) configure(ctx context.Context) {
	if l.ttl == 0 {
		l.ttl = shortestTTL
	}
	old := leashRead
	if !l.failing.IsZero() {
		old = 2 * leashAsk
	}
	if time.Since(l.read) < old {
		return
	}
	l.read = time.Now()
	ctx, cancel := context.WithTimeout(ctx, leashAsk)
	defer cancel()
	ttl, err := l.lifetime(ctx)
	if err != nil {
		return // what was known last counts
	}
	if l.paused = ttl == 0; !l.paused {
		l.ttl = max(ttl, shortestTTL)
	}
}
