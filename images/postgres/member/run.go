// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/certificate"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/health"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/process"
)

// runCmd runs a member.
type runCmd struct {
	layout.Names

	Health string `default:":8009" env:"CAPSTAN_HEALTH_ADDRESS" help:"Address to answer probes at."`
}

// A member that runs.
type member struct {
	layout.Names

	log     *slog.Logger
	state   *health.State
	patroni *patroni.Client
	pods    *pods.Client
	copies  *certificate.Copies
	told    *report

	// child is the Patroni that runs, if one does.
	child atomic.Pointer[process.Child]
	// leads tells what the member last knew, and unled that it follows and has lost its leader.
	leads, unled atomic.Bool
	// lock of the leader as it was last seen.
	lock atomic.Pointer[seenLock]
	// look and manage wake the loops that label the pod and make what only a superuser can.
	look, manage wakeup
	// paused wakes the loop that looks for a fence, and ended is the Patroni that was stopped for one.
	paused wakeup
	ended  atomic.Pointer[process.Child]
	// stop is what the pod is known to tell of a stop for a fence, once that is known.
	stop *toldStop
	// upgrading is the upgrade that this member does, if it does one.
	upgrading upgrading
	// backedUp and archived wake the loop that tells of backups.
	backedUp, archived wakeup
	// existing is what was found out about backups of this name.
	existing existing
	// begun is when the program started.
	begun time.Time
}

// A wakeup is a channel that holds one call at most.
type wakeup chan struct{}

// Call wakes who waits, or the next one to do so.
func (w wakeup) Call() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Run the member until the context ends and PostgreSQL has stopped.
func (c *runCmd) Run(ctx context.Context, log *slog.Logger) error {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("cannot reach the API server: %w", err)
	}
	client, err := pods.New(cfg, c.Namespace, c.Pod, c.Database)
	if err != nil {
		return err
	}
	m := &member{
		Names: c.Names, log: log, state: &health.State{}, pods: client, told: newReport(),
		patroni: patroni.New(c.Address(layout.PortPatroni), layout.TLS),
		copies:  &certificate.Copies{Members: layout.Members, Server: layout.Server, Link: layout.TLS, Settle: certificate.Settle},
		look:    make(wakeup, 1), manage: make(wakeup, 1), paused: make(wakeup, 1), backedUp: make(wakeup, 1), archived: make(wakeup, 1), begun: time.Now(),
	}
	if err := process.Adopt(); err != nil {
		return err
	}
	// The socket's folder is for the exporter, too, and what PostgreSQL writes is for nobody else.
	for _, dir := range []string{layout.Private, layout.Postgres} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("cannot prepare folders: %w", err)
		}
	}
	log.Info("starting", "version", version, "member", c.Name, "database", c.Database)

	// What watches and answers lasts longer than PostgreSQL, which takes its time after the signal.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, life := errgroup.WithContext(life)
	for _, loop := range []func(context.Context) error{
		func(ctx context.Context) error { return health.Serve(ctx, c.Health, m.state, m.patroni.Ready) },
		m.reap, m.listen, m.tell, m.label, m.superuse, m.refresh, m.measure, m.watch, m.backups,
		m.fence, m.settle, m.watchLock, m.releaseLock,
	} {
		group.Go(func() error { return loop(life) })
	}
	group.Go(func() error {
		defer end()
		// A loop that fails ends the rest by its context.
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		context.AfterFunc(life, stop)
		m.supervise(ctx)
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	log.Info("stopped")

	return nil
}
