// SPDX-License-Identifier: Apache-2.0

package command

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
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/verification"
)

const (
	// removeTries is how often Verify checks whether anything still writes before it removes what was restored, and removePause
	// the time between two checks.
	removeTries = 50
	removePause = 100 * time.Millisecond
	// recordLimit is how long writing it may take.
	recordLimit = 2 * time.Minute
)

// Verify restores the latest backup to a volume of its own and proves that it is good. It runs in a pod of its own.
type Verify struct {
	ID string `help:"Name of this verification, if it was requested by name."`

	Folder string        `default:"/tmp"   help:"Folder for what is needed while it runs." type:"existingdir"`
	Limit  time.Duration `default:"11h30m" help:"How long it may take."`
}

// Run verifies the latest backup, and records the result. A verification that a signal stops records nothing: another one begins
// again.
func (c *Verify) Run(ctx context.Context, log *slog.Logger) error {
	w, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	if w.Backup == nil || !w.Backup.Enabled || w.Backup.Verify == nil {
		return errors.New("there is nothing to verify: set spec.backup.verify")
	}
	repository, err := pgbackrest.Configured(*w.Backup)
	if err != nil {
		return err
	}
	objects, err := objectstore.Open(repository)
	if err != nil {
		return err
	}
	key := objectstore.Verification(*w.Backup)
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
	began := time.Now().UTC().Format(time.RFC3339)
	if err := record(func(r *members.VerificationReport) { r.Began = began }); err != nil {
		return err
	}
	passed, err := c.try(ctx, log, repository, *w.Backup)
	if rerr := remove(context.WithoutCancel(ctx)); rerr != nil {
		log.Warn("what was restored stays until the pod goes", "error", rerr)
	}
	if ctx.Err() != nil {
		return errors.New("the verification was stopped by a signal")
	}
	if rerr := record(func(r *members.VerificationReport) { c.tell(r, passed, err) }); rerr != nil {
		return errors.Join(err, rerr)
	}
	return err
}

func (c *Verify) try(ctx context.Context, log *slog.Logger, repository pgbackrest.Repository, s pgmember.Backup) (verification.Passed, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limit, &verification.Failure{
		Kind: members.VerifyOther, Message: fmt.Sprintf("the verification did not end within %s", c.Limit),
	})
	defer cancel()
	if err := remove(ctx); err != nil {
		return verification.Passed{}, err
	}
	socket := filepath.Join(c.Folder, "verify")
	folders := pgbackrest.Folders{Data: pgmember.FolderData, Socket: socket, Spool: filepath.Join(c.Folder, "spool"), Lock: filepath.Join(c.Folder, "lock")}
	if err := durable.Folders(socket, folders.Spool, folders.Lock); err != nil {
		return verification.Passed{}, err
	}
	run, err := pgbackrest.Reader(s.Path, s.Stanza, s.Processes, repository, folders).Runner(filepath.Join(c.Folder, "pgbackrest.conf"))
	if err != nil {
		return verification.Passed{}, err
	}
	return verification.Trial{
		Run: run, Stanza: s.Stanza, Data: pgmember.FolderData, Folder: socket, Programs: pgmember.Programs, Verify: *s.Verify, Processes: s.Processes, Log: log,
	}.Try(ctx)
}

// remove what was restored. A restore that was ended leaves processes behind for a moment, which continue to write.
func remove(ctx context.Context) error {
	for range removeTries {
		running := slices.DeleteFunc(process.Descendants(os.Getpid()), func(p process.Process) bool { return p.Dead })
		if len(running) == 0 {
			break
		}
		for _, p := range running {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		loop.Sleep(ctx, removePause)
	}
	if err := os.RemoveAll(pgmember.FolderData); err != nil {
		return fmt.Errorf("cannot remove what was restored: %w", err)
	}
	return nil
}

// `tell` writes the result of a verification to the report.
func (c *Verify) tell(r *members.VerificationReport, p verification.Passed, err error) {
	now := time.Now().UTC().Format(time.RFC3339)
	r.Began, r.Ended, r.Backup, r.Failure, r.Message = "", now, p.Backup, "", ""
	if c.ID != "" {
		r.ID = c.ID
	}
	if err == nil {
		r.Passed = members.VerificationPassed{
			Backup: p.Backup, At: now, Seconds: int64(p.Took.Round(time.Second).Seconds()), ReplayedTo: p.ReplayedTo.UTC().Format(time.RFC3339),
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
