// SPDX-License-Identifier: Apache-2.0

package ranks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/watch"
	"github.com/capstan-dev/capstan/images/companion/internal/process"
)

// Times of stopping.
const (
	// abortTime is how long ranks have to write their stacks.
	abortTime = 2 * time.Second
	// unfitAfter is how long processes have to end after SIGKILL. Those that do not hang in the kernel.
	unfitAfter = 30 * time.Second
	// followEvery is how often files of progress are read.
	followEvery = 100 * time.Millisecond
)

// A Launch says how the ranks of a pod are started.
type Launch struct {
	Command []string
	// First is the number of the first rank of the pod, and Processes how many it has.
	First     int
	Processes int
	// Environment of a rank, besides what this process has.
	Environment func(rank int, progress string) []string
	// Scratch is the folder for files of progress.
	Scratch string
	Attempt int
	// Out gets what the ranks write.
	Out     io.Writer
	Watcher *watch.Watcher
}

// A Found is a fault that a line of a rank means.
type Found struct {
	Rank  int
	Fault watch.Fault
}

// An Ended is the end of a rank.
type Ended struct {
	Rank int
	Exit process.Exit
}

// A Group is the ranks of one attempt in this pod.
type Group struct {
	keeper *process.Keeper
	ranks  []*rank

	// Found has the first faults that lines mean.
	Found chan Found
	// Ended has the end of each rank.
	Ended chan Ended

	// started is closed when all ranks were started, or none is any more because they are halted.
	started chan struct{}
	halted  chan struct{}
	halting sync.Once
	hurry   chan struct{}
	rushing sync.Once
	stopped chan struct{}
	unfit   bool
}

// Start the ranks of an attempt.
func Start(k *process.Keeper, l Launch) *Group {
	g := &Group{
		keeper: k, Found: make(chan Found, l.Processes), Ended: make(chan Ended, l.Processes),
		started: make(chan struct{}), halted: make(chan struct{}), hurry: make(chan struct{}), stopped: make(chan struct{}),
	}
	begin := make([]func(), 0, l.Processes)
	shared := process.NewOutput(l.Out)
	for local := range l.Processes {
		number := l.First + local
		file := filepath.Join(l.Scratch, fmt.Sprintf("progress-%d-%d.jsonl", l.Attempt, number))
		_ = os.Remove(file) // An earlier companion of this pod may have left it.
		r := &rank{
			Process: process.New(), number: number, watcher: l.Watcher,
			reading: reading{path: file}, heard: time.Now(), seen: seen{step: -1},
		}
		r.found = func(f watch.Fault) {
			select {
			case g.Found <- Found{Rank: number, Fault: f}:
			default: // The first ones are enough.
			}
		}
		cmd := exec.Command(l.Command[0], l.Command[1:]...)
		cmd.Env = append(os.Environ(), l.Environment(number, file)...)
		prefix := ""
		if l.Processes > 1 {
			prefix = fmt.Sprintf("[rank %d] ", number)
		}
		to := shared.Pass(prefix)
		g.ranks = append(g.ranks, r)
		begin = append(begin, func() { r.start(k, cmd, to) })
		go func() {
			<-r.Ended()
			g.Ended <- Ended{Rank: number, Exit: r.Exit()}
		}()
	}
	// A program may come from a disk that does not answer. They can be halted meanwhile.
	go func() {
		defer close(g.started)
		for i, r := range g.ranks {
			select {
			case <-g.halted:
				r.Fail(errors.New("was not started"))
			default:
				begin[i]()
			}
		}
	}()
	go g.follow()
	return g
}

// follow files of progress until all is stopped.
func (g *Group) follow() {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, r := range g.ranks {
				r.follow()
			}
		case <-g.stopped:
			for _, r := range g.ranks {
				r.mu.Lock()
				r.reading.close()
				r.mu.Unlock()
			}
			return
		}
	}
}

// Halt the ranks in a way. To halt them again by Kill ends the time that the first way gives. Stopped is closed when none is left.
func (g *Group) Halt(how protocol.How, grace time.Duration) {
	g.halting.Do(func() {
		close(g.halted)
		go g.stop(how, grace)
	})
	if how == protocol.Kill {
		g.rushing.Do(func() { close(g.hurry) })
	}
}

func (g *Group) stop(how protocol.How, grace time.Duration) {
	switch how {
	case protocol.Terminate:
		for _, r := range g.ranks {
			r.Signal(syscall.SIGTERM)
		}
		g.await(grace)
	case protocol.Abort:
		// The program may be started by a shell, whose stack says nothing.
		for _, r := range g.ranks {
			r.SignalAll(syscall.SIGABRT)
		}
		g.await(abortTime)
	case protocol.Kill:
	}
	for _, r := range g.ranks {
		r.SignalAll(syscall.SIGKILL)
	}
	until := time.Now().Add(unfitAfter)
	for !g.allStarted() || !g.keeper.Sweep() {
		if time.Now().After(until) {
			g.unfit = true
			close(g.stopped)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	// The log shall have all of it, and what it says shall be known before the attempt counts as stopped.
	// An output that takes nothing any more keeps what is left.
	limit, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	for _, r := range g.ranks {
		select {
		case <-r.Closed():
		case <-limit.Done():
		}
	}
	for _, r := range g.ranks {
		<-r.Ended()
	}
	close(g.stopped)
}

func (g *Group) allStarted() bool {
	select {
	case <-g.started:
		return true
	default:
		return false
	}
}

// await the end of all ranks, for some time.
func (g *Group) await(most time.Duration) {
	limit := time.NewTimer(most)
	defer limit.Stop()
	for _, r := range g.ranks {
		select {
		case <-r.Ended():
		case <-limit.C:
			return
		case <-g.hurry:
			return
		}
	}
}

// Stopped is closed when no process is left, or when some do not end: see Unfit.
func (g *Group) Stopped() <-chan struct{} { return g.stopped }

// Unfit reports, once it is stopped, that processes did not end.
func (g *Group) Unfit() bool { return g.unfit }

// Tail is the last lines of a rank, at most so many bytes.
func (g *Group) Tail(number, most int) string {
	for _, r := range g.ranks {
		if r.number == number {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.tail.String(most)
		}
	}
	return ""
}

// Silent is how long no rank has written anything.
func (g *Group) Silent(now time.Time) time.Duration {
	least := time.Duration(1<<63 - 1)
	for _, r := range g.ranks {
		r.mu.Lock()
		least = min(least, max(0, now.Sub(r.heard)))
		r.mu.Unlock()
	}
	return least
}

// Progress since the last call, and whether there is any.
func (g *Group) Progress(now time.Time) (protocol.Progress, bool) {
	var p protocol.Progress
	some := false
	for _, r := range g.ranks {
		r.mu.Lock()
		s := &r.seen
		if s.advanced {
			some = true
			p.Ranks = append(p.Ranks, protocol.RankProgress{Rank: r.number, Step: s.step, AgoMillis: max(0, now.Sub(s.at).Milliseconds())})
		}
		if s.advanced || len(s.checkpoints) > 0 {
			p.Of = max(p.Of, s.of)
			if s.loss != "" {
				p.Loss = s.loss
			}
		}
		some = some || len(s.checkpoints) > 0
		p.Checkpoints = append(p.Checkpoints, s.checkpoints...)
		s.advanced, s.checkpoints = false, nil
		r.mu.Unlock()
	}
	slices.SortStableFunc(p.Checkpoints, func(a, b crew.Checkpoint) int { return a.At.Compare(b.At) })
	p.Checkpoints = p.Checkpoints[max(0, len(p.Checkpoints)-protocol.MaxCheckpoints):]
	return p, some
}
