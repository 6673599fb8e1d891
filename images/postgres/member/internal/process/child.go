// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// grace is how long a program gets to stop once the context has ended.
const grace = 10 * time.Second

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
	if err := t.begin(cmd); err != nil {
		return nil, err
	}
	c := &Child{cmd: cmd, done: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		t.ended(cmd)
		close(c.done)
	}()
	return c, nil
}

// Run a program in a folder, or with none where this one runs, until it ends or the context does, which tells it to stop. It returns what the program says, also when it
// fails.
func (t *Table) Run(ctx context.Context, folder, path string, args ...string) (string, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &said, &said
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if err := t.begin(cmd); err != nil {
		return "", err
	}
	err := cmd.Wait()
	t.ended(cmd)
	if err != nil {
		return said.String(), fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return said.String(), nil
}

// begin a program whose end is waited for.
func (t *Table) begin(cmd *exec.Cmd) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}
	if t.own == nil {
		t.own = map[int]bool{}
	}
	t.own[cmd.Process.Pid] = true
	return nil
}

// ended tells that a program was waited for.
func (t *Table) ended(cmd *exec.Cmd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.own, cmd.Process.Pid)
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
