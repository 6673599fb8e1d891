// SPDX-License-Identifier: Apache-2.0

// Package agent runs a member of a Database as the first process of its container: it starts Patroni, which runs PostgreSQL, and
// does what Patroni leaves to others.
//
// Each loop is a type with a method Run, which alone reads and writes the type's plain fields. A loop that needs nothing of another
// one is in a package of its own: report, role, gate, upgrader, backups, standby, importing. What loops share is an atomic value with one writer, a
// lock or a Wakeup:
//
//	role.Leadership    written by the role.Labeler, read by all that act for the leader only
//	role.LockKeeper    owns what was observed of the leader's lock
//	Supervisor         owns the Patroni that runs; others read it by Child
//	Watchdog           knows whether that Patroni works; the Leash reads it by Works
//	report.Reporter    takes reports from all, under a lock
package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/health"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/logs"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/backups"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dcs"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/diverged"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/following"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/gate"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/importing"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/lines"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/reinitialize"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/role"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/standby"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/standstill"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/takeover"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/upgrader"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/walvolume"
)

// Command runs a member.
type Command struct {
	layout.Names

	Health   string      `default:":8009"          env:"CAPSTAN_HEALTH_ADDRESS"                                       help:"Address to answer probes at."`
	Exporter string      `default:"127.0.0.1:9187" env:"CAPSTAN_EXPORTER_ADDRESS"                                     help:"Address of the exporter in the pod."`
	Logs     logs.Format `env:"CAPSTAN_LOGS"       help:"JSON for lines of JSON, otherwise the text of each program."`

	Parameters Parameters `env:"CAPSTAN_PARAMETERS" help:"Parameters of the server that follow from the pod, as JSON."`
}

// Run the member until the context ends and PostgreSQL has stopped.
func (c *Command) Run(ctx context.Context, log *slog.Logger, version layout.Version) error {
	k, err := kube.InCluster()
	if err != nil {
		return err
	}
	if err := process.Adopt(); err != nil {
		return err
	}
	// The folder of the socket is shared with the exporter only.
	for _, dir := range []string{pgmember.FolderPrivate, pgmember.FolderSocket} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("cannot prepare folders: %w", err)
		}
	}
	if err := diverged.MakeRewind(layout.Rewind); err != nil {
		return err
	}
	var marks *lines.Marks
	if c.Logs == logs.JSON {
		marks = lines.NewMarks()
		out, err := logs.Pipe(os.Stdout, marks.Member)
		if err != nil {
			return err
		}
		process.Into(out)
	}
	log.Info("starting", "version", version, "member", c.Name, "database", c.Database)
	supervisor, loops := c.loops(k, marks, log)
	if err := loop.Outlast(ctx, supervisor.Run, loops...); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// loops of the member, joined with each other, and its Supervisor.
func (c *Command) loops(k kube.Client, marks *lines.Marks, log *slog.Logger) (*Supervisor, []func(context.Context) error) {
	var (
		own    = pods.New(k, c.Namespace, c.Pod, c.Database)
		store  = dcs.New(k, c.Namespace, c.Scope)
		api    = patroni.At(c.IP)
		probes = &health.State{}
		copies = &certificate.Copies{
			Members: pgmember.FolderMembers, Server: pgmember.FolderServer, Link: pgmember.FolderTLS, Settle: certificate.Settle,
		}
		leadership = &role.Leadership{}
		leads      = leadership.IsLeader
		// Only time clears the reason of a Patroni that does not stay, and only becoming the leader the reason of a restore.
		reporter                  = report.New(own, log, pgmember.ReasonPatroniEnded, members.ReasonRestoreFailed)
		label, manage, fence      = loop.NewWakeup(), loop.NewWakeup(), loop.NewWakeup()
		backupEnded, archiveNoted = loop.NewWakeup(), loop.NewWakeup()
	)
	lock := &role.LockKeeper{DCS: store, Label: label}
	supervisor := &Supervisor{
		names: c.Names, marks: marks, parameters: c.Parameters, probes: probes, reporter: reporter, label: label, log: log,
		gate: &gate.Gate{
			Names: c.Names, Begun: time.Now(), Pods: own, DCS: store, Copies: copies, Reporter: reporter, Label: label, Log: log,
			Upgrader: &upgrader.Upgrader{Names: c.Names, Kube: k, Pods: own, Log: log},
		},
	}
	labeler := &role.Labeler{
		Pod: c.Pod, Pods: own, Patroni: api, Supervised: func() bool { return supervisor.Child() != nil }, Lock: lock, Reporter: reporter,
		Holds:    func(ctx context.Context) error { return store.Holds(ctx, c.Pod) },
		MayServe: mayServe(&takeover.Keeper{Names: c.Names, Kube: k, Pods: own, Log: log}),
		Role:     leadership, Manage: manage, Archive: archiveNoted, Fence: fence, Wake: label, Log: log,
	}
	watchdog := &Watchdog{patroni: api, supervisor: supervisor, probes: probes, log: log, storage: []*volume.Responder{{Dir: pgmember.FolderVolume}}}
	if walvolume.Own.Mounted() {
		watchdog.storage = append(watchdog.storage, &volume.Responder{Dir: pgmember.FolderWAL})
	}
	leash := &Leash{pod: c.Pod, works: watchdog.Works, lock: lock.Observed, lifetime: store.Lifetime, log: log}
	fencer := &Fencer{names: c.Names, pods: own, dcs: store, kube: k, supervisor: supervisor, leads: leads, reporter: reporter, wake: fence, log: log}
	return supervisor, []func(context.Context) error{
		func(ctx context.Context) error { return health.Serve(ctx, c.Health, probes, api.Ready) },
		(&Reaper{patroni: api, leads: leads, log: log}).Run,
		(&Listener{reporter: reporter, label: label, backupEnded: backupEnded, archiveNoted: archiveNoted, log: log}).Run,
		loop.Every(reporter.Changed, reporter.Once),
		loop.Every(label, labeler.Once),
		loop.Every(nil, labeler.Watch),
		loop.Every(manage, (&Manager{leads: leads, reporter: reporter, log: log, missing: manageFirst}).once),
		(&Refresher{copies: copies, supervisor: supervisor, manage: manage, log: log}).Run,
		loop.Every(nil, (&Meter{reporter: reporter, log: log}).once),
		loop.Every(nil, (&Querier{address: c.Exporter, reporter: reporter}).once),
		loop.Every(nil, watchdog.once),
		loop.Every(nil, leash.once),
		(&backups.Keeper{IP: c.IP, Leads: leads, Reporter: reporter, BackupEnded: backupEnded, ArchiveNoted: archiveNoted, Log: log}).Run,
		fencer.Run,
		loop.Every(nil, fencer.announce),
		loop.Every(nil, (&upgrader.Settler{Names: c.Names, Pods: own, Leads: leads, Log: log}).Once),
		loop.Every(nil, (&standby.Keeper{Pod: c.Pod, Pods: own, Patroni: api, Holder: lock.Holder, Reporter: reporter, Log: log}).Once),
		loop.Every(nil, (&reinitialize.Keeper{Member: c.Name, Pod: c.Pod, Pods: own, Patroni: api, Holder: lock.Holder, Reporter: reporter, Log: log}).Once),
		loop.Every(nil, standstill.New(c.Name, &standstill.Decision{
			Pod: c.Pod, Pods: own, Patroni: api, Holder: lock.Holder, Strict: store.Strict, Runs: func() bool { return supervisor.Child() != nil },
		}, supervisor.StopByHand, reporter, log).Once),
		loop.Every(nil, importing.NewKeeper(c.Names, leads, reporter, log).Once),
		loop.Every(nil, (&importing.DumpKeeper{Names: c.Names, Leads: leads, Reporter: reporter, Log: log}).Once),
		loop.Every(nil, (&following.Keeper{Pod: c.Pod, Holder: lock.Holder, Reporter: reporter, Log: log}).Once),
		loop.Every(nil, lock.Watch),
	}
}

// mayServe reports whether a leader may have clients, before it gets the first.
func mayServe(k *takeover.Keeper) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		if err := gate.Serves(); err != nil {
			return false, err
		}
		return k.MayServe(ctx)
	}
}
