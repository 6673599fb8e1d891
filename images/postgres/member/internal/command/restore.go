// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/masking"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/notes"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/snapshot"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/source"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/walvolume"
)

// Restore makes the data of a new Database from a backup, as Patroni calls it. It only reads where the backup is.
type Restore struct {
	Standby bool   `help:"Restore the latest backup for a standby, which replays what the archive has as long as it is one."`
	Version string `env:"CAPSTAN_VERSION"                                                                                    help:"Major version of PostgreSQL." placeholder:"MAJOR"`
}

// Run restores, and notifies the running member when it fails.
func (c *Restore) Run(ctx context.Context, log *slog.Logger) error {
	said, err := c.restore(ctx, log)
	if err == nil {
		log.Info(said)
		err = os.WriteFile(layout.Restored, nil, 0o600)
	}
	if err == nil {
		return nil
	}
	if nerr := notes.Send(context.WithoutCancel(ctx), notes.Restore+": "+err.Error()); nerr != nil {
		log.Warn("cannot notify the running member", "error", nerr)
	}
	return err
}

func (c *Restore) restore(ctx context.Context, log *slog.Logger) (string, error) {
	w, err := layout.ReadConfig()
	if err != nil {
		return "", err
	}
	if w.From == nil {
		return "", errors.New("the Database is to begin with a backup, and it is not known with which: see its ConfigMap")
	}
	opened, err := source.Open(ctx, *w.From)
	if err != nil {
		return "", err
	}
	if w.From.Snapshot != nil {
		return c.fromSnapshot(ctx, opened, *w.From)
	}
	where := opened.Repository
	if w.From.Mask != nil {
		opened.Into(layout.Unmasked)
	}
	run, err := opened.Runner(w.From.Stanza, layout.PgBackRestSource)
	if err != nil {
		return "", err
	}
	point, from, err := asked(ctx, where, *w.From)
	if err != nil {
		return "", err
	}
	all, err := run.Info(ctx, from)
	if err != nil {
		return "", err
	}
	stanza := pgbackrest.Latest(all)
	if stanza.Name == "" {
		return "", fmt.Errorf("%s has no backup under %s: see spec.from or spec.restore of the Database", where.Place(), w.From.Path)
	}
	if err := c.fits(stanza); err != nil {
		return "", err
	}
	if _, err := opened.Runner(stanza.Name, layout.PgBackRestSource); err != nil {
		return "", err
	}
	if c.Standby {
		// Patroni writes what a standby recovers from.
		_, err = run.Run(ctx, "restore", "--stanza="+stanza.Name, "--type=none")
		return "restored the latest backup of " + stanza.Name + " to follow it", errors.Join(source.Note(stanza.Name), moveLog(ctx, err))
	}
	// Archiving of the new Database has its own place: what the source had set does not count.
	args := []string{"--stanza=" + stanza.Name, "--archive-mode=preserve"}
	said := "restoring the latest of " + stanza.Name
	if at := w.From.At; at != nil {
		to, err := toTime(stanza, at.UTC())
		if err != nil {
			return "", err
		}
		args = append(args, to...)
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
	restore := func() error {
		_, err := run.Run(ctx, "restore", args...)
		return err
	}
	if w.From.Mask != nil {
		return said + ", masked", moveLog(ctx, c.masked(ctx, log, *w.From.Mask, restore))
	}
	return said, moveLog(ctx, restore())
}

// fromSnapshot begins with the data that the volume was filled with. What was archived after that is replayed.
func (c *Restore) fromSnapshot(ctx context.Context, opened *source.Source, from pgmember.Source) (string, error) {
	stanza := from.Snapshot.Stanza
	run, err := opened.Runner(stanza, layout.PgBackRestSource)
	if err != nil {
		return "", err
	}
	// Without an archive PostgreSQL would begin with the snapshot alone.
	all, err := run.Info(ctx, stanza)
	if err != nil {
		return "", err
	}
	if pgbackrest.Missing(all) {
		return "", fmt.Errorf("%s has no archive of stanza %s, in which the snapshot continues: see spec.from of the Database", opened.Repository.Place(), stanza)
	}
	if err := pgdata.CheckVersion(layout.Snapshot, c.Version); err != nil {
		return "", err
	}
	if at := from.At; at != nil && at.After(time.Now()) {
		return "", inFuture(*at)
	}
	if err := snapshot.Own.Begin(snapshot.Recovery{Command: run.Fetch(stanza), At: from.At}); err != nil {
		return "", err
	}
	said := "beginning with the snapshot, and the archive of " + stanza
	if from.At != nil {
		said += " until " + from.At.UTC().Format(time.RFC3339Nano)
	}
	return said, walvolume.Own.Move(ctx)
}

// inFuture is why a time cannot be restored.
func inFuture(at time.Time) error {
	return fmt.Errorf("%s is requested, which is in the future: choose an earlier time, or none for the latest", at.UTC().Format(time.RFC3339))
}

// fits reports why the backups of a stanza cannot be this Database's data.
func (c *Restore) fits(stanza pgbackrest.Stanza) error {
	if has := stanza.Origin().Version; has != "" && c.Version != "" && has != c.Version {
		return fmt.Errorf("the backups of %s have version %s, and this Database has version %s: data is restored and followed in its own version only, "+
			"so make another Database with version %[2]s", stanza.Name, has, c.Version)
	}
	return nil
}

// toTime are the arguments that end recovery at a time, which lies between the first backup and now.
func toTime(stanza pgbackrest.Stanza, at time.Time) ([]string, error) {
	first := stanza.Backups[0].Ended()
	switch {
	case at.Before(first):
		return nil, fmt.Errorf("%s is requested, and the first time that can be restored is %s: choose a later one",
			at.Format(time.RFC3339), first.Format(time.RFC3339))
	case at.After(time.Now()):
		return nil, inFuture(at)
	}
	return []string{"--type=time", "--target-action=promote", "--target=" + at.Format("2006-01-02 15:04:05.999999-07")}, nil
}

// moveLog to its volume after a restore, unless that failed. pgBackRest restores links as folders.
func moveLog(ctx context.Context, failed error) error {
	if failed != nil {
		return failed
	}
	return walvolume.Own.Move(ctx)
}

// masked data is restored to a folder of its own, and becomes the member's data when all of it is masked.
func (c *Restore) masked(ctx context.Context, log *slog.Logger, mask pgmember.Mask, restore func() error) error {
	if err := os.RemoveAll(layout.Unmasked); err != nil {
		return fmt.Errorf("cannot remove what an earlier restore left: %w", err)
	}
	if err := os.Mkdir(layout.Unmasked, 0o700); err != nil {
		return fmt.Errorf("cannot prepare the folder to restore to: %w", err)
	}
	err := restore()
	if err == nil {
		err = masking.Job{Mask: mask, Programs: pgmember.Programs(c.Version), Data: layout.Unmasked, Folder: layout.Masking, Log: log}.Run(ctx)
	}
	if err != nil {
		// It is removed before the next attempt, as all that Patroni could not begin with.
		return errors.Join(err, os.RemoveAll(layout.Failed), os.Rename(layout.Unmasked, layout.Failed))
	}
	if err := os.Rename(layout.Unmasked, pgmember.FolderData); err != nil {
		return fmt.Errorf("cannot begin with the masked data: %w", err)
	}
	return durable.Sync(pgmember.FolderVolume)
}

// asked for is a restore point, if any, and the stanza that it is in or that is named; "" for the latest.
func asked(ctx context.Context, where pgbackrest.Repository, from pgmember.Source) (members.RestorePoint, string, error) {
	if from.RestorePoint == "" {
		return members.RestorePoint{}, from.Stanza, nil
	}
	point, err := pointOf(ctx, where, from.Path, from.RestorePoint)
	if err != nil {
		return members.RestorePoint{}, "", err
	}
	if from.Stanza != "" && from.Stanza != point.Stanza {
		return members.RestorePoint{}, "", fmt.Errorf("the restore point %q is requested of the stanza %s, and it is one of %s", from.RestorePoint, from.Stanza, point.Stanza)
	}
	return point, point.Stanza, nil
}

// pointOf a name, from the repository that it is in.
func pointOf(ctx context.Context, where pgbackrest.Repository, path, name string) (members.RestorePoint, error) {
	objects, err := objectstore.Open(where)
	if err != nil {
		return members.RestorePoint{}, err
	}
	var all []members.RestorePoint
	if _, err := objects.Read(ctx, objectstore.RestorePoints(path), &all); err != nil {
		return members.RestorePoint{}, err
	}
	i := slices.IndexFunc(all, func(r members.RestorePoint) bool { return r.Name == name })
	if i < 0 {
		return members.RestorePoint{}, fmt.Errorf("there is no restore point %q among the %d of %s: see status.backup.restorePoints of the source", name, len(all), path)
	}
	return all[i], nil
}

// toPoint are the arguments that restore to a restore point: from the backup before it, along the timeline that it is on.
// PostgreSQL stops right after it.
func toPoint(stanza pgbackrest.Stanza, point members.RestorePoint) ([]string, error) {
	lsn, err := pgbackrest.ParseLSN(point.LSN)
	if err != nil {
		return nil, fmt.Errorf("cannot restore to the restore point %q: %w", point.Name, err)
	}
	before, ok := stanza.Before(lsn)
	if !ok {
		return nil, fmt.Errorf("spec.from asks for the restore point %q of %s, and the backup before it is kept no longer: choose a later one", point.Name, point.At)
	}
	return []string{
		"--set=" + before.Label, "--type=name", "--target=" + point.Label, "--target-action=promote",
		fmt.Sprintf("--target-timeline=%d", point.Timeline),
	}, nil
}
