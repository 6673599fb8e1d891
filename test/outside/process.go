// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// startTimeout is generous: MLflow needs three seconds on an idle machine, and test machines are not idle.
	startTimeout = 2 * time.Minute
	// stopTimeout is how long a server can finish its work before it is killed.
	stopTimeout = 3 * time.Second
	// logTail is how much of a log a failure shows.
	logTail = 4 << 10
)

// A process is a server that can be stopped and started again. It has its own process group.
type process struct {
	// name for messages.
	name string
	// command line and environment.
	args, env []string
	// dir is its working directory, which also has its log.
	dir string
	// ready returns nil once it responds.
	ready func() error
	// timeout is how long that may take, startTimeout unless set.
	timeout time.Duration

	mu    sync.Mutex
	pid   int
	ended chan struct{}
}

// start returns when the process responds. It does nothing if the process runs.
func (p *process) start(tb testing.TB) {
	tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid != 0 {
		return
	}
	if err := p.spawn(); err != nil {
		tb.Fatalf("cannot start %s: %v", p.name, err)
	}
	timeout := cmp.Or(p.timeout, startTimeout)
	deadline := time.Now().Add(timeout)
	for {
		err := p.ready()
		if err == nil {
			return
		}
		select {
		case <-p.ended:
			p.pid = 0
			tb.Fatalf("cannot start %s: it ended: %s", p.name, p.log())
		default:
		}
		if time.Now().After(deadline) {
			p.kill()
			tb.Fatalf("cannot start %s within %s: %v: %s", p.name, timeout, err, p.log())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// stop returns when the process is gone.
func (p *process) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kill()
}

func (p *process) kill() {
	if p.pid == 0 {
		return
	}
	_ = syscall.Kill(-p.pid, syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
	}
	// The rest of the leader's group must end, too.
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	<-p.ended
	p.pid = 0
}

func (p *process) spawn() error {
	file, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open its log: %w", err)
	}
	//nolint:gosec // programs of the cache, with arguments of this package
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = p.dir, p.env, file, file, attributes()
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		// The kernel treats the death of the thread that started a process as the death of its parent
		// (golang/go#27505).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		_ = file.Close()
	}()
	if err := <-started; err != nil {
		return err
	}
	p.pid, p.ended = cmd.Process.Pid, ended
	return nil
}

func (p *process) logFile() string { return filepath.Join(p.dir, p.name+".log") }

func (p *process) log() string {
	data, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-logTail):])
}

// freePort returns a free port. If another process takes it in between, the server ends and its test fails.
func freePort(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		tb.Fatalf("cannot find a free port: %v", err)
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		tb.Fatalf("cannot find a free port: %s is no TCP address", l.Addr())
	}
	return strconv.Itoa(addr.Port)
}
