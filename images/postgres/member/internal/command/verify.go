// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	frame "github.com/capstan-dev/capstan/images/member/verification"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/verification"
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
	run := frame.Run{
		ID: c.ID, Limit: c.Limit, Objects: objects, Key: objectstore.Verification(*w.Backup), Folder: pgmember.FolderData, Log: log,
	}
	return run.Run(ctx, func(ctx context.Context) (frame.Passed, error) { return c.try(ctx, log, repository, *w.Backup) })
}

func (c *Verify) try(ctx context.Context, log *slog.Logger, repository pgbackrest.Repository, s pgmember.Backup) (frame.Passed, error) {
	socket := filepath.Join(c.Folder, "verify")
	folders := pgbackrest.Folders{Data: pgmember.FolderData, Socket: socket, Spool: filepath.Join(c.Folder, "spool"), Lock: filepath.Join(c.Folder, "lock")}
	if err := durable.Folders(socket, folders.Spool, folders.Lock); err != nil {
		return frame.Passed{}, err
	}
	run, err := pgbackrest.Reader(s.Path, s.Stanza, s.Processes, repository, folders).Runner(filepath.Join(c.Folder, "pgbackrest.conf"))
	if err != nil {
		return frame.Passed{}, err
	}
	return verification.Trial{
		Run: run, Stanza: s.Stanza, Data: pgmember.FolderData, Folder: socket, Programs: pgmember.Programs, Verify: *s.Verify, Processes: s.Processes, Log: log,
	}.Try(ctx)
}
