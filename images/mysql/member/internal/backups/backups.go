// SPDX-License-Identifier: Apache-2.0

// Package backups brings binary logs to the archive, and reports how archive and backups are.
package backups

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/points"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/vault"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

const (
	// Pauses: of a leader, of one that waits for something or whose archive fails, and of the others.
	leadEvery   = 5 * time.Second
	soon        = time.Second
	failedEvery = 15 * time.Second
	followEvery = time.Minute
	// limit of one request to the repository, and serverLimit of one to the server.
	limit       = 30 * time.Second
	serverLimit = 10 * time.Second
)

// A Server whose binary logs are archived.
type Server interface {
	Logs(ctx context.Context) (mysql.Logs, error)
	PurgeLogs(ctx context.Context, itself bool) error
	PurgeBefore(ctx context.Context, file string) error
	Rotate(ctx context.Context) error
	Mark(ctx context.Context, server string, number int64) error
}

// A Catalog of backups. Unreadable says which ones the last Backups left out.
type Catalog interface {
	Backups(ctx context.Context) ([]repository.Backup, error)
	Unreadable() error
}

// Objects beside the backups.
type Objects interface {
	ReadObject(ctx context.Context, name string, into any) (bool, error)
	WriteObject(ctx context.Context, name string, value any) error
	ChangeObject(ctx context.Context, name string, value any, change func() error) error
}

// A Repository that logs are brought to. Usage says how full the volume is that it is on, if it is on one.
type Repository interface {
	Catalog
	Objects

	Usage(ctx context.Context) (vault.Usage, bool, error)
	Claim(ctx context.Context, group, present string) error
	Logs(ctx context.Context) ([]repository.Log, error)
	SaveLog(ctx context.Context, path string, l repository.Log) error
}

// A Keeper archives the binary logs of a member and reports how archive and backups are. Nothing else waits for it.
type Keeper struct {
	Server   Server
	Reporter *report.Reporter
	Log      *slog.Logger
	// Config reads what the member has to know, and Group is the name that the group of a generation begins with.
	Config func() (mysqlmember.Config, error)
	Group  func(generation int) string
	// `Runs` and `Leads` report whether the server runs, and whether this member is the leader.
	Runs, Leads func() bool
	// Open the repository at a Place.
	Place func(mysqlmember.Backup) repository.Place
	Open  func(context.Context, repository.Place) (Repository, error)
	// Disk is how full the volume is, as volume.Class says it.
	Disk func() string
	// Data is the folder of the server, and Note the file that says how archiving is.
	Data, Note string

	archiver     archiver
	inventory    inventory
	points       points.Points
	verification verification
	room         room
	// mark is the transaction of the restore point that was made last.
	mark gtid.Set
	// repository that was opened, for what.
	repository Repository
	opened     string
	// key is what is wrong with the key, if anything is.
	key string
	// noted last. It counts while the file cannot be read, which is not written then.
	noted note
	// last error that was logged.
	last string
}

// New Keeper of a member's server and its repository.
func New(server *mysql.Server, names layout.Names, runs, leads func() bool, reporter *report.Reporter, log *slog.Logger) *Keeper {
	return &Keeper{
		Server: server, Reporter: reporter, Log: log, Config: layout.ReadConfig, Group: names.GroupName, Runs: runs, Leads: leads,
		Disk: func() string { return fullness(mysqlmember.FolderVolume) },
		Data: mysqlmember.FolderData, Note: layout.Archive, Place: layout.Repository,
		Open: func(ctx context.Context, p repository.Place) (Repository, error) { return repository.Open(ctx, p) },
	}
}

// Once looks at logs and backups, does what is due, and returns the pause before the next look.
func (k *Keeper) Once(ctx context.Context) time.Duration {
	pause, err := k.once(ctx)
	text := ""
	if err != nil {
		text = report.Lasting(err)
	}
	if text != k.last && text != "" {
		k.Log.Warn("backups do not work", "error", text)
	}
	k.last = text
	return pause
}

func (k *Keeper) once(ctx context.Context) (time.Duration, error) {
	config, err := k.Config()
	if err != nil {
		return failedEvery, err
	}
	k.archiver.server, k.archiver.log, k.archiver.disk = k.Server, k.Log, k.Disk
	k.archiver.reader.folder, k.archiver.reader.log = k.Data, k.Log
	if config.Backup == nil || !config.Backup.Enabled {
		return followEvery, k.off(ctx, config)
	}
	s, leads := *config.Backup, k.Leads()
	if !leads {
		k.forget()
	}
	k.archiver.follow(s.Stanza, leads)
	if !k.Runs() {
		return failedEvery, nil // what was known stays
	}
	before, err := k.note()
	pause, n, kerr := k.keep(ctx, config, before, leads)
	k.noted = n
	if err == nil && n != before {
		err = n.write(k.Note)
	}
	err = errors.Join(err, kerr)
	k.write(s, n, leads)
	return pause, err
}

// note of how archiving is. A damaged one may have had a gap, so it counts as one: a backup follows.
func (k *Keeper) note() (note, error) {
	n, err := readNote(k.Note)
	switch {
	case errors.Is(err, errNote):
		k.Log.Error("the note of how archiving is counts as one of a gap", "error", err)
		n = note{}.drops()
		return n, n.write(k.Note)
	case err != nil:
		return k.noted, err
	}
	return n, nil
}

// forget what only a leader knows.
func (k *Keeper) forget() {
	k.inventory, k.points, k.verification, k.room, k.repository, k.opened, k.key = inventory{}, points.Points{}, verification{}, room{}, nil, "", ""
}

// off: nothing is archived, and the server itself removes its logs by their age. This program removes the oldest ones of a volume with next to no
// room: they are of use to other members only, which can copy the data instead.
func (k *Keeper) off(ctx context.Context, config mysqlmember.Config) error {
	k.forget()
	k.archiver.forget()
	k.Reporter.Change(func(r *members.Report) { r.Backup, r.RestorePoints = members.BackupReport{}, nil })
	full := k.Disk() == volume.DiskFull
	if config.Backup == nil && !full || !k.Runs() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, serverLimit)
	defer cancel()
	logs, err := k.Server.Logs(ctx)
	if err == nil && !logs.Purges {
		err = k.Server.PurgeLogs(ctx, true)
	}
	for i := 1; err == nil && full && i < len(logs.Files); i++ {
		err = k.Server.PurgeBefore(ctx, logs.Files[i].Name)
		k.Log.Warn("removed a binary log, because the volume has no room", "file", logs.Files[i-1].Name, "error", err)
		full = k.Disk() == volume.DiskFull
	}
	return err
}

// keep the logs and the archive. It returns the pause before the next time, and how archiving is.
func (k *Keeper) keep(ctx context.Context, config mysqlmember.Config, n note, leads bool) (time.Duration, note, error) {
	s := *config.Backup
	h, err := k.look(ctx)
	if err != nil {
		// A file that was just removed is no failure of the archive, and neither is a server that does not answer.
		return failedEvery, n, err
	}
	if !leads {
		return followEvery, n.fails(nil), k.follow(ctx, s, h)
	}
	asking, cancel := context.WithTimeout(ctx, serverLimit)
	h, err = k.archiver.rotate(asking, h, k.points.Made() && !k.archiver.archived.Contains(k.mark))
	cancel()
	if err != nil {
		return failedEvery, n, err
	}
	n, err = k.lead(ctx, config, n, h)
	if k.key = keyTrouble(err); err != nil {
		return failedEvery, n, err
	}
	if k.points.Made() {
		return soon, n, nil
	}
	return leadEvery, n, nil
}

// lead: archive what is closed, read what the repository has, and drop what may not wait. It returns how archiving is after that.
func (k *Keeper) lead(ctx context.Context, config mysqlmember.Config, n note, h held) (note, error) {
	s := *config.Backup
	guarded, cancel := k.archiver.guard(ctx, h, s)
	r, err := k.open(guarded, config, h.Group)
	k.inventory.ask(guarded, r, err)
	k.inventory.warn(k.Log)
	if err == nil {
		err = k.archiver.bring(guarded, r, h)
	}
	full := errors.Is(context.Cause(guarded), errFull)
	if full {
		err = nil
	} else {
		n = n.fails(err)
		k.verification.read(guarded, r, s, k.Log)
		k.room.measure(guarded, r, k.Log)
	}
	cancel(nil)
	// What was written meanwhile counts.
	if now, err := k.archiver.reader.read(ctx, k.Server); err == nil {
		h = now
	}
	k.name(ctx, r, h, s)
	dropped, terr := k.archiver.tidy(ctx, h, s)
	if dropped {
		n = n.drops()
	}
	if err == nil && !full {
		n = k.missing(h, n)
	}
	return n, errors.Join(err, terr)
}

// name the moment, if that is requested. The repository is nil while it cannot be opened.
func (k *Keeper) name(ctx context.Context, r Repository, h held, s mysqlmember.Backup) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var objects points.Objects
	if r != nil {
		objects = pointsOf{r}
	}
	k.points.Name(ctx, k.Log, points.Request{Path: s.Path, Stanza: s.Stanza, Name: s.RestorePoint, Facts: k.inventory.facts}, objects,
		marker{server: k.Server, archiver: &k.archiver, held: h, mark: &k.mark})
}

// look at the logs, which the program alone removes.
func (k *Keeper) look(ctx context.Context) (held, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h, err := k.archiver.reader.read(ctx, k.Server)
	if err == nil && h.Purges {
		err = k.Server.PurgeLogs(ctx, false)
	}
	return h, err
}

// follow: keep logs until the archive has their transactions, in case that this member becomes the leader. Of what it drops the leader may
// have a copy, so this is no gap yet.
func (k *Keeper) follow(ctx context.Context, s mysqlmember.Backup, h held) error {
	var err error
	if k.archiver.needs(h, s) {
		var r Repository
		if r, err = k.Open(ctx, k.Place(s)); err == nil {
			reading, cancel := context.WithTimeout(ctx, limit)
			err = k.archiver.learn(reading, r, h)
			cancel()
		}
	}
	_, tidied := k.archiver.tidy(ctx, h, s)
	return errors.Join(err, tidied)
}

// missing transactions are noted, once after each backup.
func (k *Keeper) missing(h held, n note) note {
	last := k.inventory.last
	if last == nil || n.Dropped != nil && n.Dropped.After(last.Began) {
		return n
	}
	if lost := k.archiver.lost(h, last); !lost.Empty() {
		k.Log.Warn("the archive lacks transactions since the last backup", "transactions", lost.String(), "backup", last.Label)
		n.Dropped = now()
	}
	return n
}

// open the repository for a group, again when that is another one, its Secrets changed, or its backups vanished: it is another bucket then, or an
// empty one.
func (k *Keeper) open(ctx context.Context, config mysqlmember.Config, group string) (Repository, error) {
	p := k.Place(*config.Backup)
	opened := fmt.Sprint(p, group, content(p.Secret), content(p.Key))
	if opened != k.opened || k.inventory.vanished {
		k.opened, k.repository, k.inventory.vanished = opened, nil, false
		k.inventory.asked, k.archiver.read = time.Time{}, time.Time{}
		k.points.Expire()
	}
	if k.repository != nil {
		return k.repository, nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := k.Open(ctx, p)
	if err == nil {
		err = r.Claim(ctx, k.Group(config.Generation), group)
	}
	if err != nil {
		return nil, err
	}
	k.repository = r
	return r, nil
}

// content of a folder of a Secret, as a sum.
func content(folder string) string {
	if folder == "" {
		return ""
	}
	sum := sha256.New()
	files, _ := filepath.Glob(filepath.Join(folder, "*")) // the pattern is well formed
	for _, f := range files {
		raw, err := os.ReadFile(filepath.Clean(f))
		if err == nil {
			_, _ = io.WriteString(sum, f+"\n"+string(raw)+"\n")
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// fullness of a volume, as volume.Class says it. When that is unknown nothing is dropped for it.
func fullness(folder string) string {
	u, err := volume.Measure(folder)
	if err != nil {
		return volume.DiskOk
	}
	return volume.Class("", u.Percent)
}

// write how backups are to the report. Every member reports what it dropped as a leader; the leader reports everything else.
func (k *Keeper) write(s mysqlmember.Backup, n note, leads bool) {
	out := members.BackupReport{Dropped: stamp(n.Dropped)}
	var restorable []members.RestorePoint
	if leads {
		dropped := out.Dropped
		out = k.inventory.facts
		out.Dropped, out.Verification, out.RestorePointWait, out.Repository = dropped, k.verification.report, k.points.Wait(), k.room.report
		if k.key != "" {
			out.Key = k.key
		}
		switch {
		case n.Failing != nil:
			out.Archive, out.Since, out.Message = members.ArchiveFailing, stamp(n.Failing), n.Message
		case !k.archiver.read.IsZero():
			out.Archive = members.ArchiveOK
		}
		// Restore points have times that are rounded down.
		restorable = k.points.Restorable(stamp(k.inventory.first), s.RestorePoint)
	}
	k.Reporter.Change(func(r *members.Report) { r.Backup, r.RestorePoints = out, restorable })
}
