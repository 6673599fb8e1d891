// SPDX-License-Identifier: Apache-2.0

// Package protocol is what the companions of a run say to each other: messages as lines of JSON, over one TCP connection from each
// member to the coordinator. All of them come from one image, so that both sides know exactly the same fields.
package protocol

import (
	"errors"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
)

// Times of the protocol. A member renews its lease only by the echo of a beat, and counts from when it sent that beat. So it has killed
// its ranks before the coordinator, which counts from when it got the beat, gives their numbers to others.
const (
	// BeatEvery is the time between two beats of a member.
	BeatEvery = 2 * time.Second
	// Lease is how long a member keeps its ranks without an echo.
	Lease = 8 * time.Second
	// Lost is after how long without a beat a member is lost.
	Lost = 10 * time.Second
)

// Kind of a message.
type Kind string

// Kinds that members send.
const (
	// Hello is the first message of a connection. A member sends it only while it has no ranks.
	Hello Kind = "hello"
	// Beat says that the member lives. The coordinator returns it.
	Beat Kind = "beat"
	// Advanced reports progress.
	Advanced Kind = "progress"
	// Failed reports a fault.
	Failed Kind = "fault"
	// Stopped says that no process of the attempt is left.
	Stopped Kind = "stopped"
	// Ending says that the first rank of the member ended with exit code 0.
	Ending Kind = "ending"
	// Done says that all ranks of the member ended with exit code 0.
	Done Kind = "done"
	// Leaving says that the member's pod has to go.
	Leaving Kind = "leaving"
)

// Kinds that the coordinator sends, besides Beat.
const (
	// Start makes the member start ranks.
	Start Kind = "start"
	// Stop makes the member stop its ranks and say Stopped.
	Stop Kind = "stop"
	// Account has the ledger: an attempt began without it, or ended.
	Account Kind = "account"
	// Finish ends the member.
	Finish Kind = "finish"
)

// A Message of either side.
type Message struct {
	Kind Kind `json:"kind"`
	// Run and Index of the member's pod, whichever side sends it.
	Run   int `json:"run"`
	Index int `json:"index"`
	// Attempt that it is about. -1 in a Hello without one.
	Attempt int `json:"attempt"`
	// Sequence of a Beat, from 1.
	Sequence uint64 `json:"sequence,omitempty"`
	// SilentMillis is in a Beat how long no rank of the member has written anything.
	SilentMillis int64 `json:"silentMillis,omitempty"`

	// What belongs to each kind.
	Greeting *Greeting `json:"greeting,omitempty"`
	Progress *Progress `json:"progress,omitempty"`
	Fault    *Fault    `json:"fault,omitempty"`
	Orders   *Orders   `json:"orders,omitempty"`
	Halt     *Halt     `json:"halt,omitempty"`
	Ledger   *Ledger   `json:"ledger,omitempty"`
	Verdict  *Verdict  `json:"verdict,omitempty"`
}

// A Ledger is the account of a run's attempts. Each member has a copy, from which a coordinator that starts again continues.
type Ledger struct {
	// Attempt that began last, -1 before the first.
	Attempt int `json:"attempt"`
	// Begun is when the first attempt began.
	Begun time.Time `json:"begun,omitzero"`
	// Best is the furthest step of the attempts before.
	Best int64 `json:"best,omitempty"`
	// Attempts in a row that ended without progress, and by certain classes of faults without progress in between.
	WithoutProgress int `json:"withoutProgress,omitempty"`
	NonFinite       int `json:"nonFinite,omitempty"`
	OutOfMemory     int `json:"outOfMemory,omitempty"`
	// Stalls is the number of attempts that stalled.
	Stalls int `json:"stalls,omitempty"`
	// Excused is the number of attempts that ended because a pod had to go.
	Excused int `json:"excused,omitempty"`
	// Recognised reports that a step of a rank was recognised in an attempt before.
	Recognised bool `json:"recognised,omitempty"`
	// Judged reports that the numbers above count the attempt, which has ended.
	Judged bool `json:"judged,omitempty"`
	// Kept is the time that was spent on steps that were kept, in the attempts before.
	Kept time.Duration `json:"kept,omitempty"`
}

// A Greeting says what a member knows.
type Greeting struct {
	// Ledger of the last attempt that the member heard of.
	Ledger Ledger `json:"ledger"`
	// Step is the furthest one of the member's ranks in that attempt.
	Step int64 `json:"step,omitempty"`
	// Checkpoint is the newest that one of the member's ranks reported.
	Checkpoint *crew.Checkpoint `json:"checkpoint,omitempty"`
}

// Progress of a member's ranks.
type Progress struct {
	// Ranks that have advanced.
	Ranks []RankProgress `json:"ranks,omitempty"`
	// Of is the number of steps in all, 0 when unknown.
	Of int64 `json:"of,omitempty"`
	// Loss that was reported last. Empty when unknown.
	Loss string `json:"loss,omitempty"`
	// Checkpoints that were reported.
	Checkpoints []crew.Checkpoint `json:"checkpoints,omitempty"`
}

// RankProgress is how far a rank is.
type RankProgress struct {
	Rank int   `json:"rank"`
	Step int64 `json:"step"`
	// AgoMillis is how long ago it reported that.
	AgoMillis int64 `json:"agoMillis,omitempty"`
}

// A Fault of a member's rank.
type Fault struct {
	Class crew.Class `json:"class"`
	// Rank, or -1 for the whole member.
	Rank int `json:"rank"`
	// Message for people, in one line.
	Message string `json:"message"`
	// Lines are the last ones of the rank's output.
	Lines string `json:"lines,omitempty"`
	// Secondary reports that the rank may have failed because others did.
	Secondary bool `json:"secondary,omitempty"`
}

// Orders to start ranks.
type Orders struct {
	// GroupRank of the member, from 0 to the number of workers - 1.
	GroupRank int `json:"groupRank"`
	// Master is the index of the pod that has rank 0, which listens on MasterPort.
	Master     int `json:"master"`
	MasterPort int `json:"masterPort"`
	// ResumeFrom is the checkpoint to begin with, and Step the step it was taken after.
	ResumeFrom string `json:"resumeFrom,omitempty"`
	Step       int64  `json:"step,omitempty"`
}

// How ranks are stopped.
type How string

// Ways to stop ranks. All of them end with SIGKILL for the whole process group and all orphans.
const (
	// Kill at once: ranks of an attempt with a fault have nothing to save.
	Kill How = "Kill"
	// Abort first, so that ranks write their stacks.
	Abort How = "Abort"
	// Terminate first, with time to write a checkpoint.
	Terminate How = "Terminate"
)

// A Halt stops ranks.
type Halt struct {
	How How `json:"how"`
}

// A Verdict ends a member.
type Verdict struct {
	// Code with which the companion exits.
	Code int `json:"code"`
	// Message for people.
	Message string `json:"message,omitempty"`
}

// Limits of what one message may have. The longest that they allow is shorter than MaxLine.
const (
	// MaxCheckpoints of one report of progress: the newest.
	MaxCheckpoints = 8
	// MaxURI is the longest path or URI of a checkpoint, in bytes.
	MaxURI = 1024
	// MaxLoss is the longest loss as it was printed, in bytes.
	MaxLoss = 64
	// MaxWords is the longest message of a fault, in bytes.
	MaxWords = 2048

	maxRanks   = 64 // As many as a pod can have.
	maxLines   = 4 << 10
	maxAttempt = 1 << 20
)

// check reports why a message cannot be right. It does not know which side sent it.
func (m Message) check() error {
	parts := map[Kind]bool{
		Hello: m.Greeting != nil, Advanced: m.Progress != nil, Failed: m.Fault != nil, Start: m.Orders != nil && m.Ledger != nil,
		Stop: m.Halt != nil, Account: m.Ledger != nil, Finish: m.Verdict != nil, Beat: m.Sequence > 0,
		Stopped: true, Ending: true, Done: true, Leaving: true,
	}
	whole, known := parts[m.Kind]
	switch {
	case !known:
		return fmt.Errorf("%q is no kind of message", m.Kind)
	case !whole:
		return fmt.Errorf("a message of the kind %s is incomplete", m.Kind)
	case m.Attempt < -1, m.Attempt > maxAttempt:
		return fmt.Errorf("there is no attempt %d", m.Attempt)
	case m.SilentMillis < 0:
		return errors.New("a silence cannot be negative")
	}
	return errors.Join(m.Greeting.check(), m.Ledger.check(), m.Progress.check(), m.Fault.check(), m.Orders.check(), m.Halt.check())
}

func (g *Greeting) check() error {
	if g == nil {
		return nil
	}
	if g.Checkpoint != nil {
		if err := checkpoint(*g.Checkpoint); err != nil {
			return err
		}
	}
	return g.Ledger.check()
}

func (l *Ledger) check() error {
	if l != nil && (l.Attempt < -1 || l.Attempt > maxAttempt) {
		return fmt.Errorf("there is no attempt %d", l.Attempt)
	}
	return nil
}

func (p *Progress) check() error {
	if p == nil {
		return nil
	}
	if len(p.Ranks) > maxRanks || len(p.Checkpoints) > MaxCheckpoints || len(p.Loss) > MaxLoss {
		return errors.New("the progress has too much")
	}
	for _, r := range p.Ranks {
		if r.Rank < 0 || r.Step < 0 || r.AgoMillis < 0 {
			return errors.New("the progress has negative numbers")
		}
	}
	for _, c := range p.Checkpoints {
		if err := checkpoint(c); err != nil {
			return err
		}
	}
	return nil
}

func checkpoint(c crew.Checkpoint) error {
	if c.Step < 0 || c.URI == "" || len(c.URI) > MaxURI {
		return errors.New("a checkpoint has a negative step, no URI, or one that is too long")
	}
	return nil
}

func (f *Fault) check() error {
	if f != nil && (len(f.Message) > MaxWords || len(f.Lines) > maxLines) {
		return errors.New("the text of a fault is too long")
	}
	return nil
}

func (o *Orders) check() error {
	if o != nil && (o.GroupRank < 0 || o.Master < 0) {
		return errors.New("orders name no group rank or no master")
	}
	return nil
}

func (h *Halt) check() error {
	if h != nil && h.How != Kill && h.How != Abort && h.How != Terminate {
		return fmt.Errorf("there is no way %q to stop ranks", h.How)
	}
	return nil
}
