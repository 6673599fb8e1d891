// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/continuity"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

const (
	// rotateAfter is how long a binary log with transactions is written at most before it is brought to the archive.
	rotateAfter = time.Minute
	// backlogEvery is the time between two looks at what waits while one log is on its way. A leader can write more than a bucket takes for
	// much longer than one try lasts.
	backlogEvery = 2 * time.Second
	// saveLimit and leastRate are how long one log may take: some time, and more when it is large.
	saveLimit = time.Minute
	leastRate = 1 << 20
	// readEvery is how often a leader reads what the archive has, and a standby while it waits to remove logs.
	readEvery = 10 * time.Minute
	// firstCheck is how long after it became the leader a member looks for missing transactions first.
	firstCheck = 2 * time.Minute
)

var errFull = errors.New("more waits for the archive than may")

// An archiver brings binary logs to the archive and removes them from the volume.
type archiver struct {
	server Server
	reader reader
	// disk is how full the volume is, as volume.Class says it.
	disk func() string
	log  *slog.Logger

	// archived has the transactions that the archive of the stanza had at read, and those that were brought there since.
	stanza   string
	archived gtid.Set
	read     time.Time
	// unwritten reports that something was brought there since that was last written down for verifications.
	unwritten bool
	// since when this member is the leader; zero for a standby.
	since time.Time
}

// forget what the archive has.
func (a *archiver) forget() {
	a.stanza, a.archived, a.read, a.unwritten, a.since = "", gtid.Set{}, time.Time{}, false, time.Time{}
}

// follow a change of the role: what the archive has is read again by a new leader at once.
func (a *archiver) follow(stanza string, leads bool) {
	if a.stanza != stanza || leads == a.since.IsZero() {
		a.stanza, a.read, a.since = stanza, time.Time{}, time.Time{}
		if leads {
			a.since = time.Now()
		}
	}
}

// learn what needs not be brought to the archive: what it has, and what the oldest backup has, because nothing before that is kept.
func (a *archiver) learn(ctx context.Context, r Repository, h held) error {
	logs, err := r.Logs(ctx)
	if err != nil {
		return err
	}
	all := make([]continuity.Log, 0, len(logs))
	for _, l := range logs {
		all = append(all, continuity.Log{Previous: l.Previous, Set: l.Set})
	}
	backups, err := r.Backups(ctx)
	if err != nil {
		return err
	}
	if len(backups) > 0 {
		all = append(all, continuity.Log{Set: backups[0].Set})
	}
	if !a.since.IsZero() {
		// A standby may be behind, and counts all.
		all = continuity.Of(h.Executed.Union(h.Received), all)
	}
	a.archived, a.read = continuity.Archived(all), time.Now()
	return nil
}

// rotate the log that is being written, if it has something that should be in the archive by now, and read the logs again.
func (a *archiver) rotate(ctx context.Context, h held, atOnce bool) (held, error) {
	if h.open.Empty() || !atOnce && time.Since(h.begun) < rotateAfter {
		return h, nil
	}
	if err := a.server.Rotate(ctx); err != nil {
		return h, err
	}
	return a.reader.read(ctx, a.server)
}

// knows reports whether it is known what the archive has. Only the leader adds to it, so a standby has to read it again.
func (a *archiver) knows() bool {
	return !a.read.IsZero() && (!a.since.IsZero() || time.Since(a.read) < 2*readEvery)
}

// guard what may take long: the context ends with errFull when meanwhile more waits than may.
func (a *archiver) guard(ctx context.Context, h held, s mysqlmember.Backup) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	archived, knows := a.archived, a.knows()
	// A query that is under way when the context ends would cost its session.
	asking := context.WithoutCancel(ctx)
	go func() {
		for loop.Sleep(ctx, backlogEvery); ctx.Err() == nil; loop.Sleep(ctx, backlogEvery) {
			one, end := context.WithTimeout(asking, serverLimit)
			logs, err := a.server.Logs(one)
			end()
			if err == nil && a.full(s, knows, waiting(archived, held{Logs: logs, closed: h.closed, open: h.open})) {
				cancel(errFull)
			}
		}
	}()
	return ctx, cancel
}

// bring all closed logs to the archive that have something which it lacks. That is read again once in a while: an index may be lost, or removed
// by an expiry that did not see the last log in it.
func (a *archiver) bring(ctx context.Context, r Repository, h held) error {
	if time.Since(a.read) >= readEvery {
		learning, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if err := a.learn(learning, r, h); err != nil {
			return err
		}
	}
	for _, f := range h.closed {
		if a.archived.Contains(f.Set) {
			continue
		}
		if err := a.save(ctx, r, h.Server, f); err != nil {
			return fmt.Errorf("cannot archive %s: %w", f.name, err)
		}
		a.archived, a.unwritten = a.archived.Union(f.Set), true
	}
	if !a.unwritten {
		return nil
	}
	// For verifications: they cannot ask the leader.
	if err := r.WriteObject(ctx, layout.Archived(a.stanza), a.archived.String()); err != nil {
		return err
	}
	a.unwritten = false
	return nil
}

// save one closed log of a server.
func (a *archiver) save(ctx context.Context, r Repository, server string, f file) error {
	ctx, cancel := context.WithTimeout(ctx, saveLimit+time.Duration(f.size/leastRate)*time.Second)
	defer cancel()
	l := repository.Log{Server: server, File: f.name, Previous: f.Previous, Set: f.Set, First: f.First, Last: f.Last}
	path := filepath.Join(a.reader.folder, f.name)
	err := r.SaveLog(ctx, path, l)
	if errors.Is(err, repository.ErrDiffers) {
		// This server began its logs again, after it copied the data of another one.
		base, number, _ := strings.Cut(f.name, ".")
		l.File = fmt.Sprintf("%s-%d.%s", base, f.Began.Unix(), number)
		err = r.SaveLog(ctx, path, l)
	}
	return err
}

// waiting bytes for the archive. What was written since the logs were read waits, too.
func waiting(archived gtid.Set, h held) int64 {
	known := map[string]bool{}
	var n int64
	for _, f := range h.closed {
		known[f.name] = true
		if !archived.Contains(f.Set) {
			n += f.size
		}
	}
	for i, f := range h.Files {
		if !known[f.Name] && (i < len(h.Files)-1 || !h.open.Empty()) {
			n += f.Size
		}
	}
	return n
}

// full reports whether more waits for the archive than may. Unless the spec has a bound of its own, logs wait as long as the volume has room
// for them. So they do as long as it is not known what the archive has, because what seems to wait may be there.
func (a *archiver) full(s mysqlmember.Backup, knows bool, waits int64) bool {
	return waits > s.Queue && (!s.UntilLow && knows || a.disk() != volume.DiskOk)
}

// tidy removes logs that the archive has and no other member needs any more. On a volume with next to no room, logs that the archive has go
// although other members may need them: these can copy the data instead, and without room writes stop. Then, while more wait than may, the oldest
// of them go. It reports whether it dropped any that the archive lacks, as far as that is known: else what is lost is found once it is.
func (a *archiver) tidy(ctx context.Context, h held, s mysqlmember.Backup) (dropped bool, err error) {
	keep := 0
	for keep < len(h.closed) && h.Expire > 0 && time.Since(h.closed[keep].written) > h.Expire && a.archived.Contains(h.closed[keep].Set) {
		keep++
	}
	if err := a.purge(ctx, h, keep); err != nil {
		return false, err
	}
	for keep < len(h.closed) && a.archived.Contains(h.closed[keep].Set) && a.disk() == volume.DiskFull {
		keep++
		if err := a.purge(ctx, h, keep); err != nil {
			return false, err
		}
		a.log.Warn("removed a binary log that is archived, because the volume has no room", "file", h.closed[keep-1].name)
	}
	waits, knows := waiting(a.archived, h), a.knows()
	for i := keep; i < len(h.closed) && a.full(s, knows, waits); i++ {
		lacks := !a.archived.Contains(h.closed[i].Set)
		if err := a.purge(ctx, h, i+1); err != nil {
			return dropped, err
		}
		if lacks {
			dropped = knows
			waits -= h.closed[i].size
			a.log.Warn("dropped a binary log that waits for the archive, because too many do", "file", h.closed[i].name,
				"transactions", h.closed[i].Set.String(), "archive known", knows)
		}
	}
	return dropped, nil
}

// purge the first n closed logs.
func (a *archiver) purge(ctx context.Context, h held, n int) error {
	if n == 0 {
		return nil
	}
	return a.server.PurgeBefore(ctx, h.Files[n].Name)
}

// needs reports whether a standby has to know what the archive has: it has logs to remove that the archive lacked when it was read.
func (a *archiver) needs(h held, s mysqlmember.Backup) bool {
	if !a.read.IsZero() && time.Since(a.read) < readEvery {
		return false
	}
	for _, f := range h.closed {
		if !a.archived.Contains(f.Set) && (h.Expire > 0 && time.Since(f.written) > h.Expire || waiting(a.archived, h) > s.Queue || a.disk() == volume.DiskFull) {
			return true
		}
	}
	return false
}

// lost transactions, which will never be in the archive and are in no backup that a restore begins with. Nothing is lost as long as there is
// no backup, or it is not known what the archive has.
func (a *archiver) lost(h held, last *repository.Backup) gtid.Set {
	if last == nil || a.read.IsZero() || time.Since(a.since) < firstCheck {
		return gtid.Set{}
	}
	if !h.Executed.Union(h.Received).Contains(last.Set) {
		return h.Executed // the backup is of a history that ended, and nothing that comes can be restored from it
	}
	return continuity.Gap(h.Executed, last.Set, a.archived, h.all())
}
