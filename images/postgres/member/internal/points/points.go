// SPDX-License-Identifier: Apache-2.0

// Package points names moments of a server that runs, so that a restore can end at one of them.
package points

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

const (
	// keptPoints are written down, so that a name that is still requested is not given twice, and reportedPoints reported.
	keptPoints, reportedPoints = 1000, 16
	// archivedWithin is how long the segment of a restore point is waited for at a time.
	archivedWithin = 10 * time.Second
	// pause between two looks at the archive, and limit of one try.
	pause = time.Second
	limit = time.Minute
)

// Points are the restore points of a repository. The zero value has read none.
type Points struct {
	// path of the repository whose points are in all, and stanza that this member archives to.
	path, stanza string
	all          []members.RestorePoint
	// made was made here and is not written down yet, in segment.
	made    *members.RestorePoint
	segment string
	at      time.Time
	// wait is why the requested one does not exist.
	wait string
}

// Wait is why the requested restore point does not exist yet; "" when it does, and when none is requested.
func (p *Points) Wait() string { return p.wait }

// Name the moment, if a name is requested that the stanza does not have. It needs a backup that a restore begins with: facts are
// what the repository has. Only the leader may call it.
func (p *Points) Name(ctx context.Context, log *slog.Logger, s pgmember.Backup, facts members.BackupReport) {
	err := p.name(ctx, log, s, facts)
	p.wait = ""
	if err != nil {
		p.wait = err.Error()
	}
}

func (p *Points) name(ctx context.Context, log *slog.Logger, s pgmember.Backup, facts members.BackupReport) error {
	if !facts.Asked {
		return nil // what is wrong with the repository is reported already
	}
	objects, err := objectstore.Configured(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if p.path != s.Path || p.stanza != s.Stanza {
		var all []members.RestorePoint
		if _, err := objects.Read(ctx, objectstore.RestorePoints(s.Path), &all); err != nil {
			return err
		}
		*p = Points{path: s.Path, stanza: s.Stanza, all: all}
	}
	if s.RestorePoint == "" {
		p.made = nil
		return nil
	}
	if i := slices.IndexFunc(p.all, func(r members.RestorePoint) bool { return r.Name == s.RestorePoint }); i >= 0 {
		p.made = nil
		if p.all[i].Stanza != s.Stanza {
			return fmt.Errorf("the name was given at %s, to the data whose backups are in %s: choose another name", p.all[i].At, p.all[i].Stanza)
		}
		return nil
	}
	if facts.Label == "" {
		return errors.New("it waits for the first backup, which a restore begins with")
	}
	if p.made == nil || p.made.Name != s.RestorePoint {
		// The label is another one at each try, so that one that was made and not written down is never taken for it.
		label := s.RestorePoint + "@" + strconv.FormatInt(time.Now().UnixMilli(), 36)
		made, err := managed.MakePoint(ctx, pgmember.FolderSocket, label)
		if err != nil {
			return err
		}
		p.segment, p.at = made.Segment, made.At
		p.made = &members.RestorePoint{
			Name: s.RestorePoint, Label: label, Stanza: s.Stanza, At: made.At.UTC().Format(time.RFC3339), LSN: made.LSN, Timeline: made.Timeline,
		}
		log.Info("made a restore point", "name", s.RestorePoint, "label", label, "lsn", made.LSN)
	}
	if err := p.archived(ctx); err != nil {
		return err
	}
	all := append(slices.Clone(p.all), *p.made)
	all = all[max(0, len(all)-keptPoints):]
	if err := objects.Write(ctx, objectstore.RestorePoints(s.Path), all); err != nil {
		return err
	}
	p.all, p.made = all, nil
	return nil
}

// archived waits a while until the archive has the restore point that was made. One whose segment was dropped is forgotten, and
// the next try makes another.
func (p *Points) archived(ctx context.Context) error {
	status := filepath.Join(pgmember.FolderData, "pg_wal", "archive_status", p.segment)
	for until := time.Now().Add(archivedWithin); ; loop.Sleep(ctx, pause) {
		_, err := os.Stat(status + ".ready")
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot find out whether the restore point is archived: %w", err)
		}
		if ctx.Err() != nil || time.Now().After(until) {
			return errors.New("it waits for the archive, which does not have it yet: see the condition ArchiveHealthy")
		}
	}
	a, err := pgbackrest.ReadArchived(layout.Archive)
	if err != nil {
		return err
	}
	// Drops are recorded by the minute.
	if a.Dropped != nil && a.Dropped.After(p.at.Add(-time.Minute)) {
		p.made = nil
		return errors.New("it was made, and the archive did not take it: it is made again when the archive works, see the condition ArchiveHealthy")
	}
	return nil
}

// Restorable are the last points, and the requested one, that can be restored with the backups there are.
func (p *Points) Restorable(earliest, asked string) []members.RestorePoint {
	from, err := time.Parse(time.RFC3339, earliest)
	if err != nil {
		return nil
	}
	var out []members.RestorePoint
	for i, r := range p.all {
		at, err := time.Parse(time.RFC3339, r.At)
		if err != nil || r.Stanza != p.stanza || at.Before(from) || i < len(p.all)-reportedPoints && r.Name != asked {
			continue
		}
		out = append(out, r)
	}
	return out
}
