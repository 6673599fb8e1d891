// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
)

// A simulated member: its connection, and the attempt whose ranks it has, -1 for none.
type simulated struct {
	conn  Conn
	ranks int
	// ledger as it was heard last.
	ledger protocol.Ledger
	queue  []protocol.Message
	// spoke is when it said something last. Without a connection it has ranks until its lease is over.
	spoke time.Time
	// deaf members do not stop.
	deaf bool
}

// A world of members around a machine. What happens next is chosen by bytes.
type world struct {
	t       *testing.T
	m       *Machine
	plan    crew.Plan
	now     time.Time
	members []simulated
	last    Conn
	started int
	highest int
	ended   bool
	find    bool
	// removing has the names that are about to be removed, removed all that were.
	removing []string
	removed  map[string]bool
}

func (w *world) do(e Event) {
	for _, action := range w.m.Handle(w.now, e) {
		switch a := action.(type) {
		case Send:
			w.sent(a)
		case Close:
			for i := range w.members {
				if w.members[i].conn == a.Conn {
					w.lose(i)
				}
			}
		case Find:
			w.find = true
		case End:
			if w.ended {
				w.t.Fatal("the run ended twice")
			}
			w.ended = true
		case Record:
		case Remove:
			w.remove(a)
		}
	}
}

// remove checks what is about to be removed: never what ranks began with, and never the newest.
func (w *world) remove(a Remove) {
	if len(w.removing) > 0 {
		w.t.Fatalf("%v would be removed while %v are", a.Names, w.removing)
	}
	if a := w.m.attempt; w.m.phase == running && a.resume != nil && w.removed[a.resume.URI] {
		w.t.Fatalf("ranks began with %s, which was removed", a.resume.URI)
	}
	w.removing = a.Names
	for _, name := range a.Names {
		uri := "/c/" + name
		if w.m.newest == nil || w.m.newest.URI == uri || w.m.phase == running && w.m.attempt.resume != nil && w.m.attempt.resume.URI == uri {
			w.t.Fatalf("%s would be removed, the newest is %v", uri, w.m.newest)
		}
	}
}

// sent checks a message at the moment at which the machine decided, and delivers it later.
func (w *world) sent(a Send) {
	for i := range w.members {
		if w.members[i].conn != a.Conn {
			continue
		}
		m := &w.members[i]
		if a.Message.Kind == protocol.Start {
			w.begin(i, a.Message)
		}
		m.queue = append(m.queue, a.Message)
	}
}

func (w *world) begin(index int, message protocol.Message) {
	if w.ended {
		w.t.Fatal("an attempt began after the end")
	}
	for i, m := range w.members {
		if m.ranks >= 0 && m.ranks != message.Attempt {
			w.t.Fatalf("attempt %d began while member %d had ranks of attempt %d", message.Attempt, i, m.ranks)
		}
	}
	switch {
	case message.Attempt > w.highest:
		w.started++
		w.highest = message.Attempt
	case message.Attempt < w.highest:
		w.t.Fatalf("attempt %d began after %d", message.Attempt, w.highest)
	}
	if n := w.started - w.m.ledger.Excused; n > w.plan.Retry.Attempts {
		w.t.Fatalf("%d attempts began beside those that ended because a pod had to go, and %d are allowed", n, w.plan.Retry.Attempts)
	}
	seen := map[int]bool{}
	for _, slot := range w.m.attempt.slots {
		if slot < 0 || slot >= w.plan.Size() || seen[slot] {
			w.t.Fatalf("group ranks are given as %v", w.m.attempt.slots)
		}
		seen[slot] = true
	}
	if w.m.attempt.slots[message.Orders.GroupRank] != index {
		w.t.Fatalf("member %d has group rank %d of %v", index, message.Orders.GroupRank, w.m.attempt.slots)
	}
	w.members[index].ranks = message.Attempt
}

// lose the connection of a member, which ends its ranks.
func (w *world) lose(index int) {
	m := &w.members[index]
	m.conn, m.ranks, m.queue, m.deaf = 0, -1, nil, false
}

func (w *world) say(index int, m protocol.Message) {
	w.members[index].spoke = w.now
	m.Run, m.Index = 1, index
	w.do(Received{Conn: w.members[index].conn, Message: m})
}

// deliver the next message to a member, which obeys.
func (w *world) deliver(index int) {
	m := &w.members[index]
	if len(m.queue) == 0 {
		return
	}
	message := m.queue[0]
	m.queue = m.queue[1:]
	switch message.Kind {
	case protocol.Start, protocol.Account:
		m.ledger = *message.Ledger
	case protocol.Stop:
		if m.ranks == message.Attempt && !m.deaf {
			m.ranks = -1
			w.say(index, protocol.Message{Kind: protocol.Stopped, Attempt: message.Attempt})
		}
	case protocol.Finish:
		w.lose(index)
	default:
	}
}

// step of the world: what happens, and to whom.
func (w *world) step(what, who byte) {
	index := int(who) % len(w.members)
	m := &w.members[index]
	attempt := max(0, m.ledger.Attempt-int(who)/64%2) // Sometimes it is late.
	switch what % 15 {
	case 0:
		if m.conn == 0 {
			w.last++
			m.conn, m.ranks = w.last, -1
			w.say(index, protocol.Message{Kind: protocol.Hello, Attempt: m.ledger.Attempt, Greeting: &protocol.Greeting{Ledger: m.ledger}})
		}
	case 1:
		if conn := m.conn; conn != 0 {
			left := m.ranks
			w.lose(index)
			if who >= 128 {
				m.ranks = left // Nobody told it.
			}
			w.do(Closed{Conn: conn, Broken: who >= 128})
		}
	case 2, 3, 4, 5:
		w.deliver(index)
	case 6:
		classes := []crew.Class{crew.ClassUser, crew.ClassInfrastructure, crew.ClassStalled, crew.ClassNonFinite, crew.ClassOutOfMemory}
		w.say(index, protocol.Message{Kind: protocol.Failed, Attempt: attempt, Fault: &protocol.Fault{Class: classes[int(who)/8%len(classes)], Rank: int(who) % 5}})
	case 7:
		delete(w.removed, fmt.Sprintf("/c/%d", who))
		w.say(index, protocol.Message{Kind: protocol.Advanced, Attempt: attempt, Progress: &protocol.Progress{
			Ranks:       []protocol.RankProgress{{Rank: int(who) % 5, Step: int64(who)}},
			Checkpoints: []crew.Checkpoint{{Step: int64(who), URI: fmt.Sprintf("/c/%d", who), At: w.now}},
		}})
	case 8:
		if m.ranks >= 0 {
			w.say(index, protocol.Message{Kind: protocol.Done, Attempt: m.ranks})
		}
	case 9:
		w.say(index, protocol.Message{Kind: protocol.Leaving, Attempt: attempt})
	case 10:
		m.deaf = !m.deaf
	case 11:
		w.now = w.now.Add(time.Duration(who) * 100 * time.Millisecond)
		for i := range w.members {
			if o := &w.members[i]; o.conn == 0 && w.now.Sub(o.spoke) >= protocol.Lease {
				o.ranks = -1
			}
		}
		w.do(Tick{})
	case 12:
		// Members live: only what they do not do is found.
		for i := range w.members {
			w.say(i, protocol.Message{Kind: protocol.Beat, Sequence: 1})
		}
	case 13:
		if w.find {
			w.find = false
			// What is written again under a name that was removed is there.
			var found Found
			for uri := range w.removed {
				found.Gone = append(found.Gone, uri)
			}
			w.do(found)
		}
	case 14:
		if names := w.removing; len(names) > 0 {
			w.removing = nil
			if who%4 == 0 {
				w.do(Removed{Err: errors.New("permission denied")})
				return
			}
			for _, name := range names {
				w.removed["/c/"+name] = true
			}
			w.do(Removed{Names: names})
		}
	}
}

func FuzzMachine(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 2, 0, 3, 13, 0, 2, 0, 2, 1, 2, 2, 6, 1, 2, 0, 2, 1, 2, 2, 13, 0, 1, 1, 2, 0, 2, 2, 0, 1, 13, 0, 8, 0, 8, 2, 8, 3})
	f.Add([]byte{0, 0, 0, 1, 0, 2, 11, 101, 13, 0, 9, 0, 2, 0, 2, 1, 2, 2, 1, 0, 0, 0, 13, 0, 10, 1, 6, 2, 2, 2, 12, 0, 11, 255, 12, 0, 11, 255, 12, 0, 11, 255})
	f.Add([]byte{0, 0, 0, 1, 0, 2, 11, 101, 13, 0, 7, 10, 11, 30, 13, 0, 7, 20, 11, 30, 13, 0, 7, 30, 11, 30, 13, 0, 14, 1, 8, 0, 8, 1, 8, 2, 13, 0, 14, 1})
	f.Fuzz(func(t *testing.T, choices []byte) {
		plan := crew.Plan{Run: 1, Workers: 3, Spares: 1, Checkpoints: &crew.Checkpoints{Dir: "/c", Keep: 2, EverySeconds: 5}, Retry: crew.Retry{Attempts: 6}}
		w := &world{t: t, plan: plan, now: t0, m: New(plan, t0), members: make([]simulated, 4), highest: -1, removed: map[string]bool{}}
		for i := range w.members {
			w.members[i] = simulated{ranks: -1, ledger: protocol.Ledger{Attempt: -1}}
		}
		for i := 0; i+1 < len(choices) && i < 2000; i += 2 {
			w.step(choices[i], choices[i+1])
			state := w.m.State(w.now)
			if len(Message(state)) > crew.MaxMessage || state.GoodputPercent < 0 || state.GoodputPercent > 100 {
				t.Fatalf("state %+v", state)
			}
			if l := w.m.ledger; l.WithoutProgress > 3 || l.NonFinite > nonFiniteLimit {
				t.Fatalf("ledger %+v is beyond the budgets", l)
			}
		}
	})
}
