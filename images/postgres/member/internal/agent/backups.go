// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/repository"
)

// How often archiving is checked, and what backups there are: by itself, and for a while after a backup ended, because the
// repository has it a moment later.
const (
	archiveEvery = 15 * time.Second
	infoEvery    = 10 * time.Minute
	infoSoon     = 3 * time.Minute
	infoLimit    = time.Minute
	hastenFor    = 3 * time.Minute
)

// Backups keeps pgBackRest's configuration as the mounted files say, runs its server, and reports how archive and backups are.
type Backups struct {
	ip                        string
	role                      Leadership
	reporter                  *Reporter
	backupEnded, archiveNoted loop.Wakeup
	log                       *slog.Logger

	server *process.Child
	// waits reports whether the server would run if there were certificates.
	waits bool
	// facts are what the repository has, as of asked. Until soon this member reads it often. `led` reports whether this
	// member was the leader then.
	facts       members.BackupReport
	asked, soon time.Time
	led         bool
	last        string
	// session is when a pod that takes a backup was first observed at this member.
	session time.Time
	points  points
	// verification are the results of verifications, as of verified.
	verification members.VerificationReport
	verified     time.Time
	// repository is how full the volume of backups is, as of measured.
	repository members.RepositoryReport
	measured   time.Time
}

// Run until the context ends.
func (b *Backups) Run(ctx context.Context) error {
	defer b.end()
	for {
		b.once(ctx)
		pause := archiveEvery
		if b.waits {
			pause = firstPause
		}
		var ended <-chan struct{}
		if b.server != nil {
			ended = b.server.Done()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-b.backupEnded:
			b.soon = time.Now().Add(infoSoon)
		case <-b.archiveNoted:
		case <-ended:
			loop.Sleep(ctx, firstPause)
		case <-time.After(pause):
		}
	}
}

// end the server.
func (b *Backups) end() {
	if b.server != nil {
		_ = b.server.Signal(syscall.SIGTERM)
		<-b.server.Done()
		b.server = nil
	}
}

// once does everything that is due.
func (b *Backups) once(ctx context.Context) {
	if b.role.Leads() {
		b.reporter.Clear(members.ReasonRestoreFailed)
	}
	config, err := layout.ReadConfig()
	if err != nil {
		b.warn(err)
		return
	}
	if config.Backup == nil || !config.Backup.Enabled {
		b.end()
		b.facts, b.asked, b.points = members.BackupReport{}, time.Time{}, points{}
		b.reporter.change(func(r *members.Report) { r.Backup, r.RestorePoints = members.BackupReport{}, nil })
		return
	}
	s := *config.Backup
	err = b.configure(s)
	b.warn(err)
	b.hasten(ctx)
	b.write(s, err) // a repository that does not answer takes its time below
	b.ask(ctx, s, err)
	b.readVerification(ctx, s)
	b.measure(ctx, s)
	b.name(ctx, s)
	b.write(s, err)
}

// write how backups are to the report.
func (b *Backups) write(s pgmember.Backup, trouble error) {
	backup := b.report(trouble)
	points := b.points.restorable(backup.Earliest, s.RestorePoint)
	b.reporter.change(func(r *members.Report) { r.Backup, r.RestorePoints = backup, points })
}

// warn of an error, once while it stays the same.
func (b *Backups) warn(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != b.last && text != "" {
		b.log.Warn("backups do not work", "error", text)
	}
	b.last = text
}

// configure pgBackRest, run its server, and let it read what changed. What could not be read again stays.
func (b *Backups) configure(s pgmember.Backup) error {
	where, err := pgbackrest.Configured(s)
	if err != nil {
		return err
	}
	folders := pgbackrest.Folders{Data: pgmember.FolderData, Socket: pgmember.FolderSocket, Spool: layout.Spool, Lock: layout.Lock}
	for _, dir := range []string{folders.Spool, folders.Lock} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot prepare folders of backups: %w", err)
		}
	}
	tls := pgbackrest.TLS{Cert: pgmember.FileMemberCert, Key: pgmember.FileMemberKey, CA: pgmember.FileMemberCA, Address: b.ip}
	changed, err := pgbackrest.Member(s, where, folders, tls).Write(layout.PgBackRest)
	if err != nil {
		return err
	}
	if changed {
		// Check the new configuration now instead of after infoEvery.
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

// hasten a backup that reads this member while it is a standby: it waits for a checkpoint here that has what the leader wrote
// when the backup began, and by itself PostgreSQL takes minutes for that.
func (b *Backups) hasten(ctx context.Context) {
	if b.server == nil || b.role.Leads() || len(process.Descendants(b.server.PID())) == 0 {
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
	if err := managed.Checkpoint(ctx, pgmember.FolderSocket); err != nil {
		b.log.Warn("a backup of this member waits for a checkpoint", "error", err)
	}
}

// report how backups are. Every member reports what it dropped; the leader reports everything else.
func (b *Backups) report(trouble error) members.BackupReport {
	archived, err := pgbackrest.ReadArchived(layout.Archive)
	if err != nil {
		b.log.Warn("cannot read the result of archiving", "error", err)
	}
	if !b.role.Leads() {
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

// ask the repository what backups there are, if this member is the leader and it is due.
func (b *Backups) ask(ctx context.Context, s pgmember.Backup, trouble error) {
	led := b.led
	b.led = b.role.Leads()
	now := time.Now()
	if !b.led || led && now.Sub(b.asked) < infoEvery && now.After(b.soon) {
		return
	}
	b.asked = now
	if trouble == nil {
		trouble = b.read(ctx, s)
	}
	if trouble != nil {
		// What was known stays. A repository that comes back soon is noticed soon.
		b.facts.Unread, b.facts.Key = trouble.Error(), keyTrouble(trouble)
		b.soon = time.Now().Add(infoSoon)
	}
}

// read what backups there are. A missing stanza is created, because archiving needs it. One of other data is never overwritten.
func (b *Backups) read(ctx context.Context, s pgmember.Backup) error {
	ctx, cancel := context.WithTimeout(ctx, infoLimit)
	defer cancel()
	run := pgbackrest.Runner{Program: pgbackrest.Program, Config: layout.PgBackRest}
	all, err := run.Info(ctx, s.Stanza)
	if err != nil {
		return err
	}
	if pgbackrest.Missing(all) {
		if err := repository.CreateStanza(ctx, run, s); err != nil {
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

// keyTrouble is what is wrong with the key, as one of members.Key…; "" when something else is wrong.
func keyTrouble(err error) string {
	var missing *pgbackrest.NotReady
	switch {
	case errors.As(err, &missing):
		return missing.Key
	case pgbackrest.Locked(err):
		return members.KeyMismatch
	}
	return ""
}

// recordsEvery is how often the leader reads the results of verifications, and how full the volume of backups is.
const recordsEvery = time.Minute

// readVerification reads the results of verifications, if this member is the leader and backups are verified.
func (b *Backups) readVerification(ctx context.Context, s pgmember.Backup) {
	if !b.role.Leads() || s.Verify == nil {
		b.verification, b.verified = members.VerificationReport{}, time.Time{}
		return
	}
	if b.facts.Unread != "" || time.Since(b.verified) < recordsEvery {
		return
	}
	b.verified = time.Now()
	ctx, cancel := context.WithTimeout(ctx, infoLimit)
	defer cancel()
	var r members.VerificationReport
	objects, err := objectstore.Configured(s)
	if err == nil {
		_, err = objects.Read(ctx, objectstore.Verification(s), &r)
	}
	if err != nil {
		b.log.Warn("cannot read the results of verifications of backups", "error", err)
		return
	}
	r.Asked = true
	b.verification = r
}

// measure the volume of backups, if this member is the leader and there is one. The last result stays while its host does not
// answer.
func (b *Backups) measure(ctx context.Context, s pgmember.Backup) {
	if !b.role.Leads() || s.Repository == "" {
		b.repository, b.measured = members.RepositoryReport{}, time.Time{}
		return
	}
	if time.Since(b.measured) < recordsEvery {
		return
	}
	b.measured = time.Now()
	r, err := pgbackrest.Read(pgmember.FolderBackup, s.Repository)
	if err != nil || r.Served == nil {
		return // reported as what blocks the archive
	}
	u, err := repository.Usage(ctx, r)
	if err != nil {
		b.log.Warn("cannot find out how full the volume of backups is", "error", err)
		return
	}
	b.repository = members.RepositoryReport{
		Disk:        volume.Class(b.repository.Disk, u.Percent),
		UsedPercent: int32(volume.Step(int(b.repository.UsedPercent), u.Percent)), //nolint:gosec // It is at most 100.
		FileSystem:  fmt.Sprintf("%dMi", u.Size>>20),
	}
}
