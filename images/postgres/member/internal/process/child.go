// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// A Child is a process that this program started.
type Child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start a program, whose output is that of this one.
func (t *Table) Start(path string, environment []string, args ...string) (*Child, error) {
	// It ends by a signal, not with a context: it has to stop PostgreSQL first.
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", path, err)
	}
	if t.own == nil {
		t.own = map[int]bool{}
	}
	t.own[cmd.Process.Pid] = true
	c := &Child{cmd: cmd, done: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		t.mu.Lock()
		delete(t.own, cmd.Process.Pid)
		t.mu.Unlock()
		close(c.done)
	}()
	return c, nil
}

// Owns tells whether a process was started with Start and has not ended.
func (t *Table) Owns(pid int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.own[pid]
}

// PID of the child.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err says how the child ended, once it has: nil is success.
func (c *Child) Err() error { return c.err }

// Signal the child. One that has ended is no error.
func (c *Child) Signal(s syscall.Signal) error {
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot signal process %d: %w", c.PID(), err)
	}
	return nil
}
