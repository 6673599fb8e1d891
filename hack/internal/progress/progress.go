// SPDX-License-Identifier: Apache-2.0

// Package progress shows what a long command is doing: which step, how far, how long.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// heartbeat is how often a long step says that it is still alive.
const heartbeat = 15 * time.Second

// A Printer writes one line when a step ends and, while it lasts, one every 15 seconds.
type Printer struct {
	out   io.Writer
	start time.Time

	mu sync.Mutex
}

// New returns a Printer that measures the total from now.
func New(out io.Writer) *Printer {
	return &Printer{out: out, start: time.Now()}
}

// Sayf prints one line with the time since the start in front.
func (p *Printer) Sayf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "%7s  %s\n", round(time.Since(p.start)), fmt.Sprintf(format, args...))
}

// Step runs fn and prints its name and duration. The detail, if not nil, reports at every heartbeat how far fn is.
func (p *Printer) Step(name string, detail func() string, fn func() error) error {
	begin := time.Now()
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				far := ""
				if detail != nil {
					far = ", " + detail()
				}
				p.Sayf("%s … %s%s", name, round(time.Since(begin)), far)
			}
		}
	}()
	err := fn()
	close(done)
	<-stopped
	if err != nil {
		return err
	}
	p.Sayf("%s (%s)", name, round(time.Since(begin)))
	return nil
}

func round(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
