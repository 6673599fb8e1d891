// SPDX-License-Identifier: Apache-2.0

// Package points names moments of a server that runs, so that a restore can end at one of them. It is what restore points of every engine have
// in common: each name is given once, to a moment that the archive has, and is written down beside the backups.
package points

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/report"
)

// kept points are written down, so that a name that is still requested is not given twice, and reported ones are in a report.
const kept, reported = 1000, 16

// Errors of an Engine whose archive does not have a restore point.
var (
	// ErrWaits is returned while it may still come.
	ErrWaits = errors.New("it waits for the archive, which does not have it yet: see the condition ArchiveHealthy")
	// ErrDropped is returned when it never will. The next try makes another one.
	ErrDropped = errors.New("it was made, and the archive did not take it: it is made again when the archive works, see the condition ArchiveHealthy")
)

// A Point is a restore point as it is written down.
type Point struct {
	members.RestorePoint

	// Mark is its own transaction, where LSN has all transactions up to it. A report has it in place of that, because it is shorter.
	Mark string `json:"mark,omitempty"`
}

// An Engine makes restore points.
type Engine interface {
	// Make a restore point of a label: it sets all fields but the name, the label and the stanza.
	Make(ctx context.Context, p *Point) error

	// Archived returns nil when the archive has all that a restore to a point needs. It may set fields that are known only then.
	Archived(ctx context.Context, p *Point) error
}

// Objects beside the backups: the one with the restore points of all stanzas. It is the only memory of them. Like backups, it outlasts members,
// volumes and the Database.
type Objects interface {
	// Read all points.
	Read(ctx context.Context, all *[]Point) error

	// Change reads all points, lets a function change them, and writes them.
	Change(ctx context.Context, all *[]Point, change func()) error
}

// A Request is what a member has to know to name a moment.
type Request struct {
	// Path of the repository, and Stanza that this member archives to.
	Path, Stanza string

	// Name that is requested; "" for none.
	Name string

	// Facts are what the repository has.
	Facts members.BackupReport
}

// Points are the restore points of a repository. The zero value has read none.
type Points struct {
	path, stanza string
	all          []Point
	// made was made here and is not written down yet.
	made *Point
	// wait is why the requested one does not exist.
	wait string
}

// Wait is why the requested restore point does not exist yet; "" when it does, and when none is requested.
func (p *Points) Wait() string { return p.wait }

// Made reports whether a restore point was made that is not written down yet.
func (p *Points) Made() bool { return p.made != nil }

// Expire what was read: it is read again before the next name is given.
func (p *Points) Expire() { p.path, p.stanza = "", "" }

// Name the moment, if a name is requested that the stanza does not have. It needs a backup that a restore begins with. Only the leader may call
// it. Without objects it gives no name.
func (p *Points) Name(ctx context.Context, log *slog.Logger, r Request, o Objects, e Engine) {
	err := p.name(ctx, log, r, o, e)
	p.wait = ""
	if err != nil {
		p.wait = report.Lasting(err)
	}
}

func (p *Points) name(ctx context.Context, log *slog.Logger, r Request, o Objects, e Engine) error {
	unread := p.path != r.Path || p.stanza != r.Stanza
	if !r.Facts.Asked || unread && o == nil {
		return nil // what is wrong with the repository is reported already
	}
	if unread {
		var all []Point
		if err := o.Read(ctx, &all); err != nil {
			return err
		}
		*p = Points{path: r.Path, stanza: r.Stanza, all: all}
	}
	if r.Name == "" {
		p.made = nil
		return nil
	}
	if i := slices.IndexFunc(p.all, func(one Point) bool { return one.Name == r.Name }); i >= 0 {
		p.made = nil
		if p.all[i].Stanza != r.Stanza {
			return fmt.Errorf("the name was given at %s, to the data whose backups are in %s: choose another name", p.all[i].At, p.all[i].Stanza)
		}
		return nil
	}
	if r.Facts.Label == "" {
		return errors.New("it waits for the first backup, which a restore begins with")
	}
	if p.made == nil || p.made.Name != r.Name {
		// The label is another one at each try, so that one that was made and not written down is never taken for it.
		label := r.Name + "@" + strconv.FormatInt(time.Now().UnixMilli(), 36)
		made := &Point{RestorePoint: members.RestorePoint{Name: r.Name, Label: label, Stanza: r.Stanza}}
		if err := e.Make(ctx, made); err != nil {
			return err
		}
		p.made = made
		log.Info("made a restore point", "name", r.Name, "label", label, "lsn", made.LSN, "transaction", made.Mark)
	}
	if err := e.Archived(ctx, p.made); err != nil {
		if errors.Is(err, ErrDropped) {
			p.made = nil
		}
		return err
	}
	if o == nil {
		return ErrWaits
	}
	return p.write(ctx, o)
}

// write down the point that was made.
func (p *Points) write(ctx context.Context, o Objects) error {
	// Another member may have been the leader meanwhile, and have added some. The first one of a name counts.
	var all []Point
	if err := o.Change(ctx, &all, func() {
		if !slices.ContainsFunc(all, func(one Point) bool { return one.Name == p.made.Name }) {
			all = append(all, *p.made)
		}
		all = all[max(0, len(all)-kept):]
	}); err != nil {
		return err
	}
	p.all, p.made = all, nil
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
		if err != nil || r.Stanza != p.stanza || at.Before(from) || i < len(p.all)-reported && r.Name != asked {
			continue
		}
		if r.Mark != "" {
			r.LSN = r.Mark
		}
		out = append(out, r.RestorePoint)
	}
	return out
}
