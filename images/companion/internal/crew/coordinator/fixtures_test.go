// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/checkpoints"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
)

var t0 = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// A script drives a machine by hand. The connection of index 2 is 12, and 112 after it connected again.
type script struct {
	t     *testing.T
	m     *Machine
	now   time.Time
	conns map[int]Conn
	// said has what the machine did since it was asked last, in short words.
	said []string
	// held keeps Find unanswered.
	held  bool
	found Found
	rec   *checkpoints.Record
	// asked has the checkpoints that were looked for last.
	asked []crew.Checkpoint
	// dropped has all names that were removed. Nothing is removed while stuck is set, and broken is why it fails.
	dropped []string
	stuck   bool
	broken  error
}

func newScript(t *testing.T, plan crew.Plan) *script {
	t.Helper()
	plan.Run, plan.HostPrefix = 1, "fraud-r1"
	return &script{t: t, m: New(plan, t0), now: t0, conns: map[int]Conn{}}
}

// do an event and write down what follows.
func (s *script) do(e Event) {
	actions := s.m.Handle(s.now, e)
	find := false
	var removed *Remove
	for _, action := range actions {
		switch a := action.(type) {
		case Send:
			s.said = append(s.said, words(a.Message))
		case Close:
			s.said = append(s.said, fmt.Sprintf("close %d", a.Conn))
		case Find:
			find, s.asked = true, a.Reported
		case Record:
			s.rec = &a.Record
		case Remove:
			removed = &a
		case End:
			s.said = append(s.said, fmt.Sprintf("end %d", a.Code))
		}
	}
	if find && !s.held {
		s.do(s.found)
	}
	if removed != nil && !s.stuck {
		s.remove(*removed)
	}
}

// remove what the machine wants to be removed.
func (s *script) remove(r Remove) {
	if s.broken != nil {
		s.do(Removed{Err: s.broken})
		return
	}
	s.dropped = append(s.dropped, r.Names...)
	leaving := checkpoints.Of(s.m.plan).Named(s.found.Complete, r.Names)
	s.found.Complete = slices.DeleteFunc(s.found.Complete, func(c crew.Checkpoint) bool { return slices.Contains(leaving, c) })
	s.do(Removed{Names: r.Names})
}

func words(m protocol.Message) string {
	switch m.Kind {
	case protocol.Start:
		return fmt.Sprintf("%d: start %d as %d", m.Index, m.Attempt, m.Orders.GroupRank)
	case protocol.Stop:
		return fmt.Sprintf("%d: stop %d %s", m.Index, m.Attempt, m.Halt.How)
	case protocol.Finish:
		return fmt.Sprintf("%d: finish %d", m.Index, m.Verdict.Code)
	default:
		return fmt.Sprintf("%d: %s", m.Index, m.Kind)
	}
}

// take what was said, without accounts and echoes.
func (s *script) take() []string {
	var all []string
	for _, w := range s.said {
		if len(w) > 3 && (w[len(w)-4:] == "beat" || len(w) > 7 && w[len(w)-7:] == "account") {
			continue
		}
		all = append(all, w)
	}
	s.said = nil
	return all
}

func (s *script) say(index int, m protocol.Message) {
	m.Run, m.Index = 1, index
	s.do(Received{Conn: s.conns[index], Message: m})
}

// hello of members that know nothing.
func (s *script) hello(indexes ...int) {
	for _, index := range indexes {
		s.helloKnowing(index, protocol.Greeting{Ledger: protocol.Ledger{Attempt: -1}})
	}
}

func (s *script) helloKnowing(index int, g protocol.Greeting) {
	if s.conns[index] == 0 {
		s.conns[index] = Conn(index - 90)
	}
	s.conns[index] += 100
	s.say(index, protocol.Message{Kind: protocol.Hello, Attempt: g.Ledger.Attempt, Greeting: &g})
}

func (s *script) gone(index int) { s.do(Closed{Conn: s.conns[index]}) }

func (s *script) stopped(attempt int, indexes ...int) {
	for _, index := range indexes {
		s.say(index, protocol.Message{Kind: protocol.Stopped, Attempt: attempt})
	}
}

func (s *script) done(attempt int, indexes ...int) {
	for _, index := range indexes {
		s.say(index, protocol.Message{Kind: protocol.Ending, Attempt: attempt})
		s.say(index, protocol.Message{Kind: protocol.Done, Attempt: attempt})
	}
}

func (s *script) fault(index, attempt int, class crew.Class) {
	s.say(index, protocol.Message{Kind: protocol.Failed, Attempt: attempt, Fault: &protocol.Fault{Class: class, Rank: index, Message: "rank failed", Lines: "the last line"}})
}

// step of the rank of a member with one rank.
func (s *script) step(index, attempt int, step int64) {
	rank := s.m.attempt.workers[index].groupRank
	s.say(index, protocol.Message{Kind: protocol.Advanced, Attempt: attempt, Progress: &protocol.Progress{Ranks: []protocol.RankProgress{{Rank: rank, Step: step}}}})
}

func (s *script) saved(index, attempt int, step int64) {
	s.say(index, protocol.Message{Kind: protocol.Advanced, Attempt: attempt, Progress: &protocol.Progress{
		Checkpoints: []crew.Checkpoint{{Step: step, URI: fmt.Sprintf("/c/%d", step), At: s.now}},
	}})
}

// wait while these members beat.
func (s *script) wait(d time.Duration, indexes ...int) {
	for until := s.now.Add(d); s.now.Before(until); {
		s.now = s.now.Add(time.Second)
		for _, index := range indexes {
			s.say(index, protocol.Message{Kind: protocol.Beat, Sequence: 1, SilentMillis: 1 << 30})
		}
		s.do(Tick{})
	}
}
