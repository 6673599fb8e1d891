// SPDX-License-Identifier: Apache-2.0

// Package following reports how a standby cluster is: what it has replayed of the archive that it follows, and after its promotion,
// whether the former primary still writes.
package following

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/source"
)

const (
	// every is the time between two looks, and promotedEvery that after the promotion.
	every, promotedEvery = 15 * time.Second, time.Minute
	// limit of one look.
	limit = time.Minute
	// activeFor is how long a primary counts as running since it archived last. One that writes archives every minute.
	activeFor = 2 * time.Minute
	// behindFor is how long what is archived may wait to be replayed.
	behindFor = 3 * time.Minute
	// replayedEvery bounds how often the report changes although nothing but the time does.
	replayedEvery = 5 * time.Minute
)

// A Keeper reports while its member has the leader's lock.
type Keeper struct {
	Pod string
	// Holder of the leader's lock.
	Holder   func() string
	Reporter *report.Reporter
	Log      *slog.Logger

	seen seen
}

// seen is what was observed of the archive before.
type seen struct {
	// last segment of the archive, and since when it is the last.
	last string
	grew time.Time
	// behind is since when something archived waits to be replayed.
	behind time.Time
	// report that was made before.
	report members.FollowReport
}

// A server is where this member's own is.
type server struct {
	recovery bool
	system   string
	timeline int64
	// replayed is the place up to which the log is replayed, and at when the last transaction was committed that is.
	replayed pgbackrest.LSN
	at       *time.Time
}

// Once looks at archive and server, and returns the pause before the next time.
func (k *Keeper) Once(ctx context.Context) time.Duration {
	config, err := layout.ReadConfig()
	if err != nil || config.From == nil || !config.From.Follow || k.Holder() != k.Pod {
		k.seen = seen{}
		k.Reporter.Change(func(r *members.Report) { r.Following = members.FollowReport{} })
		return every
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	own, err := ask(ctx)
	if err != nil {
		return every // what is wrong with the server is reported by others
	}
	if own.recovery {
		k.Reporter.Clear(members.ReasonRestoreFailed)
	}
	all, err := stanzas(ctx, *config.From)
	now := k.seen.next(own, all, *config.From, err, time.Now())
	if now.State != k.seen.report.State {
		k.Log.Info("looked at the archive that is followed", "state", now.State, "message", now.Message, "replayed", own.replayed.String())
	}
	k.seen.report = now
	k.Reporter.Change(func(r *members.Report) { r.Following = now })
	if own.recovery {
		return every
	}
	return promotedEvery
}

func stanzas(ctx context.Context, from pgmember.Source) ([]pgbackrest.Stanza, error) {
	opened, err := source.Open(ctx, from)
	if err != nil {
		return nil, err
	}
	return opened.Stanzas(ctx, layout.PgBackRestSource+".all")
}

// next report, by where the server is and what the repository has, or why it cannot be read.
func (s *seen) next(own server, all []pgbackrest.Stanza, from pgmember.Source, err error, now time.Time) members.FollowReport {
	var stanza pgbackrest.Stanza
	if err == nil {
		stanza, err = source.Followed(all, from, own.system)
	}
	if err != nil {
		s.behind = time.Time{}
		if !own.recovery {
			return s.report // a former primary whose archive is gone does not write there
		}
		out := s.replayed(own)
		out.State, out.Message, out.Stanza = members.FollowUnreachable, said(err), s.report.Stanza
		out.Active = s.last != "" && now.Sub(s.grew) < activeFor
		return out
	}
	last := stanza.LastSegment()
	if last != s.last {
		s.last, s.grew = last, now
	}
	if !own.recovery {
		return s.promoted(pgmember.FolderData, own, stanza)
	}
	out := s.replayed(own)
	out.State, out.Stanza, out.Active = members.FollowCaughtUp, stanza.Name, now.Sub(s.grew) < activeFor
	if own.replayed >= stanza.Archived() {
		s.behind = time.Time{}
	} else if s.behind.IsZero() {
		s.behind = now
	}
	latest := pgbackrest.Latest(all)
	switch {
	case latest.Name != stanza.Name && from.Stanza == "":
		out.State = members.FollowReplaced
		out.Message = fmt.Sprintf("the primary has backed up under stanza %s since it was restored or upgraded, and this Database follows stanza %s, which ended: "+
			"make another standby of it", latest.Name, stanza.Name)
	case !s.behind.IsZero() && now.Sub(s.behind) >= behindFor:
		out.State = members.FollowBehind
		out.Message = fmt.Sprintf("the archive has had more than what is replayed since %s: see the log of the leader's pod", s.behind.UTC().Format(time.RFC3339))
	}
	return out
}

// replayed is the time of the last transaction, which stays the one before for some minutes.
func (s *seen) replayed(own server) members.FollowReport {
	if own.at == nil {
		return members.FollowReport{}
	}
	before, err := time.Parse(time.RFC3339, s.report.ReplayedTo)
	if err == nil && own.at.Sub(before) < replayedEvery {
		return members.FollowReport{ReplayedTo: s.report.ReplayedTo}
	}
	return members.FollowReport{ReplayedTo: own.at.UTC().Format(time.RFC3339)}
}

// pageSize of the write-ahead log. A timeline that begins with a segment may begin after the head of its first page.
const pageSize = 8 << 10

// promoted reports of a former primary. It still writes if its archive goes beyond the place where this Database's timeline began, or has a
// timeline that this Database never had.
func (s *seen) promoted(data string, own server, stanza pgbackrest.Stanza) members.FollowReport {
	out := members.FollowReport{Stanza: stanza.Name}
	timeline := pgbackrest.TimelineOf(s.last)
	at, known := fork(data, own.timeline, timeline)
	if s.last == "" || known && stanza.Archived()+pageSize < at {
		return out
	}
	out.State = members.FollowSecondPrimary
	out.Message = fmt.Sprintf("the former primary has archived segment %s of timeline %d under stanza %s, and this Database was promoted before", s.last, timeline, stanza.Name)
	if known {
		out.Message += fmt.Sprintf(" at %s of the same timeline", at)
	}
	return out
}

// fork is where a timeline branched off an earlier one, by its history in a data folder, and whether it did.
func fork(data string, timeline, earlier int64) (pgbackrest.LSN, bool) {
	raw, err := os.ReadFile(filepath.Join(data, "pg_wal", fmt.Sprintf("%08X.history", timeline)))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if n, err := strconv.ParseInt(fields[0], 10, 64); err != nil || n != earlier {
			continue
		}
		at, err := pgbackrest.ParseLSN(fields[1])
		return at, err == nil
	}
	return 0, false
}

// ask the server where it is.
func ask(ctx context.Context) (server, error) {
	const query = `select pg_is_in_recovery(), (select system_identifier::text from pg_control_system()), coalesce(pg_last_wal_replay_lsn()::text, '0/0'),
		pg_last_xact_replay_timestamp(),
		case when pg_is_in_recovery() then 0 else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint end`
	var s server
	var replayed string
	ok, err := managed.Ask(ctx, pgmember.FolderSocket, pgmember.PortPostgres, query, nil, &s.recovery, &s.system, &replayed, &s.at, &s.timeline)
	if err != nil || !ok {
		return s, errors.Join(errors.New("cannot find out where the server is"), err)
	}
	s.replayed, err = pgbackrest.ParseLSN(replayed)
	return s, err
}

// said is why the repository cannot be read, without what changes with each try.
func said(err error) string {
	var failure *pgbackrest.Failure
	if errors.As(err, &failure) {
		return failure.Said
	}
	return err.Error()
}
