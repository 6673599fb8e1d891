// SPDX-License-Identifier: Apache-2.0

// Package backups keeps pgBackRest running beside the server, and reports how archive and backups are.
package backups

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/points"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

const (
	// archiveEvery is how often archiving is checked, and soon the pause while certificates are missing or the server ended.
	archiveEvery = 15 * time.Second
	soon         = time.Second
	// limit of one request to the repository or the server.
	limit = time.Minute
)

// A Keeper keeps pgBackRest's configuration as the mounted files say, runs its server, and reports how archive and backups are.
type Keeper struct {
	// IP of the pod, which pgBackRest's server listens on.
	IP string
	// `Leads` reports whether this member is the leader.
	Leads    func() bool
	Reporter *report.Reporter
	// BackupEnded wakes the Keeper when a backup ended, ArchiveNoted when the result of archiving changed.
	BackupEnded, ArchiveNoted loop.Wakeup
	Log                       *slog.Logger

	server     server
	inventory  inventory
	continuity continuity
	records    records
	points     points.Points
	marker     marker
	// last error that was logged.
	last string
}

// Run until the context ends.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.server.end()
	for {
		k.once(ctx)
		pause := archiveEvery
		if k.server.waits {
			pause = soon
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.BackupEnded:
			k.inventory.readOften()
		case <-k.ArchiveNoted:
		case <-k.server.ended():
			loop.Sleep(ctx, soon)
		case <-time.After(pause):
		}
	}
}

func (k *Keeper) once(ctx context.Context) {
	if k.Leads() {
		k.Reporter.Clear(members.ReasonRestoreFailed)
	}
	config, err := layout.ReadConfig()
	if err != nil {
		k.warn(err)
		return
	}
	if config.Backup == nil || !config.Backup.Enabled {
		k.server.end()
		k.inventory.forget()
		k.continuity = continuity{}
		k.points = points.Points{}
		k.Reporter.Change(func(r *members.Report) { r.Backup, r.RestorePoints = members.BackupReport{}, nil })
		return
	}
	s := *config.Backup
	changed, err := k.server.configure(s, k.IP, k.Log)
	if changed {
		k.inventory.expire()
	}
	k.warn(err)
	k.server.hasten(ctx, k.Leads(), k.Log)
	k.write(s, err) // a repository that does not answer takes its time below
	k.continuity.keep(ctx, s, k.Leads(), k.Log)
	k.inventory.ask(ctx, s, k.Leads(), err)
	k.records.read(ctx, s, k.Leads(), k.inventory.facts.Unread == "", k.Log)
	if k.Leads() {
		k.name(ctx, s)
	} else {
		k.points = points.Points{}
	}
	k.write(s, err)
}

// name the moment, if that is requested.
func (k *Keeper) name(ctx context.Context, s pgmember.Backup) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	k.points.Name(ctx, k.Log, points.Request{Path: s.Path, Stanza: s.Stanza, Name: s.RestorePoint, Facts: k.inventory.facts},
		pointsOf{s}, &k.marker)
}

// write how backups are to the report.
func (k *Keeper) write(s pgmember.Backup, trouble error) {
	backup := k.report(trouble)
	restorable := k.points.Restorable(backup.Earliest, s.RestorePoint)
	k.Reporter.Change(func(r *members.Report) { r.Backup, r.RestorePoints = backup, restorable })
}

// warn of an error, once while it stays the same.
func (k *Keeper) warn(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != k.last && text != "" {
		k.Log.Warn("backups do not work", "error", text)
	}
	k.last = text
}

// report how backups are. Every member reports what it dropped; the leader reports everything else.
func (k *Keeper) report(trouble error) members.BackupReport {
	archived, err := pgbackrest.ReadArchived(layout.Archive)
	if err != nil {
		k.Log.Warn("cannot read the result of archiving", "error", err)
	}
	if !k.Leads() {
		return members.BackupReport{Dropped: stamp(archived.Dropped)}
	}
	out := k.inventory.facts
	out.Verification, out.RestorePointWait, out.Repository = k.records.verification, k.points.Wait(), k.records.repository
	out.Dropped, out.Archive = stamp(archived.Dropped), members.ArchiveOK
	if archived.Failing != nil {
		out.Archive, out.Since, out.Message = members.ArchiveFailing, stamp(archived.Failing), archived.Message
	}
	var missing *pgbackrest.NotReadyError
	if errors.As(trouble, &missing) {
		out.Archive, out.Message = members.ArchiveFailing, missing.Message
		out.Key = missing.Key
	}
	return out
}

// stamp of a time, or nothing.
func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
