// SPDX-License-Identifier: Apache-2.0

// Package agent runs a member of a Database as the first process of its container: it starts Patroni, which runs PostgreSQL, and
// does what Patroni leaves to others.
//
// Each loop is a type with a method Run, which alone reads and writes the type's plain fields. What loops share is an atomic
// value with
// one writer, a lock or a Wakeup:
//
//	leadership   written by the Labeler, read by all that act for the leader only
//	Supervisor   owns the Patroni that runs; others read it by Child
//	LockKeeper   owns what was observed of the leader's lock; others read it by Observed
//	Reporter     takes reports from all, under a lock
package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/health"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dcs"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
)

// Command runs a member.
type Command struct {
	layout.Names

	Health string `default:":8009" env:"CAPSTAN_HEALTH_ADDRESS" help:"Address to answer probes at."`
}

// leadership is what is known of this member's role. Only the Labeler writes it.
type leadership struct {
	// `leads` reports whether this member was the leader when last observed, cutOff whether it is a standby that lost its leader.
	leads, cutOff atomic.Bool
}

// Leadership reports whether this member is the leader.
type Leadership interface{ Leads() bool }

// `Leads` reports whether this member is the leader.
func (l *leadership) Leads() bool { return l.leads.Load() }

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
	log.Info("starting", "version", version, "member", c.Name, "database", c.Database)
	supervisor, loops := c.loops(k, log)
	if err := loop.Outlast(ctx, supervisor.Run, loops...); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// loops of the member, joined with each other, and its Supervisor.
func (c *Command) loops(k kube.Client, log *slog.Logger) (*Supervisor, []func(context.Context) error) {
	var (
		own    = pods.New(k, c.Namespace, c.Pod, c.Database)
		store  = dcs.New(k, c.Namespace, c.Scope)
		api    = patroni.New(c.Address(pgmember.PortPatroni), pgmember.FolderTLS)
		probes = &health.State{}
		copies = &certificate.Copies{
			Members: pgmember.FolderMembers, Server: pgmember.FolderServer, Link: pgmember.FolderTLS, Settle: certificate.Settle,
		}
		role                      = &leadership{}
		label, manage, fence      = loop.NewWakeup(), loop.NewWakeup(), loop.NewWakeup()
		backupEnded, archiveNoted = loop.NewWakeup(), loop.NewWakeup()
	)
	reporter := &Reporter{pods: own, log: log, changed: loop.NewWakeup()}
	lock := &LockKeeper{pod: c.Pod, pods: own, dcs: store, role: role, label: label, log: log}
	upgrader := &Upgrader{names: c.Names, kube: k, pods: own, log: log}
	supervisor := &Supervisor{
		names: c.Names, probes: probes, reporter: reporter, label: label, log: log,
		gate: &gate{
			names: c.Names, begun: time.Now(), pods: own, dcs: store, copies: copies, upgrader: upgrader, reporter: reporter, label: label, log: log,
		},
	}
	labeler := &Labeler{
		pod: c.Pod, pods: own, patroni: api, supervisor: supervisor, lock: lock, reporter: reporter, role: role, wake: label, manage: manage, fence: fence, log: log,
	}
	backups := &Backups{ip: c.IP, role: role, reporter: reporter, backupEnded: backupEnded, archiveNoted: archiveNoted, log: log}
	listener := &Listener{reporter: reporter, label: label, backupEnded: backupEnded, archiveNoted: archiveNoted, log: log}
	fencer := &Fencer{names: c.Names, pods: own, dcs: store, kube: k, supervisor: supervisor, role: role, reporter: reporter, wake: fence, log: log}
	return supervisor, []func(context.Context) error{
		func(ctx context.Context) error { return health.Serve(ctx, c.Health, probes, api.Ready) },
		(&Reaper{patroni: api, role: role, log: log}).Run,
		listener.Run,
		reporter.Run,
		labeler.Run,
		(&Manager{role: role, reporter: reporter, wake: manage, log: log}).Run,
		(&Refresher{copies: copies, supervisor: supervisor, manage: manage, log: log}).Run,
		(&Meter{reporter: reporter, log: log}).Run,
		(&Watchdog{patroni: api, supervisor: supervisor, probes: probes, log: log}).Run,
		backups.Run,
		fencer.Run,
		(&Settler{names: c.Names, pods: own, role: role, log: log}).Run,
		lock.Watch,
		lock.Run,
	}
}
