// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// noteRestore begins the note of a restore that did not work.
const noteRestore = "restore"

// restoreFailed is the reason of a member whose Database cannot begin with what it is to begin with.
const restoreFailed = "RestoreFailed"

// restoreCmd makes the data of a new Database from a backup, as Patroni calls it. It only reads where the backup is.
type restoreCmd struct{}

// Run restores, and tells the running member when it does not work.
func (c *restoreCmd) Run(ctx context.Context, log *slog.Logger) error {
	said, err := c.restore(ctx)
	text := ""
	if err == nil {
		log.Info(said)
		err = os.WriteFile(layout.Restored, nil, 0o600)
	}
	if err != nil {
		text = err.Error()
	}
	if text == "" {
		return nil
	}
	if nerr := note(context.WithoutCancel(ctx), noteRestore+": "+text); nerr != nil {
		log.Warn("cannot tell the running member", "error", nerr)
	}
	return err
}

func (c *restoreCmd) restore(ctx context.Context) (string, error) {
	w, err := pgbackrest.ReadWanted(layout.Wanted)
	if err != nil {
		return "", err
	}
	if w.From == nil {
		return "", errors.New("the Database is to begin with a backup, and it is not known with which: see its ConfigMap")
	}
	lock := filepath.Join(layout.Private, "restore-lock")
	for _, dir := range []string{lock, layout.Spool} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("cannot prepare folders of the restore: %w", err)
		}
	}
	folders := pgbackrest.Folders{Data: layout.Data, Socket: layout.Postgres, Spool: layout.Spool, Lock: lock}
	repository, err := repositoryFrom(ctx, *w.From, folders)
	if err != nil {
		return "", err
	}
	run := pgbackrest.Runner{Program: pgbackrest.Program, Config: layout.PgBackRestSource}
	if _, err := pgbackrest.Reader(w.From.Path, w.From.Stanza, repository, folders).Write(layout.PgBackRestSource); err != nil {
		return "", err
	}
	point, from, err := asked(ctx, repository, *w.From)
	if err != nil {
		return "", err
	}
	all, err := run.Info(ctx, from)
	if err != nil {
		return "", err
	}
	stanza := pgbackrest.Latest(all)
	if stanza.Name == "" {
		return "", fmt.Errorf("%s has no backup under %s: see spec.from or spec.restore of the Database", repository.Place(), w.From.Path)
	}
	if _, err := pgbackrest.Reader(w.From.Path, stanza.Name, repository, folders).Write(layout.PgBackRestSource); err != nil {
		return "", err
	}
	// Archiving of the new Database has its own place: what the source had set does not count.
	args := []string{"--stanza=" + stanza.Name, "--archive-mode=preserve"}
	said := "restoring the latest of " + stanza.Name
	if at := w.From.At; at != nil {
		first := stanza.Backups[0].Ended()
		if at.Before(first) {
			return "", fmt.Errorf("%s is asked for, and the first time that can be restored is %s: choose a later one",
				at.UTC().Format(time.RFC3339), first.Format(time.RFC3339))
		}
		if at.After(time.Now()) {
			return "", fmt.Errorf("%s is asked for, which is to come: choose an earlier time, or none for the latest", at.UTC().Format(time.RFC3339))
		}
		args = append(args, "--type=time", "--target-action=promote", "--target="+at.UTC().Format("2006-01-02 15:04:05.999999-07"))
		said += " as it was at " + at.UTC().Format(time.RFC3339Nano)
	}
	if name := w.From.RestorePoint; name != "" {
		to, err := toPoint(stanza, point)
		if err != nil {
			return "", err
		}
		args = append(args, to...)
		said += " as it was at the restore point " + name
	}
	_, err = run.Run(ctx, "restore", args...)
	return said, err
}

// asked for is a restore point, if any, and the stanza that it is in or that is named; "" for the latest.
func asked(ctx context.Context, repository pgbackrest.Repository, from pgbackrest.Source) (members.RestorePoint, string, error) {
	if from.RestorePoint == "" {
		return members.RestorePoint{}, from.Stanza, nil
	}
	point, err := pointOf(ctx, repository, from.Path, from.RestorePoint)
	if err != nil {
		return members.RestorePoint{}, "", err
	}
	if from.Stanza != "" && from.Stanza != point.Stanza {
		return members.RestorePoint{}, "", fmt.Errorf("the restore point %q is asked for of the stanza %s, and it is one of %s", from.RestorePoint, from.Stanza, point.Stanza)
	}
	return point, point.Stanza, nil
}
