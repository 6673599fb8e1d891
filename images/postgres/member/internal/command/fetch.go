// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/postmaster"
)

// fetchLimit is how long one file may take.
const fetchLimit = time.Minute

// Fetch brings one file of the write-ahead log back from the archive, as PostgreSQL calls it.
//
// PostgreSQL calls it in every recovery, also before it ends one because it is promoted. A failover must not wait for a bucket, so
// it reads the archive only for a standby that cannot continue without it, and for pg_rewind, which runs while PostgreSQL does not.
type Fetch struct {
	File string `arg:"" help:"Name of the file."`
	To   string `arg:"" help:"Where it is wanted, from the data folder."`
}

// Run fetches the file. Every error means to PostgreSQL that the archive does not have it.
func (c *Fetch) Run(ctx context.Context) error {
	_, err := os.Stat(layout.Fetch)
	if _, running := postmaster.Find(pgmember.FolderData); running && err != nil {
		return errors.New("the archive is not read: this standby needs nothing of it")
	}
	w, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	if w.Backup == nil || !w.Backup.Enabled {
		return errors.New("backups are off")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	run := pgbackrest.Runner{Program: pgbackrest.Program, Config: layout.PgBackRest, Grace: time.Second}
	// archive-get writes beside the target and renames: a file that is there is whole.
	if _, err := run.Run(ctx, "archive-get", "--stanza="+w.Backup.Stanza, "--no-archive-async", c.File, c.To); err != nil {
		return fmt.Errorf("cannot fetch %s: %w", c.File, err)
	}
	return nil
}
