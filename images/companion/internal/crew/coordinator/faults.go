// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/checkpoints"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
)

// advance by what a member reported.
func (m *Machine) advance(now time.Time, index int, p protocol.Progress) {
	a := m.attempt
	before := a.lastAt
	first := a.workers[index].groupRank * m.plan.Processes
	for _, r := range p.Ranks {
		if r.Rank < first || r.Rank >= first+m.plan.Processes {
			continue // It speaks for ranks of others.
		}
		a.advance(now, r)
		m.advanced = true
	}
	m.folder.stepped(before, a.lastAt)
	if p.Of > 0 {
		a.of = p.Of
	}
	if p.Loss != "" {
		a.loss = p.Loss
	}
	for _, c := range p.Checkpoints {
		a.save(now, c.Step)
		m.folder.due = true
	}
}

// learn of checkpoints.
func (m *Machine) learn(reported []crew.Checkpoint) []Action {
	if len(reported) == 0 {
		return nil
	}
	m.reported = oldestFirst(checkpoints.Merge(reported, m.reported))
	m.renew()
	return m.record()
}

// renew what is known as the newest checkpoint.
func (m *Machine) renew() {
	m.newest = nil
	if usable := checkpoints.Without(checkpoints.Merge(m.reported), m.discarded); len(usable) > 0 {
		m.newest = &usable[0]
	}
}

func oldestFirst(newestFirst []crew.Checkpoint) []crew.Checkpoint {
	all := make([]crew.Checkpoint, 0, len(newestFirst))
	for i := len(newestFirst) - 1; i >= 0; i-- {
		all = append(all, newestFirst[i])
	}
	return all[max(0, len(all)-100):]
}

// explainTime is how long after the first fault another one may be what caused it.
const explainTime = time.Second

// fault ends the attempt for all ranks. What reaches the coordinator first need not have been first: a rank that lost its connection with
// another one is explained by what became of that one.
func (m *Machine) fault(now time.Time, index int, f protocol.Fault, voluntary bool) []Action {
	a := m.attempt
	if a.fault == nil || a.secondary && !f.Secondary && now.Sub(a.fault.At) < explainTime {
		a.blame(now, index, f, voluntary)
	}
	how := protocol.Kill
	wait := stopLimit
	switch {
	case voluntary:
		how = protocol.Terminate
		wait += time.Duration(m.plan.GraceSeconds) * time.Second
	case f.Class == crew.ClassStalled:
		how = protocol.Abort
	}
	// A fault while ranks write their last checkpoint ends their grace period.
	if m.phase == stopping && (a.how != protocol.Terminate || how != protocol.Kill) {
		return nil
	}
	m.phase, a.how, a.stopBy = stopping, how, now.Add(wait)
	var actions []Action
	for _, member := range m.indexes() {
		if w := a.worker(member); w != nil && !w.stopped {
			actions = append(actions, m.send(member, protocol.Message{Kind: protocol.Stop, Attempt: a.number, Halt: &protocol.Halt{How: how}}))
		}
	}
	return actions
}

// blame a fault for the end of the attempt.
func (a *attempt) blame(at time.Time, index int, f protocol.Fault, voluntary bool) {
	a.fault = &crew.Fault{Attempt: a.number, Class: f.Class, Index: index, Rank: f.Rank, At: at, Message: f.Message}
	a.lines, a.secondary, a.voluntary = f.Lines, f.Secondary, voluntary
}

// judge an attempt that ended by a fault, when no rank is left: another one, or the end.
func (m *Machine) judge(now time.Time) []Action {
	a := m.attempt
	m.folder.due = true // Ranks may have written a checkpoint before they stopped.
	m.lastFault, m.lines = a.fault, a.lines
	// The number is the highest that anybody knows: see inherit.
	number := m.ledger.Attempt
	m.ledger = account(a.ledger, a.fault.Class, a.furthest(), a.savedBeyond(), a.voluntary)
	m.ledger.Attempt = max(number, a.number)
	m.ledger.Recognised = m.ledger.Recognised || m.advanced
	actions := m.inform()
	if why := m.hopeless(a.fault.Class); why != "" {
		return append(actions, m.finish(crew.ExitFailed, why)...)
	}
	m.restarts[a.fault.Class]++
	if m.ledger.NonFinite > 1 && a.fault.Class == crew.ClassNonFinite && a.resume != nil {
		// The checkpoint that the attempt began with may have it already, and what was written since.
		m.discarded = append(m.discarded, checkpoints.Discard{From: a.resume.Step, Until: now})
		m.renew()
	}
	m.phase = gathering
	return append(actions, m.record()...)
}

// inform all members of the ledger.
func (m *Machine) inform() []Action {
	actions := make([]Action, 0, len(m.peers))
	for _, index := range m.indexes() {
		actions = append(actions, m.send(index, m.account()))
	}
	return actions
}

func (m *Machine) account() protocol.Message {
	ledger := m.ledger
	return protocol.Message{Kind: protocol.Account, Attempt: ledger.Attempt, Ledger: &ledger}
}

// account for an attempt that ended.
func account(l protocol.Ledger, class crew.Class, furthest int64, saved, voluntary bool) protocol.Ledger {
	if furthest > l.Best || saved {
		l.WithoutProgress, l.NonFinite, l.OutOfMemory = 0, 0, 0
	} else if !voluntary {
		l.WithoutProgress++
	}
	l.Best, l.Judged = max(l.Best, furthest), true
	if voluntary {
		l.Excused++
	}
	switch class {
	case crew.ClassNonFinite:
		l.NonFinite++
	case crew.ClassOutOfMemory:
		l.OutOfMemory++
	case crew.ClassStalled:
		l.Stalls++
	case crew.ClassInfrastructure, crew.ClassUser:
	}
	return l
}

// hopeless says why no other attempt begins. Empty: one may.
func (m *Machine) hopeless(class crew.Class) string {
	l, retry := m.ledger, m.plan.Retry
	switch {
	case m.plan.Checkpoints == nil && (class == crew.ClassStalled || class == crew.ClassNonFinite):
		return "without checkpoints the training would begin with its first step, which is rarely wanted: set checkpoint, and let ranks resume from $" + crew.EnvResumeFrom
	case l.NonFinite >= nonFiniteLimit:
		return fmt.Sprintf("the loss was not a number in %d attempts in a row, each from an earlier checkpoint: correct the training, or its data", l.NonFinite)
	case l.OutOfMemory >= memoryLimit:
		return fmt.Sprintf("memory was not enough in %d attempts without progress: raise resources.memory", l.OutOfMemory)
	case l.WithoutProgress >= retry.WithoutProgress:
		return fmt.Sprintf("%d attempts in a row ended without progress (retry.withoutProgress)", l.WithoutProgress)
	case l.Attempt+1-l.Excused >= retry.Attempts:
		return fmt.Sprintf("all %d attempts are used up (retry.attempts)", retry.Attempts)
	}
	return ""
}

// finish the run.
func (m *Machine) finish(code int, why string) []Action {
	m.phase, m.code, m.message = ended, code, why
	m.folder.due = true
	actions := make([]Action, 0, len(m.peers)+2)
	for _, index := range m.indexes() {
		actions = append(actions, m.verdict(index))
	}
	return append(append(actions, m.record()...), End{Code: code})
}

func (m *Machine) verdict(index int) Action {
	return m.send(index, protocol.Message{Kind: protocol.Finish, Attempt: max(0, m.ledger.Attempt), Verdict: &protocol.Verdict{Code: m.code, Message: m.message}})
}
