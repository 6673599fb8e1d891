// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/verification"
)

// objectOfVerification is the object with what verifications of a stanza came to. The leader reads it there: the pod that verifies
// reaches nothing else.
func objectOfVerification(s pgbackrest.Settings) string {
	return pgbackrest.Object(s.Path, "verification/"+s.Stanza)
}

const (
	// verifiedEvery is how often the leader reads it.
	verifiedEvery = time.Minute
	// removeTries is how often it is looked whether anything still writes before what was restored is removed, and removePause the
	// time in between.
	removeTries = 50
	removePause = 100 * time.Millisecond
	// recordLimit is how long writing it may take.
	recordLimit = 2 * time.Minute
)

// verifyCmd restores the latest backup to a volume of its own and proves that it is good. It runs in a pod of its own.
type verifyCmd struct {
	ID string `help:"Name of this verification, if it was asked for by name."`

	Folder string        `default:"/tmp"   help:"Folder for what is needed while it runs." type:"existingdir"`
	Limit  time.Duration `default:"11h30m" help:"How long it may take."`
}

// Run verifies the latest backup, and writes down what that came to. One that is told to stop tells nothing: another one begins anew.
func (c *verifyCmd) Run(ctx context.Context, log *slog.Logger) error {
	w, err := pgbackrest.ReadWanted(layout.Wanted)
	if err != nil {
		return err
	}
	if w.Backup == nil || !w.Backup.Enabled || w.Backup.Verify == nil {
		return errors.New("there is nothing to verify: set spec.backup.verify")
	}
	repository, err := repositoryOf(*w.Backup)
	if err != nil {
		return err
	}
	objects, err := objectstore.Open(repository)
	if err != nil {
		return err
	}
	key := objectOfVerification(*w.Backup)
	record := func(change func(*members.VerificationReport)) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
		defer cancel()
		var told members.VerificationReport
		if _, err := objects.Read(ctx, key, &told); err != nil {
			return err
		}
		change(&told)
		return objects.Write(ctx, key, told)
	}
	began := stamp(new(time.Now()))
	if err := record(func(r *members.VerificationReport) { r.Began = began }); err != nil {
		return err
	}
	passed, err := c.try(ctx, log, repository, *w.Backup)
	if rerr := remove(context.WithoutCancel(ctx)); rerr != nil {
		log.Warn("what was restored stays until the pod goes", "error", rerr)
	}
	if ctx.Err() != nil {
		return errors.New("the verification was told to stop")
	}
	if rerr := record(func(r *members.VerificationReport) { c.tell(r, passed, err) }); rerr != nil {
		return errors.Join(err, rerr)
	}
	return err
}

// try the latest backup.
func (c *verifyCmd) try(ctx context.Context, log *slog.Logger, repository pgbackrest.Repository, s pgbackrest.Settings) (verification.Passed, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limit, &verification.Failure{
		Kind: members.VerifyOther, Message: fmt.Sprintf("the verification did not end within %s", c.Limit),
	})
	defer cancel()
	if err := remove(ctx); err != nil {
		return verification.Passed{}, err
	}
	socket := filepath.Join(c.Folder, "verify")
	folders := pgbackrest.Folders{Data: layout.Data, Socket: socket, Spool: filepath.Join(c.Folder, "spool"), Lock: filepath.Join(c.Folder, "lock")}
	for _, dir := range []string{socket, folders.Spool, folders.Lock} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return verification.Passed{}, fmt.Errorf("cannot prepare folders of the verification: %w", err)
		}
	}
	config := filepath.Join(c.Folder, "pgbackrest.conf")
	if _, err := pgbackrest.Reader(s.Path, s.Stanza, repository, folders).Write(config); err != nil {
		return verification.Passed{}, err
	}
	return verification.Trial{
		Run: pgbackrest.Runner{Program: pgbackrest.Program, Config: config}, Stanza: s.Stanza, Data: layout.Data, Folder: socket,
		Programs: layout.Programs, Verify: *s.Verify, Log: log,
	}.Try(ctx)
}

// remove what was restored. A restore that was ended leaves processes behind for a moment, which go on writing.
func remove(ctx context.Context) error {
	for range removeTries {
		running := slices.DeleteFunc(process.Descendants(os.Getpid()), func(p process.Process) bool { return p.Dead })
		if len(running) == 0 {
			break
		}
		for _, p := range running {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		sleep(ctx, removePause)
	}
	if err := os.RemoveAll(layout.Data); err != nil {
		return fmt.Errorf("cannot remove what was restored: %w", err)
	}
	return nil
}

// tell what a verification came to.
func (c *verifyCmd) tell(r *members.VerificationReport, p verification.Passed, err error) {
	now := stamp(new(time.Now()))
	r.Began, r.Ended, r.Backup, r.Failure, r.Message = "", now, p.Backup, "", ""
	if c.ID != "" {
		r.ID = c.ID
	}
	if err == nil {
		r.Passed = members.VerificationPassed{
			Backup: p.Backup, At: now, Seconds: int64(p.Took.Round(time.Second).Seconds()), ReplayedTo: stamp(&p.ReplayedTo),
			Assertions: int32(p.Assertions), //nolint:gosec // At most 16.
		}
		return
	}
	r.Failure, r.Message = members.VerifyOther, err.Error()
	var failure *verification.Failure
	if errors.As(err, &failure) {
		r.Failure = failure.Kind
	}
}

// verified reads what verifications came to, if this member leads and there are any to come.
func (b *backups) verified(ctx context.Context, s pgbackrest.Settings) {
	if !b.leads.Load() || s.Verify == nil {
		b.verification, b.looked = members.VerificationReport{}, time.Time{}
		return
	}
	if b.facts.Unread != "" || time.Since(b.looked) < verifiedEvery {
		return
	}
	b.looked = time.Now()
	if err := b.readVerification(ctx, s); err != nil {
		b.log.Warn("cannot tell what verifications of backups came to", "error", err)
	}
}

func (b *backups) readVerification(ctx context.Context, s pgbackrest.Settings) error {
	ctx, cancel := context.WithTimeout(ctx, infoLimit)
	defer cancel()
	objects, err := objectsOf(s)
	if err != nil {
		return err
	}
	var told members.VerificationReport
	if _, err := objects.Read(ctx, objectOfVerification(s), &told); err != nil {
		return err
	}
	told.Asked = true
	b.verification = told
	return nil
}
