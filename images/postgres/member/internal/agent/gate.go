// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dcs"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/postmaster"
)

// unstarted is how long a member with an empty volume waits for others whose pods do not start, when it is unknown whether they
// have a volume. A Database has to begin on the nodes that there are.
const unstarted = time.Minute

// A gate decides whether the member may run. Only the Supervisor's loop uses it.
type gate struct {
	names    layout.Names
	begun    time.Time
	pods     *pods.Client
	dcs      *dcs.Client
	copies   *certificate.Copies
	upgrader *Upgrader
	reporter *Reporter
	label    loop.Wakeup
	log      *slog.Logger

	backups existingBackups
	// fence is the report that the pod is known to have of a stop for a fence; nil until it was read.
	fence *fenceReported
}

// check returns what blocks this member: a Problem that a person has to solve, a Wait for other members, or another error.
func (g *gate) check(ctx context.Context) error {
	programs := layout.Programs(g.names.Version)
	if err := volume.CheckImage(layout.Patroni, filepath.Join(programs, "postgres"), filepath.Join(programs, "pg_controldata")); err != nil {
		return err
	}
	if err := volume.Claim(layout.Mark, pgmember.FolderData, g.names.Identity, g.names.Version); err != nil {
		return err
	}
	if err := pgdata.CheckVersion(pgmember.FolderData, g.names.Version); err != nil {
		return err
	}
	if _, err := g.copies.Refresh(time.Now()); err != nil {
		return err
	}
	if err := g.checkFence(ctx); err != nil {
		return err
	}
	if _, running := postmaster.Find(pgmember.FolderData); running {
		return nil // only Patroni has to start
	}
	return g.checkData(ctx, programs)
}

// checkData returns what this member has to wait for before its PostgreSQL starts.
func (g *gate) checkData(ctx context.Context, programs string) error {
	system, err := g.dcs.System(ctx)
	if err != nil {
		return err
	}
	own, err := pgdata.Read(ctx, programs, pgmember.FolderData)
	if err != nil {
		return err
	}
	if system != "" {
		if !own.Empty && own.System != system {
			return &volume.Problem{Reason: members.ReasonVolumeOfAnother, Message: fmt.Sprintf("the data has the system identifier %s, and the Database "+
				"has %s: it began again without this volume. Remove the volume if its data is not needed", own.System, system)}
		}
		return nil
	}
	config, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	if config.Upgrade != nil {
		if err := g.upgrader.advance(ctx, *config.Upgrade, own.Empty); err != nil {
			return err
		}
		// Patroni would make new data where there is none.
		if empty, err := volume.Empty(pgmember.FolderData); empty || err != nil {
			return errors.Join(errors.New("the upgrade ended without data"), err)
		}
		return nil
	}
	list, err := g.pods.List(ctx)
	if err != nil {
		return err
	}
	if err := g.reportVolume(ctx, own, list); err != nil {
		return err
	}
	reported := map[string]volume.Content{}
	for _, p := range list {
		if p.Volume != nil {
			reported[p.Member] = *p.Volume
		}
	}
	if wait := volume.MayBegin(g.names.Name, own, reported, g.expected(config, list, own)); wait != nil {
		return wait
	}
	if own.Empty {
		return g.backups.check(ctx, config, g.reporter)
	}
	return nil
}

// reportVolume writes what this member's volume holds, unless its pod has that already.
func (g *gate) reportVolume(ctx context.Context, own volume.Content, list []pods.Pod) error {
	for _, p := range list {
		if p.Name == g.names.Pod && p.Volume != nil && *p.Volume == own {
			return nil
		}
	}
	return g.pods.Annotate(ctx, pods.AnnotationVolume, own)
}

// expected are the members that have to report what they hold before one begins.
func (g *gate) expected(config pgmember.Config, list []pods.Pod, own volume.Content) []string {
	if config.Volumes != nil {
		return *config.Volumes
	}
	var out []string
	for _, p := range list {
		if own.Empty && !p.Started && time.Since(g.begun) > unstarted {
			continue
		}
		out = append(out, p.Member)
	}
	return out
}

// checkFence stops PostgreSQL when there is a fence, and reports where it stopped. It returns a Wait for as long as this member
// must not run.
func (g *gate) checkFence(ctx context.Context) error {
	_, running := postmaster.Find(pgmember.FolderData)
	id, err := g.dcs.Fence(ctx)
	if err != nil {
		if running {
			return nil // Patroni has to watch over PostgreSQL also while the API server is down
		}
		return err
	}
	if id == "" {
		return g.reportFence(ctx, nil)
	}
	led, err := pgdata.Led(pgmember.FolderData)
	if err != nil {
		return err
	}
	if running && !led {
		return nil // a standby, which continues to serve
	}
	g.stopForFence(ctx)
	g.label.Call() // the label of the leader is removed at once
	own, err := pgdata.Read(ctx, layout.Programs(g.names.Version), pgmember.FolderData)
	if err != nil {
		return err
	}
	wait := &volume.Wait{Reason: members.ReasonFenced, Message: "another generation continues with the data of this one, or is about to: this member stays stopped"}
	if own.Empty || !own.Led {
		return wait
	}
	if !own.Clean {
		wait.Message = "PostgreSQL did not stop cleanly, and it is unknown which of its last writes the other generation has: the other one stops, and " +
			"this one will lead again"
		return wait
	}
	if err := g.reportFence(ctx, &members.FenceReport{ID: id, Position: own.Position, Timeline: own.Timeline, System: own.System}); err != nil {
		return err
	}
	return wait
}

// stopForFence stops PostgreSQL. One that does not stop is killed: then this generation gets a leader again, because it is
// unknown what the other one has.
func (g *gate) stopForFence(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, StopLimit)
	defer cancel()
	postmaster.Stop(limited, pgmember.FolderData)
	if _, running := postmaster.Find(pgmember.FolderData); running && ctx.Err() == nil {
		g.log.Error("ending a PostgreSQL that does not stop for the fence", "limit", StopLimit.String())
		postmaster.Kill(pgmember.FolderData)
	}
}

// fenceReported is the report of a stop for a fence that a pod has, if any.
type fenceReported struct{ at *members.FenceReport }

// reportFence writes where this member stopped, or removes it, unless its pod has that already.
func (g *gate) reportFence(ctx context.Context, f *members.FenceReport) error {
	if g.fence == nil {
		list, err := g.pods.List(ctx)
		if err != nil {
			return err
		}
		g.fence = &fenceReported{}
		for _, p := range list {
			if p.Name == g.names.Pod {
				g.fence.at = p.Fenced
			}
		}
	}
	before := g.fence.at
	if (f == nil) == (before == nil) && (f == nil || *f == *before) {
		return nil
	}
	var value any // a nil report in it would be written as null
	if f != nil {
		value = f
	}
	if err := g.pods.Annotate(ctx, members.AnnotationFenced, value); err != nil {
		g.fence = nil // it may have been written all the same
		return err
	}
	g.fence = &fenceReported{f}
	return nil
}

const (
	// existingEvery is the time between two requests for the list of backups in the repository.
	existingEvery = 10 * time.Second
	// restoreAgain is the pause after a restore that failed.
	restoreAgain = time.Minute
)

// existingBackups is what was found out about backups under this name, and when.
type existingBackups struct {
	checked time.Time
	wait    error
}

// check what a member with an empty volume has to wait for before it begins without data: an empty Database must not look like
// the one that was backed up. A Database that begins with a backup, or that may begin beside backups, waits for nothing.
func (e *existingBackups) check(ctx context.Context, config pgmember.Config, reporter *Reporter) error {
	if config.From != nil {
		return e.checkRestore(*config.From, reporter.Report().Message)
	}
	if config.Backup == nil || !config.Backup.Enabled || config.Backup.StartEmpty {
		return nil
	}
	if time.Since(e.checked) >= existingEvery {
		*e = existingBackups{time.Now(), findExisting(ctx, *config.Backup)}
	}
	return e.wait
}

// checkRestore returns what a member has to wait for before it restores, for the first time or once more. What a failed restore
// left is removed: its room is needed. The message is what was reported of it.
func (e *existingBackups) checkRestore(from pgmember.Source, message string) error {
	// A restore that was killed leaves no control file.
	if err := pgdata.Clear(pgmember.FolderData); err != nil {
		return err
	}
	// Patroni keeps what it could not begin with.
	failed := pgmember.FolderData + ".failed"
	if _, err := os.Stat(failed); err == nil {
		if err := os.RemoveAll(failed); err != nil {
			return fmt.Errorf("cannot remove what is left of a restore: %w", err)
		}
		if err := os.Remove(layout.Restored); err == nil {
			message = notReplayed(from)
		}
		*e = existingBackups{time.Now(), &volume.Wait{Reason: members.ReasonRestoreFailed, Message: message}}
	}
	if time.Since(e.checked) < restoreAgain {
		return e.wait
	}
	return nil
}

// notReplayed says why a Database cannot begin whose backup was restored.
func notReplayed(from pgmember.Source) string {
	switch {
	case from.RestorePoint != "":
		return fmt.Sprintf("the backup was restored, and what was archived does not reach the restore point %q, or PostgreSQL could not replay it: "+
			"choose another one, in another Database, or see the log of the pod", from.RestorePoint)
	case from.At != nil:
		return fmt.Sprintf("the backup was restored, and what was archived ends before %s, or PostgreSQL could not replay it: choose an "+
			"earlier moment, in another Database, or wait until more is archived", from.At.UTC().Format(time.RFC3339))
	}
	return "the backup was restored, and PostgreSQL could not replay what was archived after it: see the log of the pod"
}

// findExisting returns a Wait when there are backups under the name of the Database, or when that is unknown.
func findExisting(ctx context.Context, s pgmember.Backup) error {
	ctx, cancel := context.WithTimeout(ctx, infoLimit)
	defer cancel()
	place := pgbackrest.Place(s.Repository)
	all, err := stanzas(ctx, s)
	if err != nil {
		return &volume.Wait{Reason: members.ReasonWaitingForBucket, Message: fmt.Sprintf("it is not known yet whether %s has backups of this name: %v. "+
			"See the condition BackupFresh, or let the Database begin without regard to them: set spec.backup.onExisting to StartEmpty", place, err)}
	}
	latest := pgbackrest.Latest(all)
	if latest.Name == "" {
		return nil
	}
	from := "a Database with spec.from.backup of them"
	if s.Repository != "" {
		from = "another Database with spec.from.database of this one"
	}
	return &volume.Wait{Reason: members.ReasonBackupsExist, Message: fmt.Sprintf("%s has backups of a Database of this name, stanza %s, the last of %s, and no "+
		"volume of its data is here. Bring its volumes back, or make %s, or let this one begin empty beside them: "+
		"set spec.backup.onExisting to StartEmpty", place, latest.Name, latest.Ended().Format(time.RFC3339), from)}
}

// stanzas of the repository that this Database keeps its backups in.
func stanzas(ctx context.Context, s pgmember.Backup) ([]pgbackrest.Stanza, error) {
	repository, err := pgbackrest.Configured(s)
	if err != nil {
		return nil, err
	}
	file := layout.PgBackRest + ".existing"
	if _, err := pgbackrest.Reader(s.Path, "", repository, pgbackrest.Folders{Lock: layout.Lock}).Write(file); err != nil {
		return nil, err
	}
	all, err := pgbackrest.Runner{Program: pgbackrest.Program, Config: file}.Info(ctx, "")
	var failure *pgbackrest.Failure
	if errors.As(err, &failure) {
		return nil, errors.New(failure.Said)
	}
	return all, err
}
