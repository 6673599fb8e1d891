// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/images/companion/internal/process"
)

const (
	// endWithin is how long Flink has between SIGTERM and SIGKILL.
	endWithin = 5 * time.Second
	// sweepFor is how long processes have to be gone after SIGKILL.
	sweepFor = 30 * time.Second

	firstPause = time.Second
	lastPause  = time.Minute
	// goodAfter is how long a process has to live until the pause before its next start is the first one again.
	goodAfter = 5 * time.Minute
)

// A child is a process of Flink.
type child struct {
	*process.Process

	keeper *process.Keeper
	began  time.Time

	mu    sync.Mutex
	cause string
}

// start a process whose output goes to another one.
func start(k *process.Keeper, cmd *exec.Cmd, out io.Writer) (*child, error) {
	c := &child{Process: process.New(), keeper: k, began: time.Now()}
	c.Start(k, cmd, process.NewOutput(out).Pass(""), c.line, func() {})
	if c.Gone() && c.Exit().Err != nil {
		return nil, c.Exit().Err
	}
	return c, nil
}

// line of the output: the last cause of a stack trace, or what Java says about an option, is why Flink ended.
func (c *child) line(text string) {
	cause, ok := strings.CutPrefix(strings.TrimSpace(text), "Caused by: ")
	if !ok && strings.HasPrefix(text, "Error: ") {
		cause, ok = text, true
	}
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cause = cause
}

// why it ended, by its output, or empty.
func (c *child) why() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// code it ended with, or 128 and the signal.
func (c *child) code() int {
	e := c.Exit()
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return e.Code
}

// end the process, and all below it.
func (c *child) end(within time.Duration) {
	if within > 0 {
		c.Signal(syscall.SIGTERM)
		select {
		case <-c.Ended():
		case <-time.After(within):
		}
	}
	until := time.Now().Add(sweepFor)
	for !c.keeper.Sweep() && time.Now().Before(until) {
		time.Sleep(5 * time.Millisecond)
	}
}

// A pause before the next start of a process that ended by itself doubles each time.
type pause struct{ next time.Duration }

func (p *pause) after(lived time.Duration) time.Duration {
	if p.next == 0 || lived > goodAfter {
		p.next = firstPause
	}
	now := p.next
	p.next = min(2*p.next, lastPause)
	return now
}
