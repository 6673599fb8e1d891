// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/health"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gate"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/handover"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/server"
)

// Pauses before a server that ended by itself starts again. One that ran for settled counts as healthy.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
	settled    = time.Minute
)

// A Supervisor runs the server whenever the member may run.
type Supervisor struct {
	names    layout.Names
	copies   *certificate.Copies
	server   *mysql.Server
	pods     *pods.Client
	probes   *health.State
	reporter *report.Reporter
	filling  *Filling
	log      *slog.Logger
	// discard the data before a server starts on it, if a new copy replaces it.
	discard func(context.Context) error
	// output takes the log of the server.
	output io.Writer
	// look is called when the server says something of the group, and changed when it starts or has ended.
	look    loop.Wakeup
	changed []loop.Wakeup

	// child is the server that runs, if one does, settings what it was started with, and state in one word how it is. Only Run writes them.
	child    atomic.Pointer[process.Child]
	settings atomic.Pointer[string]
	state    atomic.Pointer[string]
	// again reports that the server ends because it has to start again.
	again atomic.Bool
}

// Child is the server that runs; nil if none does.
func (s *Supervisor) Child() *process.Child { return s.child.Load() }

// Settings that the server was started with last.
func (s *Supervisor) Settings() string {
	if p := s.settings.Load(); p != nil {
		return *p
	}
	return ""
}

// State of the server in the word of a members.Status.
func (s *Supervisor) State() string {
	if p := s.state.Load(); p != nil {
		return *p
	}
	return members.StateStopped
}

// Restart the server, if one runs.
func (s *Supervisor) Restart() {
	if err := s.StopByHand(); err != nil {
		s.log.Error("cannot start the server again", "error", err)
	}
}

// StopByHand stops the server, if one runs. It leaves its group, and starts again when the gate lets it.
func (s *Supervisor) StopByHand() error {
	child := s.Child()
	if child == nil {
		return nil
	}
	s.again.Store(true)
	if err := child.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("cannot stop the server: %w", err)
	}
	return nil
}

// become another state, and wake those whom it is news to.
func (s *Supervisor) become(state string, child *process.Child) {
	s.state.Store(&state)
	s.child.Store(child)
	for _, w := range s.changed {
		w.Call()
	}
}

// Run until the context ends and the server has stopped.
func (s *Supervisor) Run(ctx context.Context) error {
	pause := firstPause
	for s.hold(ctx) {
		begun := time.Now()
		s.become(members.StateStarting, nil)
		s.filling.Run(ctx)
		child, err := s.start(ctx)
		if err == nil {
			s.become(members.StateRunning, child)
			s.log.Info("started the server", "pid", child.PID())
			s.wait(ctx, child)
			err = child.Err()
		}
		if ctx.Err() != nil {
			break
		}
		if s.filling.Due() {
			continue
		}
		if server.WantsAgain(err) {
			s.log.Info("the server copied data, and starts again")
			continue
		}
		if s.again.Swap(false) {
			s.log.Info("the server stopped, and starts again")
			continue
		}
		state := members.StateCrashed
		if child == nil || time.Since(begun) < firstPause {
			state = members.StateStartFailed
		}
		s.become(state, nil)
		if time.Since(begun) >= settled {
			pause = firstPause
		}
		s.log.Warn("the server ended by itself", "result", fmt.Sprint(err), "pause", pause.String())
		if pause > firstPause {
			s.reporter.Block(mysqlmember.ReasonServerEnded, fmt.Sprintf("the server ends soon after its start: see the log of the pod (%v)", err))
		}
		loop.Sleep(ctx, pause)
		pause = min(2*pause, lastPause)
	}
	s.become(members.StateStopped, nil)
	return nil //nolint:nilerr // That the server ended is why it stops.
}

// start the server, with data if it has none yet.
func (s *Supervisor) start(ctx context.Context) (*process.Child, error) {
	config, err := layout.ReadConfig()
	if err != nil {
		return nil, err
	}
	base, err := os.ReadFile(layout.Base)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration of the server: %w", err)
	}
	settings, err := server.Settings(s.names, config, string(base))
	if err != nil {
		return nil, err
	}
	if err := clearRestore(); err != nil {
		return nil, fmt.Errorf("cannot remove what is left of a restore: %w", err)
	}
	if err := s.discard(ctx); err != nil {
		return nil, err
	}
	if err := server.Make(ctx); err != nil {
		return nil, err
	}
	s.settings.Store(&settings)
	return server.Start(settings, s.output, func(line []byte) {
		if server.OfGroup(line) {
			s.look.Call()
		}
	})
}

// wait for the end of the server, which a signal causes once the context ends. A leader hands over first.
func (s *Supervisor) wait(ctx context.Context, child *process.Child) {
	healthy := time.NewTimer(settled)
	defer healthy.Stop()
	for {
		select {
		case <-child.Done():
			return
		case <-s.filling.wake:
			if s.filling.Due() {
				// It is in no group, and has no data worth a handover.
				child.Stop(syscall.SIGTERM, time.Minute)
				return
			}
		case <-healthy.C:
			s.reporter.Clear(mysqlmember.ReasonServerEnded)
		case <-ctx.Done():
			s.stop(context.WithoutCancel(ctx), child)
			return
		}
	}
}

// stop the server in order. It gets as much time as the pod has.
func (s *Supervisor) stop(ctx context.Context, child *process.Child) {
	said, err := os.ReadFile(layout.Stopping)
	s.log.Info("stopping", "handover", string(said))
	if err != nil {
		// No hook announced it. From now on the member admits no clients again.
		if err := handover.Announce(); err != nil {
			s.log.Warn("cannot announce the stop", "error", err)
		}
	}
	s.become(members.StateStopping, child)
	hand, cancel := context.WithTimeout(ctx, handover.Limit)
	defer cancel()
	if text, err := handover.Leave(hand, s.server, s.names.Scope, stopping(hand, s.pods)); err != nil {
		s.log.Warn("not handed over", "error", err)
	} else {
		s.log.Info("handed over", "result", text)
	}
	if err := child.Signal(syscall.SIGTERM); err != nil {
		s.log.Error("cannot stop the server", "error", err)
	}
	<-child.Done()
}

// stopping pods, as far as the API server answers.
func stopping(ctx context.Context, own *pods.Client) []string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	list, err := own.List(ctx)
	if err != nil {
		return nil // one that stops would lead for a moment
	}
	return pods.Stopping(list)
}

// hold the member until it may run. It reports whether it may: not when the context ends.
func (s *Supervisor) hold(ctx context.Context) bool {
	last := ""
	for ctx.Err() == nil {
		err := gate.Check(s.names, s.copies)
		if err == nil {
			if last != "" {
				s.log.Info("no longer held")
				s.reporter.ClearHold()
			}
			s.probes.Hold("")
			return true
		}
		reason, every := "the volume or a Secret cannot be read", 2*time.Second
		var problem *volume.Problem
		var wait *volume.Wait
		switch {
		case errors.As(err, &problem):
			s.reporter.Block(problem.Reason, problem.Message)
			reason, every = err.Error(), 10*time.Second
		case errors.As(err, &wait):
			s.reporter.Block(wait.Reason, wait.Message)
			reason = err.Error()
		}
		if reason != last {
			last = reason
			s.log.Warn("held", "reason", err.Error())
			s.become(members.StateStopped, nil)
		}
		s.probes.Hold(last)
		loop.Sleep(ctx, every)
	}
	return false
}
