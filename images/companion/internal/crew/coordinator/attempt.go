// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"fmt"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/watch"
)

// An attempt is one start of all ranks.
type attempt struct {
	number int
	begun  time.Time
	// ledger as it was when the attempt began.
	ledger protocol.Ledger
	// from is the step that it resumed after, and resume the checkpoint. Nil: none of this training's.
	from   int64
	resume *crew.Checkpoint

	// workers by index, and their indexes by group rank.
	workers map[int]*worker
	slots   []int

	ranks map[int]*rankState
	// When the first and the last step were reported, and the furthest one.
	firstAt time.Time
	lastAt  time.Time
	topAt   time.Time
	// saved: the ranks reported a checkpoint after their last step.
	saved bool
	// checkpoint is the furthest step of a checkpoint that was reported.
	checkpoint int64
	pace       watch.Pace
	recent     []point
	of         int64
	loss       string
	// heard is when a rank wrote something last.
	heard time.Time
	// ending is when the first rank ended well.
	ending time.Time

	fault     *crew.Fault
	lines     string
	secondary bool
	voluntary bool
	// how the ranks are stopped, and until when all of them are.
	how    protocol.How
	stopBy time.Time
}

type worker struct {
	groupRank int
	stopped   bool
	done      bool
}

type rankState struct {
	step int64
	at   time.Time
}

// A point of the curve of steps over time.
type point struct {
	at   time.Time
	step int64
}

// recentTime is how far back the speed is measured.
const recentTime = 2 * time.Minute

func newAttempt(number int, now time.Time, slots []int, resume *crew.Checkpoint, ledger protocol.Ledger) *attempt {
	a := &attempt{
		number: number, begun: now, heard: now, slots: slots, resume: resume, ledger: ledger,
		workers: map[int]*worker{}, ranks: map[int]*rankState{},
	}
	for groupRank, index := range slots {
		a.workers[index] = &worker{groupRank: groupRank}
	}
	if resume != nil {
		a.from = resume.Step
	}
	return a
}

// worker of an index. Nil if it has none, or if there is no attempt.
func (a *attempt) worker(index int) *worker {
	if a == nil {
		return nil
	}
	return a.workers[index]
}

// indexOf the pod of a rank, or -1.
func (a *attempt) indexOf(rank, processes int) int {
	if rank < 0 || rank/processes >= len(a.slots) {
		return -1
	}
	return a.slots[rank/processes]
}

func (a *attempt) stopped() bool {
	for _, w := range a.workers {
		if !w.stopped {
			return false
		}
	}
	return true
}

func (a *attempt) done() bool {
	for _, w := range a.workers {
		if !w.done {
			return false
		}
	}
	return true
}

// furthest step of all ranks, which is at least the one that they resumed after.
func (a *attempt) furthest() int64 { return max(a.from, a.top()) }

// top step that a rank reported.
func (a *attempt) top() int64 {
	top := int64(0)
	for _, r := range a.ranks {
		top = max(top, r.step)
	}
	return top
}

// hear that some rank of a member wrote something.
func (a *attempt) hear(index int, at time.Time) {
	if a.worker(index) != nil && at.After(a.heard) {
		a.heard = at
	}
}

// advance by what a rank reported: its step is another one than before, and not less than the one before unless that was no step.
func (a *attempt) advance(now time.Time, r protocol.RankProgress) {
	before := a.top()
	at := now.Add(-time.Duration(r.AgoMillis) * time.Millisecond)
	if at.Before(a.lastAt) {
		at = a.lastAt
	}
	a.ranks[r.Rank] = &rankState{step: r.Step, at: at}
	after := a.top()
	if a.firstAt.IsZero() {
		a.firstAt = at
	} else if after > before {
		a.pace.Steps(after-before, at.Sub(a.topAt))
	}
	if after > before {
		a.saved, a.topAt = false, at
	}
	a.lastAt = at
	a.recent = append(a.recent, point{at: at, step: after})
	old := 0
	for old < len(a.recent)-2 && now.Sub(a.recent[old].at) > recentTime {
		old++
	}
	a.recent = slices.Delete(a.recent, 0, max(old, len(a.recent)-600))
}

// save: a checkpoint was reported.
func (a *attempt) save(now time.Time, step int64) {
	if !a.saved && !a.topAt.IsZero() {
		a.pace.Saved(now.Sub(a.topAt))
	}
	// A report may bring a checkpoint together with later steps.
	a.saved = step >= a.top()
	a.checkpoint = max(a.checkpoint, step)
	if !a.lastAt.IsZero() {
		a.lastAt = now
	}
}

// savedBeyond reports whether a checkpoint was reported that is beyond the best of the attempts before.
func (a *attempt) savedBeyond() bool { return a.checkpoint > a.from && a.checkpoint > a.ledger.Best }

// beyond reports whether the attempt made progress, after which no earlier checkpoint is needed than the ones that follow it.
func (a *attempt) beyond() bool { return a.furthest() > a.ledger.Best || a.savedBeyond() }

// speed in steps per second over the last minutes.
func (a *attempt) speed(now time.Time) float64 {
	if len(a.recent) < 2 {
		return 0
	}
	first, last := a.recent[0], a.recent[len(a.recent)-1]
	took := max(now.Sub(first.at)-recentTime/60, last.at.Sub(first.at))
	if took <= 0 || last.step <= first.step {
		return 0
	}
	return float64(last.step-first.step) / took.Seconds()
}

// overdue is the fault of ranks that made no progress for longer than their phase allows. Nil: they are in time.
func (a *attempt) overdue(now time.Time, plan crew.Plan, stalls int, recognised bool) *protocol.Fault {
	phases := plan.Watch.Phases
	setup := time.Duration(phases.Setup) * time.Second
	if !a.ending.IsZero() {
		if limit := time.Duration(phases.Finish) * time.Second; now.Sub(a.ending) > limit {
			return &protocol.Fault{Class: crew.ClassStalled, Rank: -1, Message: fmt.Sprintf(
				"not all ranks ended within %s after the first one did (phase finish); their stacks are in the logs", limit)}
		}
		return nil
	}
	if a.firstAt.IsZero() {
		since := a.begun
		if !recognised && a.heard.After(since) {
			// What the ranks write is not understood, but they write: they may be well.
			since = a.heard
		}
		if now.Sub(since) <= setup {
			return nil
		}
		message := fmt.Sprintf("no rank reported a step within %s (phase setup); their stacks are in the logs", setup)
		if !recognised {
			message = fmt.Sprintf("no step was recognised, and no rank wrote anything for %s (phase setup): let ranks report progress in $%s, "+
				"set watch.progress, or raise watch.phases.setup; their stacks are in the logs", setup, crew.EnvProgress)
		}
		return &protocol.Fault{Class: crew.ClassStalled, Rank: -1, Message: message}
	}
	limit := time.Duration(phases.Step) * time.Second
	name := "phase step"
	if limit == 0 {
		if learned, known := a.pace.Budget(stalls); known {
			limit, name = learned, "phase step, learned"
		} else {
			limit, name = setup, "phase setup: fewer than 20 steps are known"
		}
	}
	if a.saved {
		limit += time.Duration(phases.Checkpoint) * time.Second
		name += " and checkpoint"
	}
	silence := now.Sub(a.lastAt)
	if silence <= limit {
		return nil
	}
	rank := a.suspect(plan.Processes)
	who := ""
	if rank >= 0 {
		who = fmt.Sprintf("; rank %d stopped first, after step %d", rank, a.ranks[rank].step)
	}
	return &protocol.Fault{Class: crew.ClassStalled, Rank: rank, Message: fmt.Sprintf(
		"no step for %s, and %s are allowed (%s)%s; the stacks of all ranks are in the logs", silence.Round(time.Second), limit, name, who)}
}

// suspect is the rank that is behind, or that stopped first. -1 if only one rank reports.
func (a *attempt) suspect(processes int) int {
	suspect := -1
	for rank, r := range a.ranks {
		s := a.ranks[suspect]
		if s == nil || r.step < s.step || r.step == s.step && (r.at.Before(s.at) || r.at.Equal(s.at) && rank < suspect) {
			suspect = rank
		}
	}
	if len(a.ranks) < 2 && len(a.slots)*processes > 1 {
		return -1
	}
	return suspect
}
