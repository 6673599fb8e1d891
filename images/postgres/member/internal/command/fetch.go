// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/postmaster"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/source"
)

// fetchLimit is how long one file may take.
const fetchLimit = time.Minute

// Fetch brings one file of the write-ahead log back from the archive, as PostgreSQL calls it.
//
// PostgreSQL calls it in every recovery, also before it ends one because it is promoted. A failover must not wait for a bucket, so
// it reads the archive only for a standby that cannot continue without it, and for pg_rewind, which runs while PostgreSQL does not.
//
// The leader of a standby cluster has nothing but the archive of its source, and reads that each time.
type Fetch struct {
	Version string `env:"CAPSTAN_VERSION"                                    help:"Major version of PostgreSQL."              placeholder:"MAJOR"`
	Source  bool   `help:"Fetch from the archive that the Database follows."`
	File    string `arg:""                                                   help:"Name of the file."`
	To      string `arg:""                                                   help:"Where it is wanted, from the data folder."`
}

// Run fetches the file. Every error means to PostgreSQL that the archive does not have it.
func (c *Fetch) Run(ctx context.Context) error {
	if c.Source {
		w, err := layout.ReadConfig()
		if err != nil {
			return err
		}
		return c.fromSource(ctx, w)
	}
	_, err := os.Stat(layout.Fetch)
	if _, running := postmaster.Find(pgmember.FolderData); running && err != nil {
		return errors.New("the archive is not read: this standby needs nothing of it")
	}
	w, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	err = c.fromOwn(ctx, w)
	if err == nil || w.From == nil || !w.From.Follow {
		return err
	}
	// A standby cluster archives nothing of its own before it is promoted.
	return c.fromSource(ctx, w)
}

// fromOwn fetches the file from the archive of the Database.
func (c *Fetch) fromOwn(ctx context.Context, w pgmember.Config) error {
	if w.Backup == nil || !w.Backup.Enabled {
		return errors.New("backups are off")
	}
	run := pgbackrest.Runner{Program: pgbackrest.Program, Config: layout.PgBackRest, Grace: time.Second}
	return c.get(ctx, run, w.Backup.Stanza, "--no-archive-async")
}

// ErrNotArchived reports that the archive does not have the file. A standby that has replayed all of it hears so every few seconds.
var ErrNotArchived = errors.New("the archive does not have the file")

// get the file from the archive of a stanza.
func (c *Fetch) get(ctx context.Context, run pgbackrest.Runner, stanza string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	// archive-get writes beside the target and renames: a file that is there is whole.
	_, err := run.Run(ctx, "archive-get", append([]string{"--stanza=" + stanza}, append(args, c.File, c.To)...)...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return ErrNotArchived
	case err != nil:
		return fmt.Errorf("cannot fetch %s: %w", c.File, err)
	}
	return nil
}

// fromSource fetches the file from the archive that the Database follows.
func (c *Fetch) fromSource(ctx context.Context, w pgmember.Config) error {
	if w.From == nil || !w.From.Follow {
		return errors.New("the Database follows no other one")
	}
	opened, err := source.Open(ctx, *w.From)
	if err != nil {
		return err
	}
	stanza := source.Noted()
	if stanza == "" {
		values, err := pgdata.Control(ctx, pgmember.Programs(c.Version), pgmember.FolderData)
		if err != nil {
			return err
		}
		all, err := opened.Stanzas(ctx, layout.PgBackRestSource+".all")
		if err != nil {
			return err
		}
		followed, err := source.Followed(all, *w.From, values["Database system identifier"])
		if err != nil {
			return err
		}
		if stanza = followed.Name; source.Note(stanza) != nil {
			return fmt.Errorf("cannot note that %s is followed", stanza)
		}
	}
	run, err := opened.Runner(stanza, layout.PgBackRestSource)
	if err != nil {
		return err
	}
	return c.get(ctx, run, stanza)
}
