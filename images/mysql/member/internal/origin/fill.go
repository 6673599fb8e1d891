// SPDX-License-Identifier: Apache-2.0

// Package origin makes the data that a Database begins with from a backup, and sees to it that one that begins empty does not take the place
// of one that was backed up.
package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/existing"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/restore"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/server"
)

// leastMemory is what the server of a restore takes for pages when the settings of members do not say, in bytes.
const leastMemory = 128 << 20

// A Filler fills the volume of a member.
type Filler struct {
	// Series of MySQL that the member has.
	Series string
	// Server takes what the server says that replays.
	Server io.Writer
	Log    *slog.Logger
}

// Fill the volume of the member with the data of a backup, in the place of what is there. The repository is only read. The data is there as a
// whole or not at all: what a try before left is removed.
func (f Filler) Fill(ctx context.Context, from mysqlmember.Source) error {
	base, err := os.ReadFile(layout.Base)
	if err != nil {
		return fmt.Errorf("cannot read the configuration of the server: %w", err)
	}
	if err := errors.Join(os.RemoveAll(layout.Fresh), os.RemoveAll(layout.Scratch)); err != nil {
		return fmt.Errorf("cannot remove what is left of a restore: %w", err)
	}
	repo, plan, err := f.choose(ctx, from)
	if err != nil {
		return err
	}
	// The data of a server that never was in a group takes room that is needed now. From the new name on there is none: half of it is worse.
	if err := os.Rename(mysqlmember.FolderData, layout.Fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot make room for a restore: %w", err)
	}
	if err := os.RemoveAll(layout.Fresh); err != nil {
		return fmt.Errorf("cannot make room for a restore: %w", err)
	}
	parameters := server.Parameters(string(base))
	memory, err := strconv.ParseInt(parameters["innodb_buffer_pool_size"], 10, 64)
	if err != nil {
		memory = leastMemory
	}
	r := restore.Restorer{Repository: repo, Log: f.Log, Server: server.Scratch{
		Data: layout.Fresh, Folder: mysqlmember.FolderPrivate, Memory: memory, Settings: server.Storing(string(base)), Log: f.Server,
	}}
	running, _, err := r.Restore(ctx, plan)
	if err != nil {
		return err
	}
	if err := running.Renew(ctx); err != nil {
		running.Kill()
		return err
	}
	if err := running.Stop(); err != nil {
		return err
	}
	if err := server.Tidy(layout.Fresh); err != nil {
		return err
	}
	if err := os.RemoveAll(layout.Scratch); err != nil {
		return fmt.Errorf("cannot remove what is left of a restore: %w", err)
	}
	return server.Install(layout.Fresh)
}

// choose what is restored.
func (f Filler) choose(ctx context.Context, from mysqlmember.Source) (*repository.Repository, restore.Plan, error) {
	place, err := placeOf(ctx, from)
	if err != nil {
		return nil, restore.Plan{}, err
	}
	repo, err := repository.Open(ctx, place)
	if err != nil {
		return nil, restore.Plan{}, err
	}
	target := restore.Target{At: from.At}
	if from.RestorePoint != "" {
		point, stanza, err := pointOf(ctx, repo, from)
		if err != nil {
			return nil, restore.Plan{}, err
		}
		target, place.Stanza = restore.Target{Point: &point}, stanza
	}
	if target.At != nil && target.At.After(time.Now()) {
		return nil, restore.Plan{}, fmt.Errorf("%s is requested, which is in the future: choose an earlier time, or none for the latest", target.At.UTC().Format(time.RFC3339))
	}
	if place.Stanza == "" {
		all, err := repo.Backups(ctx)
		if err != nil {
			return nil, restore.Plan{}, err
		}
		place.Stanza = latest(all).Stanza
	}
	if repo, err = repository.Open(ctx, place); err != nil {
		return nil, restore.Plan{}, err
	}
	backups, err := repo.Backups(ctx)
	if err != nil {
		return nil, restore.Plan{}, err
	}
	if err := repo.Unreadable(); err != nil {
		f.Log.Warn("not all backups count", "error", err)
	}
	if len(backups) == 0 || place.Stanza == "" {
		return nil, restore.Plan{}, fmt.Errorf("%s has no backup under %s: see spec.from or spec.restore of the Database", repo.Where(), from.Path)
	}
	logs, err := repo.Logs(ctx)
	if err != nil {
		return nil, restore.Plan{}, err
	}
	plan, err := restore.Choose(backups, logs, target)
	if err != nil {
		return nil, restore.Plan{}, err
	}
	switch b := plan.Backup; {
	case b.Series != f.Series:
		return nil, restore.Plan{}, fmt.Errorf("the backups of %s have version %s, and this Database has version %s: data is restored in its own version only, "+
			"so make another Database with version %[2]s", b.Stanza, b.Series, f.Series)
	case b.Set.Empty():
		return nil, restore.Plan{}, fmt.Errorf("the backup %s has no transaction at all: choose a later one", b.Label)
	}
	return repo, plan, nil
}

// placeOf the backups that the Database begins with. A source that has a bucket and a volume has moved: the one with the latest backup is meant.
func placeOf(ctx context.Context, from mysqlmember.Source) (repository.Place, error) {
	inBucket, onVolume := layout.Source(from), layout.Volume(from)
	if from.Either == "" {
		return inBucket, nil
	}
	switch hasBucket, hasVolume := existing.Mounted(inBucket.Secret), existing.Mounted(onVolume.Secret); {
	case !hasBucket && !hasVolume:
		return inBucket, &repository.NotReadyError{Message: existing.NoSource}
	case !hasVolume:
		return inBucket, nil
	case !hasBucket:
		return onVolume, nil
	}
	best, last := inBucket, time.Time{}
	for _, p := range []repository.Place{inBucket, onVolume} {
		repo, err := repository.Open(ctx, p)
		if err != nil {
			return p, err
		}
		all, err := repo.Backups(ctx)
		if err != nil {
			return p, err
		}
		if ended := latest(all).Ended; !ended.Before(last) {
			best, last = p, ended
		}
	}
	return best, nil
}

// latest of backups; zero when there is none.
func latest(all []repository.Backup) repository.Backup {
	if len(all) == 0 {
		return repository.Backup{}
	}
	return slices.MaxFunc(all, func(a, b repository.Backup) int { return a.Ended.Compare(b.Ended) })
}

// pointOf the requested name, and the stanza that it is in.
func pointOf(ctx context.Context, repo *repository.Repository, from mysqlmember.Source) (restore.Point, string, error) {
	var all []members.RestorePoint
	if _, err := repo.ReadObject(ctx, layout.RestorePoints, &all); err != nil {
		return restore.Point{}, "", err
	}
	i := slices.IndexFunc(all, func(r members.RestorePoint) bool { return r.Name == from.RestorePoint })
	if i < 0 {
		return restore.Point{}, "", fmt.Errorf("there is no restore point %q among the %d of %s: see status.backup.restorePoints of the source", from.RestorePoint, len(all), from.Path)
	}
	point := all[i]
	if from.Stanza != "" && from.Stanza != point.Stanza {
		return restore.Point{}, "", fmt.Errorf("the restore point %q is requested of the stanza %s, and it is one of %s", from.RestorePoint, from.Stanza, point.Stanza)
	}
	set, err := gtid.Parse(point.LSN)
	if err != nil {
		return restore.Point{}, "", fmt.Errorf("cannot restore to the restore point %q: %w", point.Name, err)
	}
	return restore.Point{Name: point.Name, At: point.At, Set: set}, point.Stanza, nil
}
