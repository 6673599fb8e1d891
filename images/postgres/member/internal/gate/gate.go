// SPDX-License-Identifier: Apache-2.0

// Package gate decides whether a member may run.
package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dcs"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/postmaster"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/snapshot"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/standstill"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/upgrader"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/walvolume"
)

// unstarted is how long a member with an empty volume waits for others whose pods do not start, when it is unknown whether they
// have a volume. A Database has to begin on the nodes that there are.
const unstarted = time.Minute

// A Gate decides whether the member may run. Only one loop uses it.
type Gate struct {
	Names layout.Names
	// Begun is when the member began to wait.
	Begun    time.Time
	Pods     *pods.Client
	DCS      *dcs.Client
	Copies   *certificate.Copies
	Upgrader *upgrader.Upgrader
	Reporter *report.Reporter
	// Label wakes the Labeler.
	Label loop.Wakeup
	Log   *slog.Logger

	backups existingBackups
	// fence is the report that the pod has of a stop for a fence, if any, once that is known.
	fence      *members.FenceReport
	fenceKnown bool
}

// Check returns what blocks this member: a Problem that a person has to solve, a Wait for other members, or another error.
func (g *Gate) Check(ctx context.Context) error {
	programs := pgmember.Programs(g.Names.Version)
	if err := volume.CheckImage(layout.Patroni, filepath.Join(programs, "postgres"), filepath.Join(programs, "pg_controldata")); err != nil {
		return err
	}
	if err := snapshot.Own.SetAside(g.Names.Identity, snapshotOf); err != nil {
		return err
	}
	if err := volume.Claim(layout.Mark, pgmember.FolderData, g.Names.Identity, g.Names.Version); err != nil {
		return err
	}
	if err := pgdata.CheckVersion(pgmember.FolderData, g.Names.Version); err != nil {
		return err
	}
	if _, err := g.Copies.Refresh(time.Now()); err != nil {
		return err
	}
	if err := g.checkFence(ctx); err != nil {
		return err
	}
	if err := standstill.Check(g.Names.Name); err != nil {
		g.stopForFence(ctx) // a Patroni that ended by itself may have left PostgreSQL behind
		g.Label.Call()
		return err
	}
	config, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	_, running := postmaster.Find(pgmember.FolderData)
	complete, err := isComplete(config)
	if err != nil {
		return err
	}
	if running && complete {
		return nil // only Patroni has to start, also while the API server is down
	}
	system, err := g.DCS.System(ctx)
	if err != nil {
		return err
	}
	if running && system != "" {
		return nil
	}
	if running {
		// Patroni would promote a server that replays an archive, and the rest of the archive would be missing.
		postmaster.Kill(pgmember.FolderData)
	}
	if err := g.checkData(ctx, programs, config, system); err != nil {
		return err
	}
	return walvolume.Own.Prepare(ctx, g.Names.Identity, g.Names.Version)
}

// upgrade the data.
func (g *Gate) upgrade(ctx context.Context, to pgmember.Upgrade, empty bool) error {
	if err := g.Upgrader.Advance(ctx, to, empty); err != nil {
		return err
	}
	// Patroni would make new data where there is none.
	if empty, err := volume.Empty(pgmember.FolderData); empty || err != nil {
		return errors.Join(errors.New("the upgrade ended without data"), err)
	}
	return nil
}

// checkData returns what this member has to wait for before its PostgreSQL starts.
func (g *Gate) checkData(ctx context.Context, programs string, config pgmember.Config, system string) error {
	own, err := g.readData(ctx, programs, config, system)
	if err != nil {
		return err
	}
	if err := removeRestored(system != ""); err != nil {
		return err
	}
	if !own.Empty && system != "" && own.System != system {
		return &volume.Problem{Reason: members.ReasonVolumeOfAnother, Message: fmt.Sprintf("the data has the system identifier %s, and the Database "+
			"has %s: it began again without this volume. Remove the volume if its data is not needed", own.System, system)}
	}
	if system != "" {
		return nil
	}
	if config.Upgrade != nil {
		return g.upgrade(ctx, *config.Upgrade, own.Empty)
	}
	list, err := g.Pods.List(ctx)
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
	if wait := volume.MayBegin(g.Names.Name, own, reported, g.expected(config, list, own)); wait != nil {
		return wait
	}
	if own.Empty {
		if err := g.backups.check(ctx, config, g.Names.Name, g.Reporter); err != nil {
			return err
		}
		return g.begin(ctx, list, config.From)
	}
	return nil
}

// reportVolume writes what this member's volume holds, unless its pod has that already.
func (g *Gate) reportVolume(ctx context.Context, own volume.Content, list []pods.Pod) error {
	if v := g.Pods.Own(list).Volume; v != nil && *v == own {
		return nil
	}
	return g.Pods.Annotate(ctx, pods.AnnotationVolume, own)
}

// expected are the members that have to report what they hold before one begins.
func (g *Gate) expected(config pgmember.Config, list []pods.Pod, own volume.Content) []string {
	if config.Volumes != nil {
		return *config.Volumes
	}
	var out []string
	for _, p := range list {
		if own.Empty && !p.Started && time.Since(g.Begun) > unstarted {
			continue
		}
		out = append(out, p.Member)
	}
	return out
}

// Stop what an upgrade runs.
func (g *Gate) Stop() { g.Upgrader.Stop() }
