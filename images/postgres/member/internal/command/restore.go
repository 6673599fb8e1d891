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
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/notes"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// Restore makes the data of a new Database from a backup, as Patroni calls it. It only reads where the backup is.
type Restore struct{}

// Run restores, and notifies the running member when it fails.
func (c *Restore) Run(ctx context.Context, log *slog.Logger) error {
	said, err := c.restore(ctx)
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

func (c *Restore) restore(ctx context.Context) (string, error) {
	w, err := layout.ReadConfig()
	if err != nil {
		return "", err
	}
	if w.From == nil {
		return "", errors.New("the Database is to begin with a backup, and it is not known with which: see its ConfigMap")
	}
	lock := filepath.Join(pgmember.FolderPrivate, "restore-lock")
	if err := durable.Folders(lock, layout.SourceSpool); err != nil {
		return "", err
	}
	folders := pgbackrest.Folders{Data: pgmember.FolderData, Socket: pgmember.FolderSocket, Spool: layout.SourceSpool, Lock: lock}
	where, err := repositoryFrom(ctx, *w.From, folders)
	if err != nil {
		return "", err
	}
	run, err := pgbackrest.Reader(w.From.Path, w.From.Stanza, w.From.Processes, where, folders).Runner(layout.PgBackRestSource)
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
	if _, err := pgbackrest.Reader(w.From.Path, stanza.Name, w.From.Processes, where, folders).Write(layout.PgBackRestSource); err != nil {
		return "", err
	}
	// Archiving of the new Database has its own place: what the source had set does not count.
	args := []string{"--stanza=" + stanza.Name, "--archive-mode=preserve"}
	said := "restoring the latest of " + stanza.Name
	if at := w.From.At; at != nil {
		first := stanza.Backups[0].Ended()
		if at.Before(first) {
			return "", fmt.Errorf("%s is requested, and the first time that can be restored is %s: choose a later one",
				at.UTC().Format(time.RFC3339), first.Format(time.RFC3339))
		}
		if at.After(time.Now()) {
			return "", fmt.Errorf("%s is requested, which is in the future: choose an earlier time, or none for the latest", at.UTC().Format(time.RFC3339))
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

// repositoryFrom that the Database begins with. A source that has a bucket and a volume has moved: the one with the latest backup
// is meant.
func repositoryFrom(ctx context.Context, s pgmember.Source, f pgbackrest.Folders) (pgbackrest.Repository, error) {
	key := pgbackrest.KeyIf(s.Encrypted, pgmember.FolderSourceKey)
	if s.Either == "" {
		return pgbackrest.ReadEncrypted(pgmember.FolderSource, key, s.Repository)
	}
	inBucket, inVolume := mounted(pgmember.FolderSource), mounted(pgmember.FolderSourceRepository)
	switch {
	case !inBucket && !inVolume:
		return pgbackrest.Repository{}, &pgbackrest.NotReady{Message: "the source has neither the connection Secret of a bucket nor the connection Secret of a volume of backups: " +
			"see whether it has spec.backup, and its condition BackupFresh"}
	case !inVolume:
		return pgbackrest.ReadEncrypted(pgmember.FolderSource, key, "")
	case !inBucket:
		return pgbackrest.ReadEncrypted(pgmember.FolderSourceRepository, key, s.Either)
	}
	bucket, err := pgbackrest.ReadEncrypted(pgmember.FolderSource, key, "")
	if err != nil {
		return pgbackrest.Repository{}, err
	}
	volume, err := pgbackrest.ReadEncrypted(pgmember.FolderSourceRepository, key, s.Either)
	if err != nil {
		return pgbackrest.Repository{}, err
	}
	ofBucket, err := latestOf(ctx, bucket, s, f)
	if err != nil {
		return pgbackrest.Repository{}, err
	}
	ofVolume, err := latestOf(ctx, volume, s, f)
	if err != nil {
		return pgbackrest.Repository{}, err
	}
	if ofBucket.Ended().After(ofVolume.Ended()) {
		return bucket, nil
	}
	return volume, nil
}

// mounted reports whether a Secret is there that is mounted to a folder, and has anything. The kubelet's own entries, which begin
// with two dots, are there without any.
func mounted(folder string) bool {
	names, err := os.ReadDir(folder)
	return err == nil && slices.ContainsFunc(names, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), "..") })
}

// latestOf the stanzas of a repository, or the one that is named.
func latestOf(ctx context.Context, r pgbackrest.Repository, s pgmember.Source, f pgbackrest.Folders) (pgbackrest.Stanza, error) {
	run, err := pgbackrest.Reader(s.Path, s.Stanza, s.Processes, r, f).Runner(filepath.Join(f.Lock, "latest.conf"))
	if err != nil {
		return pgbackrest.Stanza{}, err
	}
	all, err := run.Info(ctx, s.Stanza)
	return pgbackrest.Latest(all), err
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
