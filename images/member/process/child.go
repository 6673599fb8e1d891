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
	"strings"
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

// output of programs, unless it is the output of this program.
var output *os.File

// Into lets every program that Start starts from now on write to a file.
func Into(file *os.File) { output = file }

// Start a program. Its output goes where the output of this program goes, or Into a file.
func Start(path string, environment []string, args ...string) (*Child, error) {
	// It ends by a signal, not with a context: it has to stop PostgreSQL first.
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if output != nil {
		cmd.Stdout, cmd.Stderr = output, output
	}
	return Begin(cmd)
}

// Begin a command. In a program that reaps, its own Start may not learn how it ended.
func Begin(cmd *exec.Cmd) (*Child, error) {
	awaited.Lock()
	defer awaited.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}
	c := &Child{cmd: cmd, done: make(chan struct{})}
	awaited.pids[c.PID()] = true
	go func() {
		c.err = cmd.Wait()
		awaited.Lock()
		delete(awaited.pids, c.PID())
		awaited.Unlock()
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
	if err := Do(cmd, grace); err != nil {
		return said.String(), fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return said.String(), nil
}

// Do a command to its end. When its context ends first, Do signals it to stop, and kills it after some time.
func Do(cmd *exec.Cmd, within time.Duration) error {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = within
	c, err := Begin(cmd)
	if err != nil {
		return err
	}
	<-c.done
	return c.err
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

// Ended reports whether the child has ended.
func (c *Child) Ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Within waits until the child has ended or a time has passed, and reports whether the child has ended.
func (c *Child) Within(limit time.Duration) bool {
	select {
	case <-c.done:
		return true
	case <-time.After(limit):
		return false
	}
}

// Stop the child with a signal, and kill it if it has not ended in time.
func (c *Child) Stop(s syscall.Signal, within time.Duration) {
	_ = c.Signal(s)
	if !c.Within(within) {
		_ = c.Signal(syscall.SIGKILL)
		<-c.done
	}
}

// Head is the beginning of what a program said: one line of at most so many bytes and an ellipsis.
func Head(said string, most int) string {
	said = strings.Join(strings.Fields(said), " ")
	if len(said) > most {
		return strings.ToValidUTF8(said[:most], "") + " …"
	}
	return said
}

// Tail is the end of what a program said, like Head.
func Tail(said string, most int) string {
	said = strings.Join(strings.Fields(said), " ")
	if len(said) > most {
		return "… " + strings.ToValidUTF8(said[len(said)-most:], "")
	}
	return said
}
