// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/process"
)

// How often archiving is looked at, and what backups there are: without a reason, and for a while after a backup ended, because the
// bucket has it a moment later.
const (
	archiveEvery = 15 * time.Second
	infoEvery    = 10 * time.Minute
	infoSoon     = 3 * time.Minute
	infoLimit    = time.Minute
	hastenFor    = 3 * time.Minute
)

// backups keeps pgBackRest's configuration as what is mounted says, lets its server run, and tells how archive and backups are.
func (m *member) backups(ctx context.Context) error {
	b := &backups{member: m}
	defer b.end()
	for {
		b.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-m.backedUp:
			b.soon = time.Now().Add(infoSoon)
		case <-m.archived:
		case <-b.ended():
			sleep(ctx, firstPause)
		case <-time.After(b.pause()):
		}
	}
}

// backups of a member.
type backups struct {
	*member

	server *process.Child
	// asked is when it was last asked what backups there are, soon until when it is asked often, and leading whether this member led
	// then.
	asked, soon time.Time
	leading     bool
	facts       members.BackupReport
	complained  string
	// session is when who takes a backup was first seen at this member.
	session time.Time
	points  points
	// verification is what verifications came to, of looked ago.
	verification members.VerificationReport
	looked       time.Time
	// repository is how full the volume of backups is, as of measured.
	repository members.RepositoryReport
	measured   time.Time
	// waits tells that the server would run if there were certificates.
	waits bool
}

// pause until the next look: a short one until the server of pgBackRest runs.
func (b *backups) pause() time.Duration {
	if b.waits {
		return firstPause
	}
	return archiveEvery
}

// ended is closed when the server has ended.
func (b *backups) ended() <-chan struct{} {
	if b.server == nil {
		return nil
	}
	return b.server.Done()
}

// end the server.
func (b *backups) end() {
	if b.server != nil {
		_ = b.server.Signal(syscall.SIGTERM)
		<-b.server.Done()
		b.server = nil
	}
}

// look once.
func (b *backups) look(ctx context.Context) {
	if b.leads.Load() {
		b.told.clear(restoreFailed)
	}
	w, err := pgbackrest.ReadWanted(layout.Wanted)
	if err != nil {
		b.complain(err)
		return
	}
	if w.Backup == nil || !w.Backup.Enabled {
		b.end()
		b.facts, b.asked, b.points = members.BackupReport{}, time.Time{}, points{}
		b.told.backup(members.BackupReport{}, nil)
		return
	}
	err = b.configure(*w.Backup)
	b.complain(err)
	b.hasten(ctx)
	// A bucket that does not answer takes its time to be asked.
	b.tell(*w.Backup, err)
	b.ask(ctx, *w.Backup, err)
	b.verified(ctx, *w.Backup)
	b.fills(ctx, *w.Backup)
	b.name(ctx, *w.Backup)
	b.tell(*w.Backup, err)
}

// complain once about the same.
func (b *backups) complain(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != b.complained && text != "" {
		b.log.Warn("backups do not work", "error", text)
	}
	b.complained = text
}

// configure pgBackRest, and let its server run and read what changed. What could not be read anew stays.
func (b *backups) configure(s pgbackrest.Settings) error {
	repository, err := repositoryOf(s)
	if err != nil {
		return err
	}
	folders := pgbackrest.Folders{Data: layout.Data, Socket: layout.Postgres, Spool: layout.Spool, Lock: layout.Lock}
	for _, dir := range []string{folders.Spool, folders.Lock} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot prepare folders of backups: %w", err)
		}
	}
	tls := pgbackrest.TLS{Cert: layout.TLS + "/members.crt", Key: layout.TLS + "/members.key", CA: layout.TLS + "/members-ca.crt", Address: b.IP}
	changed, err := pgbackrest.Member(s, repository, folders, tls).Write(layout.PgBackRest)
	if err != nil {
		return err
	}
	if changed {
		// Whether the bucket answers to what is new is not to be known in ten minutes only.
		b.asked = time.Time{}
	}
	if b.server != nil {
		select {
		case <-b.server.Done():
			b.log.Warn("the server of pgBackRest ended", "result", fmt.Sprint(b.server.Err()))
			b.server = nil
		default:
			if changed {
				return b.server.Signal(syscall.SIGHUP)
			}
			return nil
		}
	}
	_, err = os.Stat(tls.Cert)
	// Copies of certificates come when the member may run.
	if b.waits = err != nil; b.waits {
		return nil
	}
	b.server, err = process.Start(pgbackrest.Program, nil, "--config="+layout.PgBackRest, "server")
	return err
}

// hasten a backup that reads this member while it follows: it waits for a checkpoint here that has what the leader wrote at its
// begin, and by itself PostgreSQL takes minutes for that.
func (b *backups) hasten(ctx context.Context) {
	if b.server == nil || b.leads.Load() || len(process.Descendants(b.server.PID())) == 0 {
		b.session = time.Time{}
		return
	}
	if b.session.IsZero() {
		b.session = time.Now()
	}
	if time.Since(b.session) > hastenFor {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, infoLimit)
	defer cancel()
	if err := managed.Checkpoint(ctx, layout.Postgres); err != nil {
		b.log.Warn("a backup of this member waits for a checkpoint", "error", err)
	}
}

// tell how backups are.
func (b *backups) tell(s pgbackrest.Settings, trouble error) {
	r := b.report(trouble)
	b.told.backup(r, b.points.restorable(r.Earliest, s.RestorePoint))
}

// report how backups are. Every member tells what it let go; all else the leader tells.
func (b *backups) report(trouble error) members.BackupReport {
	archived, err := pgbackrest.ReadArchived(layout.Archive)
	if err != nil {
		b.log.Warn("cannot tell how archiving is", "error", err)
	}
	if !b.leads.Load() {
		return members.BackupReport{Dropped: stamp(archived.Dropped)}
	}
	out := b.facts
	out.Verification, out.RestorePointWait, out.Repository = b.verification, b.points.wait, b.repository
	out.Dropped, out.Archive = stamp(archived.Dropped), members.ArchiveOK
	if archived.Failing != nil {
		out.Archive, out.Since, out.Message = members.ArchiveFailing, stamp(archived.Failing), archived.Message
	}
	var missing *pgbackrest.NotReady
	if errors.As(trouble, &missing) {
		out.Archive, out.Message = members.ArchiveFailing, missing.Message
		out.Key = missing.Key
	}
	return out
}

// ask the bucket what backups there are, if this member leads and it is time to.
func (b *backups) ask(ctx context.Context, s pgbackrest.Settings, trouble error) {
	led := b.leading
	b.leading = b.leads.Load()
	now := time.Now()
	if !b.leading || led && now.Sub(b.asked) < infoEvery && now.After(b.soon) {
		return
	}
	b.asked = now
	if trouble == nil {
		trouble = b.read(ctx, s)
	}
	if trouble != nil {
		// What was known stays, and is told as what it is. A bucket that comes soon is not waited for until the next time.
		b.facts.Unread, b.facts.Key = trouble.Error(), keyTrouble(trouble)
		b.soon = time.Now().Add(infoSoon)
	}
}

// read what backups there are. A stanza that is missing is made: without it nothing can be archived, and one of other data is never
// overwritten.
func (b *backups) read(ctx context.Context, s pgbackrest.Settings) error {
	ctx, cancel := context.WithTimeout(ctx, infoLimit)
	defer cancel()
	run := pgbackrest.Runner{Program: pgbackrest.Program, Config: layout.PgBackRest}
	all, err := run.Info(ctx, s.Stanza)
	if err != nil {
		return err
	}
	if pgbackrest.Missing(all) {
		if err := createStanza(ctx, run, s); err != nil {
			return err
		}
	}
	facts := members.BackupReport{Asked: true}
	if len(all) > 0 && len(all[0].Backups) > 0 {
		list := all[0].Backups
		first, last := list[0], list[len(list)-1]
		facts.Label, facts.Type, facts.Size, facts.Added = last.Label, last.Type, last.Info.Size, last.Info.Repository.Delta
		facts.Began, facts.Ended = last.Began().Format(time.RFC3339), last.Ended().Format(time.RFC3339)
		facts.Earliest = first.Ended().Format(time.RFC3339)
	}
	b.facts = facts
	return nil
}

// stamp of a time, or nothing.
func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
