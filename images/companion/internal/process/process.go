// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// An Exit is how a process ended.
type Exit struct {
	// Code of a program that ended by itself, or -1.
	Code int
	// Signal that ended it, or 0.
	Signal syscall.Signal
	// Err is why it could not be started.
	Err error
}

// Process of a program, the leader of a process group of its own.
type Process struct {
	pid    atomic.Int64
	ended  chan struct{}
	closed chan struct{}
	exit   Exit
}

// New process, which was not started yet.
func New() *Process { return &Process{ended: make(chan struct{}), closed: make(chan struct{})} }

// Start the program. A failure to start is an end, too. Line gets each line that is written, and last is called before the end is known.
func (p *Process) Start(k *Keeper, cmd *exec.Cmd, to *Pass, line func(string), last func()) {
	in, out, err := os.Pipe()
	if err != nil {
		p.Fail(fmt.Errorf("cannot make a pipe: %w", err))
		return
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	status, err := k.Start(cmd)
	_ = out.Close()
	if err != nil {
		_ = in.Close()
		p.Fail(err)
		return
	}
	p.pid.Store(int64(cmd.Process.Pid))
	_ = cmd.Process.Release() // The keeper waits for it.
	go p.read(in, to, line)
	go func() {
		s := <-status
		// What it wrote last says why it ended. Processes that it left behind may hold the pipe.
		select {
		case <-p.closed:
		case <-time.After(100 * time.Millisecond):
		}
		last()
		p.exit = Exit{Code: s.ExitStatus()}
		if s.Signaled() {
			p.exit.Signal = s.Signal()
		}
		close(p.ended)
	}()
}

// Fail a process that was not started.
func (p *Process) Fail(err error) {
	var unknown *exec.Error
	if errors.As(err, &unknown) {
		err = fmt.Errorf("cannot start %q: %w", unknown.Name, unknown.Err)
	}
	p.exit = Exit{Code: -1, Err: err}
	close(p.closed)
	close(p.ended)
}

// read what it writes, until no process can write any more.
func (p *Process) read(in io.ReadCloser, to *Pass, line func(string)) {
	defer close(p.closed)
	defer func() { _ = in.Close() }()
	var lines Splitter
	chunk := make([]byte, 32<<10)
	for {
		n, err := in.Read(chunk)
		if n > 0 {
			lines.Split(chunk[:n], line)
			to.write(chunk[:n])
		}
		if err != nil {
			break
		}
	}
	lines.Flush(line)
	to.close()
}

// Signal the process alone: what it started is its own.
func (p *Process) Signal(s syscall.Signal) {
	if pid := p.PID(); pid > 0 && !p.Gone() {
		_ = syscall.Kill(pid, s)
	}
}

// SignalAll of its process group, also when it has ended itself.
func (p *Process) SignalAll(s syscall.Signal) {
	if pid := p.PID(); pid > 0 {
		_ = syscall.Kill(-pid, s)
	}
}

// PID of a process that was started, or 0.
func (p *Process) PID() int { return int(p.pid.Load()) }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Closed is closed when no process has its output any more.
func (p *Process) Closed() <-chan struct{} { return p.closed }

// Exit of a process that has ended.
func (p *Process) Exit() Exit { return p.exit }

// Gone reports whether it has ended.
func (p *Process) Gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
