// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"fmt"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/checkpoints"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
)

// found: what checkpoints there are is known, or cannot be found out.
func (m *Machine) found(now time.Time, f Found) []Action {
	if m.folder.looking {
		return m.looked(now, f)
	}
	if m.phase != finding {
		return nil
	}
	m.phase = gathering
	if f.Err != nil {
		return m.blind(now, f.Err)
	}
	m.unreadable, m.findAt = time.Time{}, time.Time{}
	if !m.restored {
		m.restore(f.Record)
	}
	m.reported = slices.DeleteFunc(m.reported, func(c crew.Checkpoint) bool { return slices.Contains(f.Gone, c.URI) })
	m.own(f)
	usable := m.usable(f)
	m.freshen(usable)
	var resume *crew.Checkpoint
	if len(usable) > 0 {
		resume = &usable[0]
	}
	m.newest = resume
	if why := m.orphan(now); why != "" {
		return m.finish(crew.ExitFailed, why)
	}
	if !m.ready(now) {
		return nil // A member has gone since.
	}
	return m.start(now, resume)
}

// blind: the folder of checkpoints cannot be read. It is read again, and in the end that is why the run fails.
func (m *Machine) blind(now time.Time, err error) []Action {
	if m.unreadable.IsZero() {
		m.unreadable = now
	}
	m.lastFault = &crew.Fault{
		Attempt: max(0, m.ledger.Attempt), Class: crew.ClassInfrastructure, Index: 0, Rank: -1, At: now, Message: err.Error(),
	}
	m.lines = ""
	if now.Sub(m.unreadable) >= time.Duration(m.plan.Retry.LostSeconds)*time.Second {
		return m.finish(crew.ExitFailed, err.Error())
	}
	m.findAt = now.Add(findAgain)
	return nil
}

// restore what an earlier coordinator recorded.
func (m *Machine) restore(r checkpoints.Record) {
	m.restored = true
	if r.Run == m.plan.Run && !r.Ended {
		m.inherit(r.Ledger, 0)
	}
	m.reported = oldestFirst(checkpoints.Merge(m.reported, r.Reported))
	m.discarded = append(m.discarded, r.Discarded...)
}

// orphan judges the attempt that lost its coordinator, so that its budgets stay used. It returns why the run ends, if it does.
func (m *Machine) orphan(now time.Time) string {
	if m.inherited < 0 || m.attempt != nil {
		return ""
	}
	if m.ledger.Judged {
		m.inherited = -1
		return m.hopeless(crew.ClassInfrastructure)
	}
	m.lastFault = &crew.Fault{
		Attempt: m.ledger.Attempt, Class: crew.ClassInfrastructure, Index: 0, Rank: -1, At: now, Message: "pod 0, which coordinates, was replaced",
	}
	// Members may know its steps no more, and the checkpoint is evidence.
	m.ledger.Recognised = m.ledger.Recognised || m.inherited > 0
	furthest := m.inherited
	if m.newest != nil {
		furthest = max(furthest, m.newest.Step)
	}
	m.ledger = account(m.ledger, crew.ClassInfrastructure, furthest, false, false)
	m.inherited = -1
	m.restarts[crew.ClassInfrastructure]++
	return m.hopeless(crew.ClassInfrastructure)
}

// start the next attempt.
func (m *Machine) start(now time.Time, resume *crew.Checkpoint) []Action {
	if a := m.attempt; a != nil {
		m.ledger.Kept += a.kept(resume)
	}
	m.ledger.Attempt++
	m.ledger.Judged = false
	if resume != nil {
		m.ledger.Best = max(m.ledger.Best, resume.Step) // An earlier run may have reached it.
	}
	if m.ledger.Begun.IsZero() {
		m.ledger.Begun = now
	}
	var before []int
	if m.attempt != nil {
		before = m.attempt.slots
	}
	slots := assign(before, m.free(), m.plan.Workers)
	m.attempt = newAttempt(m.ledger.Attempt, now, slots, resume, m.ledger)
	m.phase = running
	orders := protocol.Orders{Master: slots[0], MasterPort: crew.MasterPort + m.ledger.Attempt%crew.MasterPorts}
	switch {
	case resume != nil:
		orders.ResumeFrom, orders.Step = resume.URI, resume.Step
	case len(m.discarded) == 0: // Else it may be one of these.
		orders.ResumeFrom = m.plan.ResumeFrom
	}
	actions := make([]Action, 0, len(m.peers)+1)
	for _, index := range m.indexes() {
		message := m.account()
		if groupRank := slices.Index(slots, index); groupRank >= 0 {
			own := orders
			own.GroupRank = groupRank
			message.Kind, message.Orders = protocol.Start, &own
			m.peers[index].idle = false
		}
		actions = append(actions, m.send(index, message))
	}
	return append(actions, m.record()...)
}

// assign group ranks to members that are free. Those that had one keep it, and others take what is left: the member of the same index
// first, so that everything is where it is expected as long as nothing is lost.
func assign(before, free []int, workers int) []int {
	slots := make([]int, workers)
	used := map[int]bool{}
	for groupRank := range slots {
		slots[groupRank] = -1
		if groupRank < len(before) && slices.Contains(free, before[groupRank]) {
			slots[groupRank] = before[groupRank]
			used[before[groupRank]] = true
		}
	}
	for groupRank := range slots {
		if slots[groupRank] < 0 && slices.Contains(free, groupRank) && !used[groupRank] {
			slots[groupRank] = groupRank
			used[groupRank] = true
		}
	}
	for groupRank := range slots {
		for _, index := range free {
			if slots[groupRank] < 0 && !used[index] {
				slots[groupRank] = index
				used[index] = true
			}
		}
	}
	return slots
}

// kept is the time that an attempt spent on steps that the next one does not repeat.
func (a *attempt) kept(resume *crew.Checkpoint) time.Duration {
	if a.firstAt.IsZero() {
		return 0
	}
	spent := a.lastAt.Sub(a.firstAt)
	from := a.from
	done := a.furthest() - from
	if done <= 0 {
		return 0
	}
	kept := int64(0)
	if resume != nil {
		kept = min(max(0, resume.Step-from), done)
	}
	return time.Duration(float64(spent) * float64(kept) / float64(done))
}

// lostMessage names a member that has been missing for too long while no attempt can begin.
func (m *Machine) lostMessage(now time.Time) string {
	if m.phase != gathering || len(m.free()) >= m.plan.Workers {
		return ""
	}
	limit := time.Duration(m.plan.Retry.LostSeconds) * time.Second
	for index := range m.plan.Size() {
		if since, missing := m.lost[index]; missing && now.Sub(since) >= limit {
			return fmt.Sprintf("pod %d is missing since %s, and no spare is left", index, since.UTC().Format(time.RFC3339))
		}
	}
	return ""
}
