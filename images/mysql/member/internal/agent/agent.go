// SPDX-License-Identifier: Apache-2.0

// Package agent runs a member of a Database as the first process of its container: it runs the server, brings it into the group, and shows
// clients, the platform and other members its role there.
//
// Each loop is a type of its own, which alone reads and writes its plain fields. What loops share is an atomic value with one writer, a lock
// or a Wakeup:
//
//	Supervisor       runs the server; others read the one that runs by Child
//	Copier           lets the member be copied again on request; the Keeper and the Supervisor ask it
//	Meter            measures the volume; the Keeper asks it whether that is full
//	Keeper           looks at the server and its group, and acts on it; all others read what it saw by Seen
//	backups.Keeper   archives binary logs; nothing waits for it
//	importing.Keeper fills the Database from a running server; nothing waits for it
//	report.Reporter  takes reports from all, under a lock
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/health"
	"github.com/capstan-dev/capstan/images/member/kube"
	formats "github.com/capstan-dev/capstan/images/member/logs"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/standstill"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/backups"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/importing"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/lines"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/origin"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/peers"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/record"
)

// Command runs a member.
type Command struct {
	layout.Names

	Health string         `default:":8009"    env:"CAPSTAN_HEALTH_ADDRESS"                                       help:"Address to answer probes at."`
	Logs   formats.Format `env:"CAPSTAN_LOGS" help:"JSON for lines of JSON, otherwise the text of each program."`
	Peers  string         `default:":8010"    env:"CAPSTAN_PEERS_ADDRESS"                                        help:"Address to answer other members at."`
}

// Run the member until the context ends and the server has stopped.
func (c *Command) Run(ctx context.Context, log *slog.Logger, version layout.Version) error {
	k, err := kube.InCluster()
	if err != nil {
		return err
	}
	if err := process.Adopt(); err != nil {
		return err
	}
	// The folder of the socket is shared with the exporter only.
	for _, dir := range []string{mysqlmember.FolderPrivate, mysqlmember.FolderSocket} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("cannot prepare folders: %w", err)
		}
	}
	// It is of a container that ended before, in the same pod, and so is what was on its way to the archive.
	if err := os.Remove(layout.Stopping); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot prepare folders: %w", err)
	}
	if err := os.RemoveAll(layout.Scratch); err != nil {
		return fmt.Errorf("cannot prepare folders: %w", err)
	}
	server, err := mysql.Own()
	if err != nil {
		return err
	}
	defer server.Close()
	log.Info("starting", "version", version, "member", c.Name, "database", c.Database)
	main, loops, last := c.loops(k, server, log)
	err = loop.Outlast(ctx, main, loops...)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), kube.Timeout)
	defer cancel()
	last(end)
	if err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// output takes what a server writes.
func (c *Command) output() io.Writer {
	if c.Logs == formats.JSON {
		return &formats.Writer{To: os.Stderr, Read: lines.Member}
	}
	return os.Stderr
}

// loops of the member, joined with each other: the main one, those that run beside it, and what is reported last, when all have ended.
func (c *Command) loops(k kube.Client, server *mysql.Server, log *slog.Logger) (
	main func(context.Context) error, loops []func(context.Context) error, last func(context.Context),
) {
	var (
		own                                             = pods.New(k, c.Namespace, c.Pod, c.Database)
		store                                           = record.New(k, c.Namespace, c.Database, c.Scope)
		probes                                          = &health.State{}
		reporter                                        = report.New(own, log, mysqlmember.ReasonServerEnded)
		look, label, note, status, manage, set, request = loop.NewWakeup(), loop.NewWakeup(), loop.NewWakeup(), loop.NewWakeup(), loop.NewWakeup(),
			loop.NewWakeup(), loop.NewWakeup()
		back, unblock = loop.NewWakeup(), loop.NewWakeup()
	)
	copies := &certificate.Copies{
		Members: mysqlmember.FolderMembers, Server: mysqlmember.FolderServer, Link: mysqlmember.FolderTLS, Settle: certificate.Settle,
	}
	filling := &Filling{
		name: c.Name, data: mysqlmember.FolderData, config: layout.ReadConfig, fill: origin.Filler{Series: c.Version, Server: c.output(), Log: log}.Fill,
		store: store, reporter: reporter, log: log, wake: loop.NewWakeup(),
	}
	supervisor := &Supervisor{
		filling: filling,
		names:   c.Names, copies: copies, server: server, pods: own, probes: probes, reporter: reporter, log: log,
		output: c.output(), look: look, changed: []loop.Wakeup{look, label, status, set},
	}
	keeper := &Keeper{
		filling: filling,
		names:   c.Names, child: supervisor.Child, state: supervisor.State, server: server, pods: own, store: store, reporter: reporter, log: log,
		changed: []loop.Wakeup{label, note, status, manage, request, back, unblock},
	}
	meter := &Meter{reporter: reporter, log: log}
	comparer := &Comparer{names: c.Names, seen: keeper.Seen}
	keeper.full, keeper.compared = meter.Full, comparer.Last
	copier := &Copier{names: c.Names, pods: own, store: store, seen: keeper.Seen, restart: supervisor.Restart, reporter: reporter, log: log}
	supervisor.discard, keeper.away = copier.Discard, copier.Away
	labeler := &Labeler{pod: c.Pod, pods: own, server: server, seen: keeper.Seen, wake: label, log: log}
	recorder := &Recorder{
		pod: c.Pod, store: store, seen: keeper.Seen, unrecorded: keeper.Unrecorded, look: server.Look, prove: server.Prove, status: status, log: log,
	}
	keeper.sat = recorder.Sat
	configurer := &Configurer{child: supervisor.Child, seen: keeper.Seen, store: store, server: server, log: log, status: status, started: supervisor.Settings}
	statusWriter := &StatusWriter{pods: own, state: supervisor.State, seen: keeper.Seen, transitions: recorder.Transitions, restart: configurer.PendingRestart, log: log}
	archive := backups.New(server, c.Names, func() bool { return supervisor.Child() != nil }, func() bool { return keeper.Seen().Role == members.RoleLeader }, reporter, log)
	still := &standstill.Keeper{
		Member: c.Name, File: layout.Stopped, Requested: requestedStop, Decide: (&Stopper{pod: c.Pod, pods: own, server: server}).decide,
		Runs: func() bool { return supervisor.Child() != nil }, Stop: supervisor.StopByHand, Reporter: reporter, Log: log,
	}
	watcher := &Watcher{store: store, wake: []loop.Wakeup{set, request, look, note}}
	last = func(ctx context.Context) {
		keeper.publish(Seen{})
		labeler.once(ctx)
		recorder.once(ctx)
		statusWriter.once(ctx)
	}
	return supervisor.Run, []func(context.Context) error{
		func(ctx context.Context) error { return health.Serve(ctx, c.Health, probes, keeper.Ready) },
		func(ctx context.Context) error { return peers.Serve(ctx, c.Peers, c.Scope, keeper.Answer) },
		func(ctx context.Context) error { process.Reap(ctx, func(int) {}); return nil },
		loop.Every(reporter.Changed, reporter.Once),
		loop.Every(look, keeper.once),
		loop.Every(nil, comparer.once),
		loop.Every(unblock, (&Unblocker{server: server, seen: keeper.Seen, log: log}).once),
		loop.Every(label, labeler.once),
		loop.Every(nil, labeler.watch),
		loop.Every(note, recorder.once),
		loop.Every(status, statusWriter.once),
		loop.Every(manage, (&Manager{server: server, seen: keeper.Seen, reporter: reporter, log: log}).once),
		loop.Every(set, configurer.once),
		loop.Every(request, (&Switcher{pod: c.Pod, scope: c.Scope, store: store, server: server, seen: keeper.Seen, log: log}).once),
		loop.Every(nil, watcher.once),
		loop.Every(back, archive.Once),
		loop.Every(nil, importing.NewKeeper(server, func() bool { return keeper.Seen().Role == members.RoleLeader }, reporter, log).Once),
		loop.Every(nil, copier.once),
		loop.Every(nil, still.Once),
		loop.Every(nil, (&Refresher{copies: copies, child: supervisor.Child, server: server, manage: manage, log: log}).once),
		loop.Every(nil, meter.once),
		loop.Every(nil, (&Watchdog{child: supervisor.Child, server: server, probes: probes, storage: &volume.Responder{Dir: mysqlmember.FolderVolume}, log: log}).once),
	}, last
}
