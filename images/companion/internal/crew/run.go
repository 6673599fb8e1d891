// SPDX-License-Identifier: Apache-2.0

// Package crew runs the companion as the first process of a pod of a training: a member of the run's crew and, in the pod of index 0, its
// coordinator.
package crew

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/coordinator"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/hub"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/member"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/watch"
	"github.com/capstan-dev/capstan/images/companion/internal/process"
)

// Config of a companion.
type Config struct {
	Plan    crew.Plan
	Index   int
	Command []string
	// Host of the pod with an index. Default: by the plan.
	Host func(index int) string
	// Address to listen at, without port. Default: all of the pod.
	Address string
	// Scratch is a folder for files of progress.
	Scratch string
	// Out gets what the ranks write.
	Out    io.Writer
	Log    *slog.Logger
	Memory process.Memory
	// WaitLimit is how long a member waits for a coordinator. Default: ten minutes.
	WaitLimit time.Duration
}

const (
	// waitLimit is the default.
	waitLimit = 10 * time.Minute
	// heardWithin is how long after the grace period the coordinator hears that ranks have stopped: see crew.LeaveSeconds.
	heardWithin = 5 * time.Second
)

// Run until the run ends or the context does, which is the request to go. It returns the exit code and the termination message.
func Run(ctx context.Context, c Config) (int, []byte) {
	c.Plan = coordinator.WithDefaults(c.Plan)
	log, flush := process.Patient(c.Log)
	defer flush()
	c.Log = log
	if c.Host == nil {
		c.Host = c.Plan.Host
	}
	if c.WaitLimit == 0 {
		c.WaitLimit = waitLimit
	}
	watcher, err := prepare(c)
	if err != nil {
		return c.fail(crew.ExitFailed, err)
	}
	keeper, err := process.NewKeeper()
	if err != nil {
		return c.fail(crew.ExitUnfit, err)
	}
	var h *hub.Hub
	if c.Index == 0 {
		if h, err = hub.Listen(ctx, c.Plan, net.JoinHostPort(c.Address, strconv.Itoa(crew.Port)), c.Log); err != nil {
			return c.fail(crew.ExitUnfit, err)
		}
	}
	stop, err := process.Serve(ctx, net.JoinHostPort(c.Address, strconv.Itoa(crew.StatePort)), hub.Handler(h))
	if err != nil {
		return c.fail(crew.ExitUnfit, err)
	}
	defer stop()
	var asked atomic.Pointer[time.Time]
	context.AfterFunc(ctx, func() {
		now := time.Now()
		asked.Store(&now)
	})
	outcome := member.Run(ctx, member.Config{
		Plan: c.Plan, Index: c.Index, Command: c.Command, Host: c.Host, Scratch: c.Scratch, Out: c.Out, Log: c.Log,
		Keeper: keeper, Watcher: watcher, Memory: c.Memory, WaitLimit: c.WaitLimit,
	})
	if h == nil {
		return outcome.Code, []byte(outcome.Words)
	}
	// Other members stop their ranks within the grace period, too, and say so after it.
	limit := time.Duration(c.Plan.GraceSeconds)*time.Second + heardWithin
	if since := asked.Load(); since != nil {
		limit -= time.Since(*since)
	}
	h.Close(limit)
	if code, ended := h.Ended(); ended {
		outcome.Code = code
	}
	return outcome.Code, coordinator.Message(h.Snapshot().State)
}

// prepare what needs no other pod, and find mistakes that no other attempt would change.
func prepare(c Config) (*watch.Watcher, error) {
	switch {
	case len(c.Command) == 0:
		return nil, errors.New("there is no command to run: set command or args")
	case c.Plan.Workers < 1:
		return nil, fmt.Errorf("the plan has %d workers, and at least 1 is needed", c.Plan.Workers)
	case c.Index < 0 || c.Index >= c.Plan.Size():
		return nil, fmt.Errorf("the plan has %d pods, and this is index %d", c.Plan.Size(), c.Index)
	}
	return watch.New(c.Plan.Watch)
}

// fail before there is a member.
func (c Config) fail(code int, err error) (int, []byte) {
	c.Log.Error("cannot begin", "error", err)
	if c.Index != 0 {
		return code, []byte(err.Error())
	}
	return code, coordinator.Message(crew.State{Version: crew.PlanVersion, Run: c.Plan.Run, Phase: crew.PhaseFailed, Message: err.Error()})
}
