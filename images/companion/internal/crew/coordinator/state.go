// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"encoding/json"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
)

// State of the run for others.
func (m *Machine) State(now time.Time) crew.State {
	s := crew.State{
		Version: crew.PlanVersion, Run: m.plan.Run, Phase: m.publicPhase(), Attempt: max(0, m.number()), Checkpoint: m.newest,
		Restarts: max(0, m.number()), WithoutProgress: m.ledger.WithoutProgress, LastFault: m.lastFault, GoodputPercent: m.goodput(now),
	}
	if m.phase != ended {
		s.OverdueSince = m.folder.overdueSince(m.plan)
	}
	s.Unremoved = m.folder.unremoved
	for index := range m.plan.Size() {
		if since, missing := m.lost[index]; missing {
			s.Missing = append(s.Missing, crew.Missing{Index: index, Since: since})
		}
	}
	if a := m.attempt; a != nil {
		s.Progress = crew.Progress{Step: a.furthest(), Of: a.of, Loss: a.loss}
		if m.phase == running {
			s.Progress.StepsPerSecond = math.Round(a.speed(now)*1000) / 1000
		}
		if a.fault != nil && m.phase == stopping {
			s.LastFault = a.fault
		}
	}
	s.Message = m.words(now)
	return s
}

// number of the attempt that runs or ran last. Members may know of a higher one, after which the next one is numbered.
func (m *Machine) number() int {
	if m.attempt != nil {
		return m.attempt.number
	}
	return m.ledger.Attempt
}

func (m *Machine) publicPhase() crew.Phase {
	switch {
	case m.phase == ended && m.code == crew.ExitDone:
		return crew.PhaseSucceeded
	case m.phase == ended:
		return crew.PhaseFailed
	case m.phase == running:
		return crew.PhaseRunning
	case m.ledger.Attempt < 0:
		return crew.PhaseGathering
	}
	return crew.PhaseRecovering
}

// words for people: why the run failed with the last lines of the rank that failed first, or what delays it.
func (m *Machine) words(now time.Time) string {
	var parts []string
	if m.message != "" {
		parts = append(parts, m.message)
	} else if lost := m.lostMessage(now); lost != "" {
		parts = append(parts, lost)
	}
	if m.unwritable != "" {
		parts = append(parts, m.unwritable)
	}
	text := strings.Join(parts, "; ")
	if m.phase == ended && m.code != crew.ExitDone && m.lastFault != nil && m.lastFault.Message != m.message {
		text += "; last fault: " + m.lastFault.Message
		if m.lines != "" {
			text += "\n" + m.lines
		}
	}
	return text
}

// goodput is the share of the time since the first attempt that was spent on steps that were kept, in percent.
func (m *Machine) goodput(now time.Time) int {
	spent := now.Sub(m.ledger.Begun)
	if m.ledger.Begun.IsZero() || spent <= 0 {
		return 0
	}
	kept := m.ledger.Kept
	if a := m.attempt; a != nil {
		switch m.phase {
		case running, ended:
			if !a.firstAt.IsZero() {
				kept += a.lastAt.Sub(a.firstAt)
			}
		case gathering, finding, stopping:
			kept += a.kept(m.newest)
		}
	}
	return int(min(100, max(0, 100*kept/spent)))
}

// Restarts by the class of the fault that made them necessary, since this coordinator began.
func (m *Machine) Restarts() map[crew.Class]int { return maps.Clone(m.restarts) }

// Message is a state as JSON within crew.MaxMessage bytes: what is too long loses its end, the message for people last.
func Message(s crew.State) []byte {
	for {
		raw, err := json.Marshal(s)
		if err != nil || len(raw) <= crew.MaxMessage {
			return raw
		}
		switch {
		case len(s.Missing) > 8:
			s.Missing = s.Missing[:8]
		case s.LastFault != nil && len(s.LastFault.Message) > 500:
			short := *s.LastFault
			short.Message = shorten(short.Message, 500)
			s.LastFault = &short
		case len(s.Progress.Checkpoint) > 500 || s.Checkpoint != nil && len(s.Checkpoint.URI) > 1000:
			s.Progress.Checkpoint, s.Checkpoint = "", nil
		case len(s.Unremoved) > 500:
			s.Unremoved = shorten(s.Unremoved, 500)
		case len(s.Message) > 100:
			s.Message = shorten(s.Message, len(s.Message)*9/10)
		default:
			return raw[:crew.MaxMessage]
		}
	}
}

func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}

// LastFault that was judged. Nil: none.
func (m *Machine) LastFault() *crew.Fault { return m.lastFault }

// Stopping reports whether members are about to stop their ranks, or what they have left in the folder is not known yet.
func (m *Machine) Stopping() bool {
	return m.phase == stopping || m.phase == gathering && m.watches() && (m.folder.looking || m.folder.due)
}

// Tidying reports whether the run has ended, and old checkpoints are still to be removed.
func (m *Machine) Tidying() bool {
	return m.phase == ended && m.keep() > 0 && m.restored && (m.folder.looking || m.folder.due || len(m.folder.removing) > 0)
}
