// SPDX-License-Identifier: Apache-2.0

package ranks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/watch"
)

// An Exit is how a rank ended.
type Exit struct {
	// Code of a program that ended by itself, or -1.
	Code int
	// Signal that ended it, or 0.
	Signal syscall.Signal
	// Err is why it could not be started.
	Err error
}

// A rank is one process of the training, and what it wrote.
type rank struct {
	number  int
	watcher *watch.Watcher
	found   func(watch.Fault)
	pid     atomic.Int64
	ended   chan struct{}
	exit    Exit
	// closed is when no process has the rank's pipe any more.
	closed chan struct{}

	mu      sync.Mutex
	reading reading
	tail    watch.Tail
	heard   time.Time
	seen    seen
}

// seen is what a rank reported since the last look.
type seen struct {
	step        int64 // -1: none yet
	of          int64
	loss        string
	at          time.Time
	advanced    bool
	checkpoints []crew.Checkpoint
}

// start the process. A failure to start is an end, too.
func (r *rank) start(keeper *Keeper, cmd *exec.Cmd, to *pass) {
	in, out, err := os.Pipe()
	if err != nil {
		r.fail(fmt.Errorf("cannot make a pipe: %w", err))
		return
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	status, err := keeper.Start(cmd)
	_ = out.Close()
	if err != nil {
		_ = in.Close()
		r.fail(err)
		return
	}
	r.pid.Store(int64(cmd.Process.Pid))
	_ = cmd.Process.Release() // The keeper waits for it.
	go r.read(in, to)
	go func() {
		s := <-status
		// What it wrote last says why it ended. Processes that it left behind may hold the pipe.
		select {
		case <-r.closed:
		case <-time.After(100 * time.Millisecond):
		}
		r.follow()
		r.exit = Exit{Code: s.ExitStatus()}
		if s.Signaled() {
			r.exit.Signal = s.Signal()
		}
		close(r.ended)
	}()
}

func (r *rank) fail(err error) {
	var unknown *exec.Error
	if errors.As(err, &unknown) {
		err = fmt.Errorf("cannot start %q: %w", unknown.Name, unknown.Err)
	}
	r.exit = Exit{Code: -1, Err: err}
	close(r.closed)
	close(r.ended)
}

// read what the rank writes, until no process can write any more.
func (r *rank) read(in io.ReadCloser, to *pass) {
	defer close(r.closed)
	defer func() { _ = in.Close() }()
	var lines watch.Splitter
	chunk := make([]byte, 32<<10)
	for {
		n, err := in.Read(chunk)
		if n > 0 {
			lines.Split(chunk[:n], r.line)
			to.write(chunk[:n])
		}
		if err != nil {
			break
		}
	}
	lines.Flush(r.line)
	to.close()
}

// line of output.
func (r *rank) line(line string) {
	sight := r.watcher.Output(line)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen.step < 0 && sight.Progress.Step < 0 {
		sight.Progress.Checkpoint = "" // It is loaded, or part of the settings.
	}
	r.heard = time.Now()
	r.tail.Add(line)
	r.take(sight)
}

// follow the file of progress.
func (r *rank) follow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading.follow(func(line []byte) {
		r.heard = time.Now()
		r.take(r.watcher.File(line))
	})
}

// take what a line says. A step that is less than the one before means that the other was none, as in a line about settings.
func (r *rank) take(s watch.Sight) {
	if s.Advanced {
		p := s.Progress
		if p.Step > r.seen.step && p.Step >= 0 {
			r.seen.advanced, r.seen.at = true, time.Now()
		}
		if p.Step >= 0 {
			r.seen.step = p.Step
		}
		if p.Of > 0 {
			r.seen.of = p.Of
		}
		if p.Loss != "" && len(p.Loss) <= protocol.MaxLoss {
			r.seen.loss = p.Loss
		}
		if p.Checkpoint != "" && len(p.Checkpoint) <= protocol.MaxURI {
			last := r.seen.checkpoints[max(0, len(r.seen.checkpoints)-protocol.MaxCheckpoints+1):]
			r.seen.checkpoints = append(slices.Clone(last), crew.Checkpoint{
				Step: max(0, r.seen.step), URI: p.Checkpoint, At: time.Now().UTC().Truncate(time.Millisecond),
			})
		}
	}
	if s.Fault != nil {
		r.found(*s.Fault)
	}
}

// signal the rank alone: what it started is its own.
func (r *rank) signal(s syscall.Signal) {
	if pid := int(r.pid.Load()); pid > 0 && !r.gone() {
		_ = syscall.Kill(pid, s)
	}
}

// signalAll of its process group, also when it has ended itself.
func (r *rank) signalAll(s syscall.Signal) {
	if pid := int(r.pid.Load()); pid > 0 {
		_ = syscall.Kill(-pid, s)
	}
}

func (r *rank) gone() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}
