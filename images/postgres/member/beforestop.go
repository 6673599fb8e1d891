// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/process"
)

const (
	// leadsLimit is how long Patroni gets to say whether this member leads.
	leadsLimit = 500 * time.Millisecond
	// stopAhead is how long PostgreSQL gets to stop before Patroni stops it. Without clients that is 0.2 s; what takes longer, such as
	// the last of an archive, Patroni knows how to wait for.
	stopAhead = time.Second
)

// beforeStopCmd does what a leader does before Patroni stops its PostgreSQL.
type beforeStopCmd struct {
	layout.Names
}

// Run does it, and does not fail: PostgreSQL stops in any case.
func (c *beforeStopCmd) Run(ctx context.Context, log *slog.Logger) error {
	begun := time.Now()
	ask, cancel := context.WithTimeout(ctx, leadsLimit)
	defer cancel()
	leads, err := patroni.New(c.Address(layout.PortPatroni), layout.TLS).HasLock(ask)
	if err != nil {
		log.Warn("cannot find out whether this member leads", "error", err)
		return nil
	}
	if !leads {
		return nil // no client waits for it, or another may lead already
	}
	if w, err := readWanted(); err != nil || w.Pooled {
		said, err := pausePoolers(ctx, c.Names)
		if err != nil {
			said = "clients of poolers were not told: " + err.Error()
		}
		log.Info(said, "took", time.Since(begun).Round(time.Millisecond).String())
	}
	pid, running := process.Postmaster(layout.Data)
	if !running {
		return nil
	}
	begun = time.Now()
	ctx, cancel = context.WithTimeout(ctx, stopAhead)
	defer cancel()
	process.StopPostmaster(ctx, layout.Data)
	// Patroni takes one that is not buried yet for one that runs.
	log.Info("stopping PostgreSQL", "stopped", process.Gone(ctx, pid), "took", time.Since(begun).Round(time.Millisecond).String())
	return nil
}
