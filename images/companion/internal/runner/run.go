// SPDX-License-Identifier: Apache-2.0

// Package runner runs the companion as the first process of a pod of a Pipeline: it starts the processes of the pod's role, and starts the
// main one again by the rules of the plan.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/images/companion/internal/process"
)

// Times of processes.
const (
	// besidePause is the time before a process beside the main one starts again.
	besidePause = time.Second
	// killWithin is how long processes have to end after SIGKILL. Those that do not hang in the kernel.
	killWithin = 30 * time.Second
	// tailBytes are the most of the last lines of a process.
	tailBytes = 3 << 10
	// maxMessage of a failure, in bytes.
	maxMessage = 1 << 10
)

// Config of a companion.
type Config struct {
	Plan runner.Plan
	// Job is the name of the pod's Job, Host its host name without domain, and Index its completion index.
	Job, Host string
	Index     int
	// Args of the companion's command line, for the processes that take them.
	Args []string
	// Address to listen at. Default: runner.StatePort of all of the pod's addresses.
	Address string
	// Out gets what the processes write.
	Out    io.Writer
	Log    *slog.Logger
	Memory process.Memory
	// Keeper of the processes. Default: another one. A program can have one only.
	Keeper *process.Keeper
}

// Run until the role is done or the context is, which is the request to go. It returns the exit code and the termination message.
func Run(ctx context.Context, c Config) (int, []byte) {
	c.Plan = withDefaults(c.Plan)
	log, flush := process.Patient(c.Log)
	defer flush()
	c.Log = log
	role, found := c.Plan.Role(c.Index)
	r := &run{Config: c, role: role, report: newReport(role.Name, time.Now), place: place{job: c.Job, host: c.Host, index: c.Index}}
	code, err := r.prepare(found)
	if err != nil {
		return r.refuse(code, err)
	}
	if c.Address == "" {
		c.Address = net.JoinHostPort("", strconv.Itoa(runner.StatePort))
	}
	stop, err := process.Serve(ctx, c.Address, r.report.handler())
	if err != nil {
		return r.refuse(runner.ExitUnfit, err)
	}
	defer stop()
	code = r.attempts(ctx)
	return code, message(r.report.snapshot())
}

// A run of the role of a pod.
type run struct {
	Config

	role   runner.Role
	place  place
	report *report
	rules  *rules
	output *process.Output

	helpers sync.WaitGroup
	mu      sync.Mutex
	pids    map[string]int // of processes beside the main one
}

// prepare what needs no other pod, and find mistakes that no other attempt would change.
func (r *run) prepare(found bool) (int, error) {
	if !found {
		return runner.ExitFailed, fmt.Errorf("the plan has no role for the pod of index %d", r.Index)
	}
	if len(r.command(r.role.Main)) == 0 {
		return runner.ExitFailed, errors.New("there is no command to run: set command or args")
	}
	var err error
	if r.rules, err = newRules(r.Plan.Retry, rand.Float64); err != nil {
		return runner.ExitFailed, err
	}
	if r.Keeper == nil {
		if r.Keeper, err = process.NewKeeper(); err != nil {
			return runner.ExitUnfit, err
		}
	}
	r.output, r.pids = process.NewOutput(r.Out), map[string]int{}
	return 0, nil
}

// refuse to begin.
func (r *run) refuse(code int, err error) (int, []byte) {
	r.Log.Error("cannot begin", "error", err)
	r.report.change(runner.PhaseFailed, func(s *runner.State) {
		s.LastFailure = &runner.Failure{Class: runner.ClassUser, ExitCode: -1, Action: runner.ActionFail, At: stamp(time.Now()), Message: err.Error()}
	})
	return code, message(r.report.snapshot())
}

// attempts of the main process, one after another.
func (r *run) attempts(ctx context.Context) int {
	besides, stop := context.WithCancel(context.Background())
	defer stop()
	for _, p := range r.role.Beside {
		r.helpers.Go(func() { r.runBeside(besides, p) })
	}
	for attempt := 0; ; attempt++ {
		code, pause, over := r.attempt(ctx, attempt)
		if over {
			stop()
			if !r.end() && code != runner.ExitDone && code != runner.ExitFailed {
				code = runner.ExitUnfit
			}
			return code
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// attempt to run the main process. It returns the exit code if all is over, or the pause before the next attempt.
func (r *run) attempt(ctx context.Context, attempt int) (code int, pause time.Duration, over bool) {
	if ctx.Err() != nil {
		r.report.change(runner.PhaseEnding, nil)
		return runner.ExitEnded, 0, true
	}
	r.rules.begin()
	r.report.change(runner.PhaseRunning, func(s *runner.State) { s.Attempts = attempt + 1 })
	r.Log.Info("attempt begins", "role", r.role.Name, "attempt", attempt)
	var tail process.Tail
	var written sync.Mutex
	kills, _ := r.Memory.Kills()
	began := time.Now()
	main := r.start(r.role.Main, attempt, func(line string) {
		r.rules.line(line, time.Now())
		written.Lock()
		defer written.Unlock()
		tail.Add(line)
	})
	select {
	case <-main.Ended():
	case <-ctx.Done():
		if main.Gone() { // It ended by itself, and counts: after a success nothing runs again.
			break
		}
		r.report.change(runner.PhaseEnding, nil)
		main.Signal(syscall.SIGTERM)
		select {
		case <-main.Ended():
		case <-time.After(time.Duration(r.Plan.GraceSeconds) * time.Second):
		}
		main.SignalAll(syscall.SIGKILL)
		return runner.ExitEnded, 0, true
	}
	main.SignalAll(syscall.SIGKILL) // What it left behind.
	written.Lock()
	last := tail.String(tailBytes)
	written.Unlock()
	e := process.Explain(main.Exit(), last, r.Memory.Since(kills))
	switch {
	case e == nil && !r.role.Serves:
		r.report.change(runner.PhaseSucceeded, nil)
		return runner.ExitDone, 0, true
	case e == nil:
		e = &process.Ending{Class: "Infrastructure", Message: "ended with exit code 0, although it should serve without end"}
	}
	return r.failed(main.Exit(), e, last, time.Since(began))
}

// starved are words by which a program says that it has not enough memory.
var starved = regexp.MustCompile(`\bOutOfMemoryError\b|\bMemoryError\b|\bbad_alloc\b|[Cc]annot allocate memory|\bOOMKilled\b`)

// lackedMemory reports whether a program that failed by itself says so. What ends for lack of memory takes its connections with it, and
// words about those come last.
func lackedMemory(e *process.Ending, last string) bool {
	return (runner.Class(e.Class) == runner.ClassUser || e.Secondary) && starved.MatchString(last)
}

// failed attempt: what follows by the rules.
func (r *run) failed(exit process.Exit, e *process.Ending, last string, ran time.Duration) (code int, pause time.Duration, over bool) {
	now := time.Now()
	f := runner.Failure{Class: runner.Class(e.Class), ExitCode: exit.Code, At: stamp(now), Lines: last}
	if exit.Err != nil || exit.Signal != 0 {
		f.ExitCode = -1
	}
	if exit.Err == nil && lackedMemory(e, last) {
		f.Class = runner.ClassOutOfMemory
	}
	v := r.rules.judge(f, ran, now)
	f.Action = v.action
	f.Message = strings.ToLower(r.role.Main.Name) + " " + e.Message
	if exit.Err != nil {
		f.Message = e.Message
	} else if line := process.LastLine(last); v.line == "" && line != "" {
		f.Message += ": " + line
	}
	if v.line != "" {
		f.Message += ": " + v.line
	}
	f.Message = strings.ToValidUTF8(f.Message[:min(len(f.Message), maxMessage)], "")
	if v.why != "" {
		f.Message += " (" + v.why + ")"
	}
	r.Log.Warn("failed", "class", f.Class, "action", v.action, "message", f.Message, "pause", v.pause.String())
	phase := runner.PhaseFailed
	if v.action == runner.ActionRetry {
		phase = runner.PhaseRecovering
	}
	r.report.change(phase, func(s *runner.State) { s.LastFailure = &f })
	switch {
	case v.action == runner.ActionMemory && !r.role.Serves:
		return runner.ExitMemory, 0, true
	case v.action == runner.ActionRetry:
		if !r.clear() {
			return runner.ExitUnfit, 0, true
		}
		return 0, v.pause, false
	case r.role.Serves:
		return runner.ExitUnfit, 0, true // Another pod may do better, and the main role has the say.
	default:
		return runner.ExitFailed, 0, true
	}
}

// beside the main process runs another one, which starts again when it ends.
func (r *run) runBeside(ctx context.Context, p runner.Process) {
	for attempt := 0; ; attempt++ {
		main := r.start(p, attempt, func(string) {})
		r.mu.Lock()
		r.pids[p.Name] = main.PID()
		r.mu.Unlock()
		select {
		case <-main.Ended():
			r.Log.Warn("a process beside the main one ended and starts again", "process", p.Name, "exit", main.Exit().Code)
		case <-ctx.Done():
			main.SignalAll(syscall.SIGTERM)
			return
		}
		select {
		case <-time.After(besidePause):
		case <-ctx.Done():
			return
		}
	}
}

// command of a process.
func (r *run) command(p runner.Process) []string {
	if p.Args {
		return append(append([]string{}, p.Command...), r.Args...)
	}
	return p.Command
}

// start a process.
func (r *run) start(p runner.Process, attempt int, line func(string)) *process.Process {
	environment := append(os.Environ(), r.place.environment(r.Plan, attempt)...)
	for name, value := range p.Env {
		environment = append(environment, name+"="+expand(value, environment))
	}
	command := make([]string, 0, len(p.Command)+len(r.Args))
	for _, part := range p.Command {
		command = append(command, expand(part, environment))
	}
	if p.Args { // Kubernetes has expanded them.
		command = append(command, r.Args...)
	}
	prefix := ""
	if len(r.role.Beside) > 0 {
		prefix = "[" + p.Name + "] "
	}
	out := process.New()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = environment
	out.Start(r.Keeper, cmd, r.output.Pass(prefix), line, func() {})
	return out
}

// clear what the main process left behind.
func (r *run) clear() bool {
	r.mu.Lock()
	keep := make([]int, 0, len(r.pids))
	for _, pid := range r.pids {
		keep = append(keep, pid)
	}
	r.mu.Unlock()
	if len(r.role.Beside) > 0 {
		r.Keeper.Sweep(keep...) // One that starts again meanwhile may be hit, and starts again.
		return true
	}
	return r.sweep()
}

// end all processes, and report whether none was left.
func (r *run) end() bool {
	r.helpers.Wait()
	return r.sweep()
}

func (r *run) sweep() bool {
	for until := time.Now().Add(killWithin); !r.Keeper.Sweep(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}
