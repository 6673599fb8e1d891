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

// Start a program. Its output goes where the output of this program goes.
func Start(path string, environment []string, args ...string) (*Child, error) {
	// It ends by a signal, not with a context: it has to stop PostgreSQL first.
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := begin(cmd); err != nil {
		return nil, err
	}
	c := &Child{cmd: cmd, done: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		ended(cmd)
		close(c.done)
	}()
	return c, nil
}

// Run a program until it ends. When the context ends first, Run signals the program to stop. The program runs in a folder, or
// with none in the folder of this program. Run returns what the program wrote, also when it fails.
func Run(ctx context.Context, folder, path string, args ...string) (string, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &said, &said
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if err := Do(cmd); err != nil {
		return said.String(), fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return said.String(), nil
}

// Do a command to its end, as its own Run does, which in a program that reaps may not learn how it ended.
func Do(cmd *exec.Cmd) error {
	if err := begin(cmd); err != nil {
		return err
	}
	defer ended(cmd)
	return cmd.Wait()
}

// begin a program whose end is waited for.
func begin(cmd *exec.Cmd) error {
	awaited.Lock()
	defer awaited.Unlock()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}
	awaited.pids[cmd.Process.Pid] = true
	return nil
}

// ended records that a program was waited for.
func ended(cmd *exec.Cmd) {
	awaited.Lock()
	defer awaited.Unlock()
	delete(awaited.pids, cmd.Process.Pid)
}

// Owns reports whether a process was started by this program, which waits for its end.
func Owns(pid int) bool {
	awaited.Lock()
	defer awaited.Unlock()
	return awaited.pids[pid]
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
