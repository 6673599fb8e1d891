// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/volume"
)

// Pauses before a Patroni that ended by itself starts again. One that ran for settled is taken for well.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
	settled    = time.Minute
)

// patroniEnded is the reason of a member whose Patroni does not stay.
const patroniEnded = "PatroniEnded"

// supervise starts Patroni whenever the member may run and Patroni does not, until the context ends. It returns when PostgreSQL has
// stopped.
func (m *member) supervise(ctx context.Context) {
	pause := firstPause
	for m.hold(ctx) {
		m.buryStrays()
		begun := time.Now()
		child, err := process.Start(layout.Patroni, m.Environment(), layout.Configuration)
		if err != nil {
			m.log.Error("cannot start Patroni", "error", err)
		} else {
			m.child.Store(child)
			m.log.Info("started Patroni", "pid", child.PID())
			m.await(ctx, child)
			m.child.Store(nil)
			err = child.Err()
		}
		m.look.Call()
		if ctx.Err() != nil {
			break
		}
		if child != nil && m.ended.Load() == child {
			continue
		}
		if time.Since(begun) >= settled {
			pause = firstPause
		}
		m.log.Warn("Patroni ended by itself", "result", fmt.Sprint(err), "pause", pause.String())
		if pause > firstPause && m.told.get().Reason != restoreFailed {
			m.told.hinder(patroniEnded, "Patroni ends soon after its start: see the log of the pod")
		}
		sleep(ctx, pause)
		pause = min(2*pause, lastPause)
	}
	m.upgrading.job.Stop()
	// A Patroni that ended by itself may have left PostgreSQL behind. It gets as long as the pod has.
	process.StopPostmaster(context.WithoutCancel(ctx), layout.Data)
}

// await the end of Patroni, which a signal brings about once the context ends: it stops PostgreSQL first, and a leader gives up its
// lock when all is written.
func (m *member) await(ctx context.Context, child *process.Child) {
	well := time.NewTimer(settled)
	defer well.Stop()
	for {
		select {
		case <-child.Done():
			return
		case <-well.C:
			m.told.clear(patroniEnded)
		case <-ctx.Done():
			m.log.Info("stopping")
			if err := child.Signal(syscall.SIGTERM); err != nil {
				m.log.Error("cannot stop Patroni", "error", err)
			}
			<-child.Done()
			return
		}
	}
}

// renew ends a Patroni that does nothing any more, and what it started but the postmaster. The next Patroni finds that running.
func (m *member) renew(child *process.Child, why string) {
	m.log.Error("starting Patroni anew", "reason", why)
	postmaster, _ := process.Postmaster(layout.Data)
	below := process.Descendants(child.PID(), postmaster)
	if err := child.Signal(syscall.SIGKILL); err != nil {
		m.log.Error("cannot end Patroni", "error", err)
	}
	for _, p := range below {
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
}

// buryStrays ends what an earlier Patroni left behind: a copy or a rewind that goes on would write into the same folder as the next
// one's. A PostgreSQL that is stopped goes, too: the next Patroni would wait for it to answer and keep the lead, and nobody would write.
func (m *member) buryStrays() {
	postmaster, running := process.Postmaster(layout.Data)
	if p, ok := process.Get(postmaster); running && ok && p.Stopped {
		m.log.Warn("ending a PostgreSQL that is stopped", "pid", postmaster)
		process.KillPostmaster(layout.Data)
		running = false
	}
	for _, p := range process.Children(os.Getpid()) {
		if p.Dead || (running && p.PID == postmaster) || process.Owns(p.PID) {
			continue
		}
		m.log.Warn("ending what an earlier Patroni left", "pid", p.PID, "name", p.Name)
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
}

// hold the member until it may run. It returns whether it may: not when the context ends.
func (m *member) hold(ctx context.Context) bool {
	last := ""
	for ctx.Err() == nil {
		err := m.fit(ctx)
		if err == nil {
			if last != "" {
				m.log.Info("no longer held")
			}
			m.state.Hold("")
			m.told.clear("")
			return true
		}
		reason, every := "the API server or the volume does not answer", 2*time.Second
		var problem *volume.Problem
		var wait *volume.Wait
		switch {
		case errors.As(err, &problem):
			m.told.hinder(problem.Reason, problem.Message)
			reason, every = err.Error(), 10*time.Second
		case errors.As(err, &wait):
			m.told.hinder(wait.Reason, wait.Message)
			reason, every = err.Error(), time.Second
		}
		if reason != last {
			last = reason
			m.log.Warn("held", "reason", err.Error())
		}
		m.state.Hold(last)
		sleep(ctx, every)
	}
	return false
}

// fit tells what is in the way of this member: a Problem that a person has to solve, a Wait for other members, or another error.
func (m *member) fit(ctx context.Context) error {
	programs := layout.Programs(m.Version)
	needed := []string{layout.Patroni, filepath.Join(programs, "postgres"), filepath.Join(programs, "pg_controldata")}
	if err := volume.CheckImage(needed...); err != nil {
		return err
	}
	if err := volume.Claim(layout.Mark, layout.Data, m.Identity, m.Version); err != nil {
		return err
	}
	if err := volume.CheckVersion(layout.Data, m.Version); err != nil {
		return err
	}
	if _, err := m.copies.Refresh(time.Now()); err != nil {
		return err
	}
	if err := m.fencedOff(ctx); err != nil {
		return err
	}
	if _, running := process.Postmaster(layout.Data); running {
		return nil // Patroni alone is to start
	}
	return m.mayBegin(ctx, programs)
}

// sleep for a while or until the context ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
