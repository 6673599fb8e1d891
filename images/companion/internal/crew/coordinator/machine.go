// SPDX-License-Identifier: Apache-2.0

// Package coordinator decides what the crew of a run does. It is a state machine: events go in, actions come out, and the time is an
// argument. It has no connection, process or file of its own.
//
// Three rules keep it right. Only the coordinator raises the attempt. It starts an attempt only when no member has ranks. And it starts
// none while a member that it has not heard from may still have some: see protocol.Lease.
package coordinator

import (
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/checkpoints"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
)

// A Conn is a connection with a member, by a number that is never used again.
type Conn int

// An Event that the machine handles: Received, Closed, Found, Recorded, Removed or Tick.
type Event interface{ event() }

type (
	// Received is a message of a member.
	Received struct {
		Conn    Conn
		Message protocol.Message
	}
	// Closed is the end of a connection.
	Closed struct {
		Conn Conn
		// Broken reports that the member did not end it: the member may live and not know.
		Broken bool
	}
	// Found is the answer to Find.
	Found struct {
		checkpoints.Found

		Err error
	}
	// Recorded is the answer to Record.
	Recorded struct{ Err error }
	// Removed is the answer to Remove: the names that are gone, and why others are not.
	Removed struct {
		Names []string
		Err   error
	}
	// Tick comes at least once a second.
	Tick struct{}
)

func (Received) event() {}
func (Closed) event()   {}
func (Found) event()    {}
func (Recorded) event() {}
func (Removed) event()  {}
func (Tick) event()     {}

// An Action that the machine wants: Send, Close, Find, Record, Remove or End.
type Action interface{ action() }

type (
	// Send a message to a member.
	Send struct {
		Conn    Conn
		Message protocol.Message
	}
	// Close a connection. The machine hears no more of it.
	Close struct{ Conn Conn }
	// Find the checkpoints that there are, and which reported ones are not there any more.
	Find struct {
		Reported []crew.Checkpoint
	}
	// Record what a coordinator that starts again has to know.
	Record struct{ Record checkpoints.Record }
	// Remove checkpoints by their names in the folder, while others are kept.
	Remove struct{ Names, Kept []string }
	// End the run.
	End struct {
		Code int
	}
)

func (Send) action()   {}
func (Close) action()  {}
func (Find) action()   {}
func (Record) action() {}
func (Remove) action() {}
func (End) action()    {}

// phase of the machine.
type phase int

const (
	gathering phase = iota // not enough members without ranks
	finding                // waits for Found
	running                // ranks run
	stopping               // waits until all members have stopped
	ended                  // for good
)

// A peer is a member that is connected.
type peer struct {
	conn  Conn
	heard time.Time
	// idle: it has no ranks.
	idle bool
	// leaving: its pod has to go.
	leaving bool
}

// A Machine is the coordinator of a run.
type Machine struct {
	plan  crew.Plan
	begun time.Time

	phase phase
	peers map[int]*peer
	lost  map[int]time.Time // since when members are missing
	// haunted are members that are missing and may still have ranks, and until when.
	haunted map[int]time.Time
	// unheard have not been heard since this coordinator began.
	unheard map[int]bool
	ledger  protocol.Ledger
	// attempt that runs or ran last under this coordinator.
	attempt *attempt
	// inherited is the furthest step of an attempt that an earlier coordinator began, while the attempt is not judged. -1: there is none.
	inherited int64

	// restore what the record has, once, before the first attempt.
	restored  bool
	reported  []crew.Checkpoint
	discarded []checkpoints.Discard
	newest    *crew.Checkpoint
	// findAt is when the folder is read next after it could not be read, and unreadable since when it cannot.
	findAt     time.Time
	unreadable time.Time
	unwritable string
	// folder as it is seen while ranks run.
	folder folder

	lastFault *crew.Fault
	lines     string
	restarts  map[crew.Class]int
	advanced  bool // some progress was recognised in this run
	message   string
	code      int
}

// Limits of the machine.
const (
	// findAgain is the time between two looks at a folder that cannot be read.
	findAgain = 10 * time.Second
	// stopLimit is how long a member may take to stop its ranks, besides the grace period.
	stopLimit = time.Minute
	// nonFiniteLimit and memoryLimit are how many attempts in a row may end by a loss that is not a number, or for want of memory.
	nonFiniteLimit = 3
	memoryLimit    = 2
)

// New machine for a plan.
func New(plan crew.Plan, now time.Time) *Machine {
	m := &Machine{
		plan: WithDefaults(plan), begun: now, peers: map[int]*peer{}, lost: map[int]time.Time{}, haunted: map[int]time.Time{},
		unheard: map[int]bool{}, restarts: map[crew.Class]int{}, ledger: protocol.Ledger{Attempt: -1}, inherited: -1,
	}
	for index := range m.plan.Size() {
		m.lost[index], m.unheard[index] = now, true
	}
	return m
}

// WithDefaults fills in what a plan leaves open.
func WithDefaults(p crew.Plan) crew.Plan {
	set := func(field *int, value int) {
		if *field <= 0 {
			*field = value
		}
	}
	set(&p.Processes, 1)
	set(&p.GraceSeconds, 30)
	set(&p.Watch.Phases.Setup, 900)
	set(&p.Watch.Phases.Checkpoint, 600)
	set(&p.Watch.Phases.Finish, 600)
	set(&p.Retry.WithoutProgress, 3)
	set(&p.Retry.Attempts, 50)
	set(&p.Retry.LostSeconds, 300)
	return p
}

// Handle an event, and return what has to be done, in order.
func (m *Machine) Handle(now time.Time, e Event) []Action {
	var actions []Action
	switch e := e.(type) {
	case Received:
		actions = m.receive(now, e.Conn, e.Message)
	case Closed:
		actions = m.close(now, e)
	case Found:
		actions = m.found(now, e)
	case Recorded:
		m.unwritable = ""
		if e.Err != nil {
			m.unwritable = e.Err.Error()
		}
	case Removed:
		actions = m.removed(now, e)
	case Tick:
		actions = m.tick(now)
	}
	return append(actions, m.proceed(now)...)
}

// proceed as far as possible without another event.
func (m *Machine) proceed(now time.Time) []Action {
	var actions []Action
	if m.phase == stopping && m.attempt.stopped() {
		actions = append(actions, m.judge(now)...)
	}
	if m.phase == running && m.attempt.done() {
		actions = append(actions, m.finish(crew.ExitDone, "")...)
	}
	switch {
	case m.folder.looking: // The answer comes first.
	case m.phase == gathering && m.ready(now) && !now.Before(m.findAt):
		m.phase, m.folder.due, m.folder.lookedAt = finding, false, now
		actions = append(actions, Find{Reported: slices.Clone(m.reported)})
	case m.mayLook(now):
		m.folder.looking, m.folder.due, m.folder.lookedAt = true, false, now
		actions = append(actions, Find{Reported: slices.Clone(m.reported)})
	}
	return actions
}

// ready reports whether an attempt can begin: there are enough members without ranks, and no other member can have any.
func (m *Machine) ready(now time.Time) bool {
	// The ranks of members that a coordinator before this one had are gone when their lease is.
	if len(m.unheard) > 0 && now.Before(m.begun.Add(protocol.Lost)) {
		return false
	}
	for _, until := range m.haunted {
		if now.Before(until) {
			return false
		}
	}
	if p, ok := m.peers[0]; !ok || p.leaving {
		return false // This is the member in the pod of the coordinator, which goes with it.
	}
	for _, p := range m.peers {
		if !p.idle {
			return false
		}
	}
	return len(m.free()) >= m.plan.Workers
}

// free members can have ranks, by index.
func (m *Machine) free() []int {
	var free []int
	for index, p := range m.peers {
		if p.idle && !p.leaving {
			free = append(free, index)
		}
	}
	slices.Sort(free)
	return free
}

// index of a connection, or -1.
func (m *Machine) index(c Conn) int {
	for index, p := range m.peers {
		if p.conn == c {
			return index
		}
	}
	return -1
}

// send a message to a member.
func (m *Machine) send(index int, message protocol.Message) Action {
	message.Run, message.Index = m.plan.Run, index
	return Send{Conn: m.peers[index].conn, Message: message}
}

// indexes of all members that are connected, in order, so that the same events give the same actions.
func (m *Machine) indexes() []int {
	all := make([]int, 0, len(m.peers))
	for index := range m.peers {
		all = append(all, index)
	}
	slices.Sort(all)
	return all
}

// record what has to outlast this coordinator. Before it has read what an earlier one recorded, it would lose that.
func (m *Machine) record() []Action {
	if m.plan.Checkpoints == nil || !m.restored {
		return nil
	}
	r := checkpoints.Record{
		Run: m.plan.Run, Ledger: m.ledger, Ended: m.phase == ended, Reported: slices.Clone(m.reported), Discarded: slices.Clone(m.discarded),
	}
	r.Trim()
	return []Action{Record{Record: r}}
}
