// SPDX-License-Identifier: Apache-2.0

// Package verification proves that a backup can be restored: it restores it with all that was archived since, where no client reaches it,
// and checks what is there.
package verification

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	frame "github.com/capstan-dev/capstan/images/member/verification"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/continuity"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/restore"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/server"
)

const (
	// assertionLimit is how long an assertion may take.
	assertionLimit = 10 * time.Minute
	// checks of tables at a time.
	checks = 2
)

// A Trial is what is restored, where, and what has to hold.
type Trial struct {
	mysqlmember.Verify

	Repository *repository.Repository
	// Stanza that is verified.
	Stanza string
	// Server is how the server over the data is started.
	Server server.Scratch
	Log    *slog.Logger
}

// Try the latest backup with all that was archived since. The error is a *frame.Failure when the backup is at fault, or one of its
// assertions.
func (t Trial) Try(ctx context.Context) (frame.Passed, error) {
	backups, err := t.Repository.Backups(ctx)
	if err != nil {
		return frame.Passed{}, fail(members.VerifyRestore, "%s does not say what backups there are: %v", t.Repository.Where(), err)
	}
	if err := t.Repository.Unreadable(); err != nil {
		t.Log.Warn("not all backups count", "error", err)
	}
	if len(backups) == 0 {
		return frame.Passed{}, fail(members.VerifyRestore, "there is no backup: see the condition BackupFresh")
	}
	last := backups[len(backups)-1]
	p := frame.Passed{Backup: last.Label, ReplayedTo: last.Ended}
	// Before the logs are listed, so that all that it names must be among them.
	archived, err := t.archived(ctx)
	if err != nil {
		return p, fail(members.VerifyRestore, "%s does not say what was archived: %v", t.Repository.Where(), err)
	}
	logs, err := t.Repository.Logs(ctx)
	if err != nil {
		return p, fail(members.VerifyRestore, "%s does not say what was archived: %v", t.Repository.Where(), err)
	}
	plan, err := restore.Choose(backups, logs, restore.Target{})
	var gap *restore.Gap
	if errors.As(err, &gap) {
		return p, incomplete(gap)
	}
	if err != nil {
		return p, fail(members.VerifyRestore, "%v", err)
	}
	// The last one may be of a history that ended.
	p.Backup, p.ReplayedTo = plan.Backup.Label, plan.Backup.Ended
	begun := time.Now()
	running, result, err := t.restore(ctx, plan)
	if err != nil {
		return p, err
	}
	defer running.Kill()
	p.Took, p.ReplayedTo = time.Since(begun), result.Last
	t.Log.Info("restored", "backup", p.Backup, "took", p.Took.String())
	if err := t.check(ctx, running); err != nil {
		return p, frame.Because(ctx, err)
	}
	if lost := archived.Minus(result.Set); !lost.Empty() && continuity.Same(archived, result.Set) {
		return p, incomplete(fmt.Errorf("the archive had %s, and has it no more", lost))
	}
	p.Assertions = len(t.Assertions)
	return p, nil
}

// archived are the transactions that the archive had when the leader brought something there last.
func (t Trial) archived(ctx context.Context) (gtid.Set, error) {
	text := ""
	if _, err := t.Repository.ReadObject(ctx, layout.Archived(t.Stanza), &text); err != nil {
		return gtid.Set{}, err
	}
	return gtid.Parse(text)
}

func fail(kind, format string, args ...any) error {
	return &frame.Failure{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// incomplete archive.
func incomplete(why error) error {
	return fail(members.VerifyArchive, "%v; to be able to restore what comes after it, take a backup: set spec.backup.now to a new id", why)
}

// restore what was planned, in as much time as it may take.
func (t Trial) restore(ctx context.Context, plan restore.Plan) (*server.Running, restore.Result, error) {
	ctx, cancel := frame.Within(ctx, t.MaxRestoreSeconds)
	defer cancel()
	running, result, err := restore.Restorer{Repository: t.Repository, Server: t.Server, Log: t.Log}.Restore(ctx, plan)
	var lost *restore.Lost
	if errors.As(err, &lost) {
		return nil, result, frame.Because(ctx, incomplete(lost))
	}
	if err != nil {
		return nil, result, frame.Because(ctx, fail(members.VerifyRestore, "the backup cannot be restored: %v", err))
	}
	return running, result, nil
}

// check what was restored: all tables with their indexes, then the assertions.
func (t Trial) check(ctx context.Context, s *server.Running) error {
	tables, err := s.Tables(ctx)
	if err != nil {
		return t.ended(s, err)
	}
	group, all := errgroup.WithContext(ctx)
	group.SetLimit(checks)
	for _, table := range tables {
		group.Go(func() error { return t.checkTable(all, s, table) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	t.Log.Info("checked tables and indexes", "tables", len(tables))
	if len(t.Assertions) == 0 {
		return nil
	}
	if err := s.Verifier(ctx); err != nil {
		return err
	}
	for i, a := range t.Assertions {
		if err := mysql.Assert(ctx, s.Socket(), a.Database, a.SQL, assertionLimit); err != nil {
			return frame.Because(ctx, fail(members.VerifyAssertion, "spec.backup.verify.assertions[%d] in database %q: %v; see whether the data or the assertion is wrong",
				i, a.Database, err))
		}
	}
	t.Log.Info("assertions hold", "number", len(t.Assertions))
	return nil
}

// remedy of damage.
const remedy = "See whether the members' own data is well before the last good backup expires"

func (t Trial) checkTable(ctx context.Context, s *server.Running, table mysql.Table) error {
	wrong, err := s.Check(ctx, table)
	switch {
	case err != nil:
		return t.ended(s, err)
	case wrong != "":
		return fail(members.VerifyData, "the table %s is damaged: %s. %s", table, wrong, remedy)
	}
	return nil
}

// ended is what an error means when the server has ended by itself, which it does when it reads a page that is damaged.
func (t Trial) ended(s *server.Running, err error) error {
	if errors.Is(err, mysql.ErrNoAnswer) && s.EndsWithin(time.Second) {
		return fail(members.VerifyData, "the server ended while it read the data, which is damaged: %s. %s", s.Cause(), remedy)
	}
	return err
}
