// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"os/exec"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/images/companion/internal/crew/ranks"
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
	keeper *ranks.Keeper
	cmd    *exec.Cmd
	// ended is closed after the end of the process, when code is its exit code, or 128 and a signal.
	ended chan struct{}
	code  int
	began time.Time
}

func start(k *ranks.Keeper, cmd *exec.Cmd) (*child, error) {
	c := &child{keeper: k, cmd: cmd, ended: make(chan struct{}), began: time.Now()}
	status, err := k.Start(cmd)
	if err != nil {
		return nil, err
	}
	go func() {
		s := <-status
		c.code = s.ExitStatus()
		if s.Signaled() {
			c.code = 128 + int(s.Signal())
		}
		close(c.ended)
	}()
	return c, nil
}

// end the process, and all below it.
func (c *child) end(within time.Duration) {
	if within > 0 {
		_ = syscall.Kill(c.cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-c.ended:
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
