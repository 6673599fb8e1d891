// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/health"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/gate"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/lines"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/postmaster"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/walvolume"
)

// Pauses before a Patroni that ended by itself starts again. One that ran for settled counts as healthy.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
	settled    = time.Minute
	// lastPauseOfLeader is the longest pause while PostgreSQL takes writes: a quarter of the shortest ttl.
	lastPauseOfLeader = shortestTTL / 4
)

// A Supervisor starts Patroni whenever the member may run and Patroni does not.
type Supervisor struct {
	names layout.Names
	marks *lines.Marks // nil if logs are text

	parameters Parameters
	gate       *gate.Gate
	probes     *health.State
	reporter   *report.Reporter
	label      loop.Wakeup
	log        *slog.Logger

	// child is the Patroni that runs, if one does. Only Run writes it.
	child atomic.Pointer[process.Child]
	// fenced is the Patroni that was stopped for a fence. Only StopForFence writes it.
	fenced atomic.Pointer[process.Child]
}

// Child is the Patroni that runs; nil if none does.
func (s *Supervisor) Child() *process.Child { return s.child.Load() }

// Run until the context ends and PostgreSQL has stopped.
func (s *Supervisor) Run(ctx context.Context) error {
	pause, forgotten := firstPause, false
	// The gate may move the write-ahead log, which a copy must not write to then.
	for s.endStrays(); s.hold(ctx); s.endStrays() {
		s.endStrays()
		// Later no number is used again, and a PostgreSQL may begin at any time.
		if !forgotten {
			if err := postmaster.Forget(pgmember.FolderData, pgmember.FolderSocket); err != nil {
				s.log.Error("an earlier PostgreSQL may be taken for one that runs", "error", err)
			}
			forgotten = true
		}
		begun := time.Now()
		child, err := s.start()
		if err != nil {
			s.log.Error("cannot start Patroni", "error", err)
		} else {
			s.child.Store(child)
			s.log.Info("started Patroni", "pid", child.PID())
			s.wait(ctx, child)
			s.child.Store(nil)
			err = child.Err()
		}
		s.label.Call()
		if ctx.Err() != nil {
			break
		}
		if child != nil && s.fenced.Load() == child {
			continue
		}
		if time.Since(begun) >= settled {
			pause = firstPause
		}
		s.log.Warn("Patroni ended by itself", "result", fmt.Sprint(err), "pause", pause.String())
		if pause > firstPause && s.reporter.Report().Reason != members.ReasonRestoreFailed {
			s.reporter.Block(pgmember.ReasonPatroniEnded, "Patroni ends soon after its start: see the log of the pod")
		}
		loop.Sleep(ctx, leaderPause(pause))
		pause = min(2*pause, lastPause)
	}
	s.gate.Stop()
	// A Patroni that ended by itself may have left PostgreSQL behind. It gets as much time as the pod has.
	postmaster.Stop(context.WithoutCancel(ctx), pgmember.FolderData)
	return nil //nolint:nilerr // That Patroni ended is why it stops.
}

// start Patroni.
func (s *Supervisor) start() (*process.Child, error) {
	path, err := configuration{apart: walvolume.Own.Mounted(), marks: s.marks, parameters: s.parameters}.prepare(layout.Configurations)
	if err != nil {
		return nil, err
	}
	return process.Start(layout.Patroni, s.names.Environment(), path)
}

// leaderPause shortens a pause while PostgreSQL takes writes: the Leash ends it when no Patroni comes back in time.
func leaderPause(pause time.Duration) time.Duration {
	led, err := pgdata.WasLeader(pgmember.FolderData)
	if _, running := postmaster.Find(pgmember.FolderData); running && (led || err != nil) {
		return min(pause, lastPauseOfLeader)
	}
	return pause
}

// wait for the end of Patroni, which a signal causes once the context ends: it stops PostgreSQL first, and a leader releases its
// lock when everything is written.
func (s *Supervisor) wait(ctx context.Context, child *process.Child) {
	healthy := time.NewTimer(settled)
	defer healthy.Stop()
	for {
		select {
		case <-child.Done():
			return
		case <-healthy.C:
			s.reporter.Clear(pgmember.ReasonPatroniEnded)
		case <-ctx.Done():
			s.log.Info("stopping")
			if err := child.Signal(syscall.SIGTERM); err != nil {
				s.log.Error("cannot stop Patroni", "error", err)
			}
			<-child.Done()
			return
		}
	}
}

// StopForFence stops a Patroni, and waits for its end. Unlike one that ends by itself it is not started again at once: the gate
// decides.
func (s *Supervisor) StopForFence(child *process.Child) error {
	s.fenced.Store(child)
	if err := child.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-child.Done() // the Watchdog ends one that hangs
	return nil
}

// StopByHand stops the Patroni that runs, if one does, because a person requests that this member stops.
func (s *Supervisor) StopByHand() error {
	if child := s.Child(); child != nil {
		return s.StopForFence(child)
	}
	return nil
}

// Restart a Patroni that no longer works, and end what it started but the postmaster. The next Patroni finds that running.
func (s *Supervisor) Restart(child *process.Child, why string) {
	s.log.Error("restarting Patroni", "reason", why)
	server, _ := postmaster.Find(pgmember.FolderData)
	below := process.Descendants(child.PID(), server)
	if err := child.Signal(syscall.SIGKILL); err != nil {
		s.log.Error("cannot end Patroni", "error", err)
	}
	for _, p := range below {
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
	<-child.Done()
}

// endStrays ends what an earlier Patroni left behind: a copy or a rewind that continues would write into the same folder as
// the next one's. A PostgreSQL that is stopped by a signal is ended, too: the next Patroni would wait for its answer and keep the
// lock, and no client could write.
func (s *Supervisor) endStrays() {
	server, running := postmaster.Find(pgmember.FolderData)
	if p, ok := process.Get(server); running && ok && p.Stopped {
		s.log.Warn("ending a PostgreSQL that is stopped", "pid", server)
		postmaster.Kill(pgmember.FolderData)
		running = false
	}
	for _, p := range process.Children(os.Getpid()) {
		if p.Dead || (running && p.PID == server) || process.Owns(p.PID) {
			continue
		}
		s.log.Warn("ending what an earlier Patroni left", "pid", p.PID, "name", p.Name)
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
}

// hold the member until it may run. It reports whether it may: not when the context ends.
func (s *Supervisor) hold(ctx context.Context) bool {
	last := ""
	for ctx.Err() == nil {
		err := s.gate.Check(ctx)
		if err == nil {
			if last != "" {
				s.log.Info("no longer held")
			}
			s.probes.Hold("")
			s.reporter.ClearHold()
			return true
		}
		reason, every := "the API server or the volume does not answer", 2*time.Second
		var problem *volume.Problem
		var wait *volume.Wait
		switch {
		case errors.As(err, &problem):
			s.reporter.Block(problem.Reason, problem.Message)
			reason, every = err.Error(), 10*time.Second
		case errors.As(err, &wait):
			s.reporter.Block(wait.Reason, wait.Message)
			reason, every = err.Error(), time.Second
		}
		if reason != last {
			last = reason
			s.log.Warn("held", "reason", err.Error())
		}
		s.probes.Hold(last)
		loop.Sleep(ctx, every)
	}
	return false
}
