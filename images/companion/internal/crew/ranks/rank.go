// SPDX-License-Identifier: Apache-2.0

// Package ranks starts and ends the ranks of an attempt in one pod.
package ranks

import (
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/watch"
	"github.com/capstan-dev/capstan/images/companion/internal/process"
)

// A rank is one process of the training, and what it wrote.
type rank struct {
	*process.Process

	number  int
	watcher *watch.Watcher
	found   func(watch.Fault)

	mu      sync.Mutex
	reading reading
	tail    process.Tail
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

// start the process.
func (r *rank) start(keeper *process.Keeper, cmd *exec.Cmd, to *process.Pass) {
	r.Start(keeper, cmd, to, r.line, r.follow)
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
