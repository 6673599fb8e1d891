// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	frame "github.com/capstan-dev/capstan/images/member/verification"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/server"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/verification"
)

// verifyMemory is what the server of a verification takes for pages, in bytes: a quarter of what its pod has at least.
const verifyMemory = 256 << 20

// Verify restores the latest backup to a volume of its own and proves that it is good. It runs in a pod of its own.
type Verify struct {
	ID string `help:"Name of this verification, if it was requested by name."`

	Folder string        `default:"/tmp"   help:"Folder for sockets."   type:"existingdir"`
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
	base, err := os.ReadFile(layout.Base)
	if err != nil {
		return err
	}
	place := layout.Repository(*w.Backup)
	if err := clearAll(place.Scratch); err != nil {
		return err
	}
	defer func() { _ = clearAll(place.Scratch) }()
	from, err := repository.Open(ctx, place)
	if err != nil {
		return err
	}
	run := frame.Run{
		ID: c.ID, Limit: c.Limit, Objects: objects{from}, Key: layout.Verification(*w.Backup), Folder: mysqlmember.FolderData, Log: log,
	}
	trial := verification.Trial{
		Verify: *w.Backup.Verify, Repository: from, Stanza: w.Backup.Stanza, Log: log,
		Server: server.Scratch{
			Data: mysqlmember.FolderData, Folder: c.Folder, Memory: verifyMemory, Settings: server.Storing(string(base)), Log: os.Stderr,
		},
	}
	return run.Run(ctx, trial.Try)
}

// objects of a repository.
type objects struct{ *repository.Repository }

func (o objects) Read(ctx context.Context, name string, into any) (bool, error) {
	return o.ReadObject(ctx, name, into)
}

func (o objects) Write(ctx context.Context, name string, value any) error {
	return o.WriteObject(ctx, name, value)
}
