// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
)

// receive a message.
func (m *Machine) receive(now time.Time, c Conn, msg protocol.Message) []Action {
	if msg.Kind == protocol.Hello {
		return m.greet(now, c, msg)
	}
	index := m.index(c)
	if index < 0 {
		return nil // Its connection is about to be closed.
	}
	if msg.Run != m.plan.Run || msg.Index != index {
		return m.drop(now, index, "it spoke for another pod")
	}
	m.peers[index].heard = now
	switch msg.Kind {
	case protocol.Beat:
		if m.attempt != nil {
			m.attempt.hear(index, now.Add(-time.Duration(msg.SilentMillis)*time.Millisecond))
		}
		return []Action{m.send(index, protocol.Message{Kind: protocol.Beat, Sequence: msg.Sequence})}
	case protocol.Leaving:
		return m.leave(now, index)
	case protocol.Stopped, protocol.Advanced, protocol.Failed, protocol.Ending, protocol.Done:
		// What is about an older attempt is late, and a spare has no ranks to speak of.
		w := m.attempt.worker(index)
		if w == nil || msg.Attempt != m.attempt.number || m.phase != running && m.phase != stopping {
			return nil
		}
		return m.report(now, index, w, msg)
	default: // The coordinator's own kinds.
		return m.drop(now, index, "it gave orders")
	}
}

// report of a member about its ranks in the present attempt.
func (m *Machine) report(now time.Time, index int, w *worker, msg protocol.Message) []Action {
	switch msg.Kind {
	case protocol.Stopped:
		w.stopped, m.peers[index].idle = true, true
		if m.phase == running {
			return m.fault(now, index, protocol.Fault{
				Class: crew.ClassInfrastructure, Rank: -1, Message: fmt.Sprintf("pod %d stopped its ranks by itself", index),
			}, false)
		}
	case protocol.Advanced:
		m.advance(now, index, *msg.Progress)
		return m.learn(msg.Progress.Checkpoints)
	case protocol.Failed:
		return m.fault(now, index, *msg.Fault, false)
	default: // Ending or Done.
		w.done = w.done || msg.Kind == protocol.Done
		if m.attempt.ending.IsZero() {
			m.attempt.ending = now
		}
	}
	return nil
}

// greet a member. It has no ranks.
func (m *Machine) greet(now time.Time, c Conn, msg protocol.Message) []Action {
	if index := m.index(c); index >= 0 {
		return m.drop(now, index, "it said hello twice")
	}
	if msg.Run != m.plan.Run || msg.Index < 0 || msg.Index >= m.plan.Size() {
		return []Action{Close{Conn: c}}
	}
	var actions []Action
	if m.peers[msg.Index] != nil {
		// Its pod was replaced, or the connection broke at its end only.
		actions = m.drop(now, msg.Index, "it connected again")
	}
	p := &peer{conn: c, heard: now, idle: true}
	m.peers[msg.Index] = p
	delete(m.lost, msg.Index)
	delete(m.haunted, msg.Index)
	delete(m.unheard, msg.Index)
	if m.phase == ended {
		return append(actions, m.verdict(msg.Index))
	}
	m.inherit(msg.Greeting.Ledger, msg.Greeting.Step)
	if msg.Greeting.Checkpoint != nil {
		actions = append(actions, m.learn([]crew.Checkpoint{*msg.Greeting.Checkpoint})...)
	}
	if m.phase == running || m.phase == stopping {
		actions = append(actions, m.send(msg.Index, m.account()))
	}
	return actions
}

// inherit the account of an earlier coordinator. Once this one has begun an attempt, only the number counts: the next one is higher.
func (m *Machine) inherit(l protocol.Ledger, step int64) {
	if l.Attempt < 0 || l.Attempt < m.ledger.Attempt {
		return
	}
	if m.attempt != nil {
		m.ledger.Attempt = l.Attempt
		return
	}
	if l.Attempt > m.ledger.Attempt || l.Judged && !m.ledger.Judged {
		m.ledger, m.inherited = l, step
	}
	m.inherited = max(m.inherited, step)
}

// close what is left of a member whose connection ended.
func (m *Machine) close(now time.Time, e Closed) []Action {
	if index := m.index(e.Conn); index >= 0 {
		return m.miss(now, index, "its connection ended", e.Broken)
	}
	return nil
}

// drop a member.
func (m *Machine) drop(now time.Time, index int, why string) []Action {
	actions := []Action{Close{Conn: m.peers[index].conn}} // While it is there.
	return append(actions, m.miss(now, index, why, true)...)
}

// miss a member. Its ranks are gone when it ended the connection itself: its companion has ended, or is about to kill them. Else it may
// have them until its lease is over, which it renewed not later than it was heard.
func (m *Machine) miss(now time.Time, index int, why string, haunted bool) []Action {
	leaving, heard := m.peers[index].leaving, m.peers[index].heard
	if haunted && !m.peers[index].idle {
		m.haunted[index] = heard.Add(protocol.Lost)
	}
	delete(m.peers, index)
	m.lost[index] = now
	w := m.attempt.worker(index)
	if w == nil || m.phase != running && m.phase != stopping {
		return nil
	}
	w.stopped = true
	if w.done {
		return nil // Its ranks had ended well.
	}
	lost := protocol.Fault{Class: crew.ClassInfrastructure, Rank: -1, Message: fmt.Sprintf("pod %d is lost: %s", index, why)}
	// The others waited for its ranks, and a step may be allowed less time than it takes to notice a lost member.
	if f := m.attempt.fault; f != nil && f.Class == crew.ClassStalled && heard.Before(f.At) {
		m.attempt.blame(f.At, index, lost, leaving)
	}
	return m.fault(now, index, lost, leaving)
}

// leave: the pod of a member has to go. All ranks have time for a checkpoint.
func (m *Machine) leave(now time.Time, index int) []Action {
	m.peers[index].leaving = true
	w := m.attempt.worker(index)
	if w == nil || m.phase != running {
		return nil
	}
	return m.fault(now, index, protocol.Fault{
		Class: crew.ClassInfrastructure, Rank: -1, Message: fmt.Sprintf("pod %d has to go", index),
	}, true)
}

// tick: find what did not happen in time.
func (m *Machine) tick(now time.Time) []Action {
	var actions []Action
	for _, index := range m.indexes() {
		if now.Sub(m.peers[index].heard) >= protocol.Lost {
			actions = append(actions, m.drop(now, index, "it was silent for "+protocol.Lost.String())...)
		}
	}
	switch m.phase {
	case running:
		if fault := m.attempt.overdue(now, m.plan, m.ledger.Stalls, m.advanced || m.ledger.Recognised); fault != nil {
			index := m.attempt.indexOf(fault.Rank, m.plan.Processes)
			actions = append(actions, m.fault(now, index, *fault, false)...)
		}
	case stopping:
		if now.Before(m.attempt.stopBy) {
			break
		}
		for _, index := range m.indexes() {
			if w := m.attempt.worker(index); w != nil && !w.stopped {
				actions = append(actions, m.send(index, protocol.Message{
					Kind: protocol.Finish, Attempt: m.attempt.number,
					Verdict: &protocol.Verdict{Code: crew.ExitUnfit, Message: "the ranks did not stop"},
				}))
				actions = append(actions, m.drop(now, index, "its ranks did not stop")...)
			}
		}
	case gathering, finding, ended:
	}
	return actions
}
