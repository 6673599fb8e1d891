// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
)

// A model of the generations of one Database. Every request to the API server is one turn, turns of all parties are interleaved at random,
// and each of them may end between any two, forget all that is not durable, and begin again. Writers are told by their generation.
type model struct {
	t   *testing.T
	r   *rand.Rand
	now time.Time
	log []string

	// object and its version, as the API server has it, and all that it was.
	object   Object
	versions []Object

	members []*former
	holder  int // of the leader's lock of the former generation

	// rows that were acknowledged, by the generation that has them.
	rows   int
	later  *later
	ghosts []*later // of steps that are over, whose pods did not end

	planner planner

	// quiet reports that nothing happens to any party any more, and firm is the first try that began after that.
	quiet bool
	firm  int
}

// limit of a fence in the model.
const limit = 3 * time.Minute

// A former member of the generation that is upgraded.
type former struct {
	number int
	dead   bool
	writes bool
	// seen is what it read last, and turn what it does next.
	seen    Object
	version int
	turn    int
	// report of a stop, which its pod has.
	report string
	paused bool
}

// A later generation, of which one member upgrades the data.
type later struct {
	id, to string
	dead   bool
	// stage and rows are on its volume.
	stage   string
	rows    int
	offered bool
	failed  bool
	writes  bool
	// what it read last.
	seen    Object
	version int
	reading bool
}

// A planner is the function with Crossplane: it sees an object that may be old, and overwrites the configuration in it.
type planner struct {
	dead    bool
	step    string // "", Filling, Fencing
	id, to  string
	since   time.Time
	gives   bool // the spec no longer asks for it
	next    int
	active  int
	pending *Object // to be written
	oldest  int     // it never sees an object that is older
}

func (m *model) sayf(format string, args ...any) { m.log = append(m.log, fmt.Sprintf(format, args...)) }

func (m *model) failf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\nobject %+v\nplanner %+v\nlater %+v\n%s", fmt.Sprintf(format, args...), m.object, m.planner, m.later, strings.Join(m.log[max(0, len(m.log)-80):], "\n"))
}

func (m *model) put(o Object) {
	m.object = o
	m.versions = append(m.versions, o)
}

// swap the object as it was read, as the API server does.
func (m *model) swap(version int, o Object) bool {
	if version != len(m.versions) {
		return false
	}
	m.put(o)
	return true
}

// writers that take writes now.
func (m *model) writers() []string {
	var out []string
	for _, f := range m.members {
		if f.writes && !f.dead {
			out = append(out, fmt.Sprintf("member %d", f.number))
		}
	}
	for _, l := range append([]*later{m.later}, m.ghosts...) {
		if l != nil && l.writes && !l.dead {
			out = append(out, l.to)
		}
	}
	return out
}

// check what must always hold, and write a row.
func (m *model) check() {
	m.t.Helper()
	w := m.writers()
	if len(w) > 1 {
		m.failf("two writers: %v", w)
	}
	if len(w) == 1 {
		if l := m.later; l != nil && l.writes {
			if l.rows < m.rows {
				m.failf("%s lacks rows: it has %d of %d", l.to, l.rows, m.rows)
			}
			l.rows++
		}
		m.rows++
	}
}

// turnOf a former member.
func (m *model) turnOf(f *former) {
	if f.dead {
		return
	}
	switch f.turn {
	case 0: // it reads
		f.seen, f.version, f.turn = m.object, len(m.versions), 1
		f.paused = f.seen.Paused
	case 1: // it settles
		f.turn = 2
		if next, changed := f.seen.Settle(m.now); changed {
			if !m.swap(f.version, next) {
				f.turn = 0 // it reads again
				return
			}
			m.sayf("member %d settles: %s %s", f.number, next.Record.State, next.Record.Why)
			f.seen = next
		}
	case 2:
		f.turn = 0
		leads := m.holder == f.number
		switch force := f.seen.InForce(); {
		case force != "" && f.writes:
			for _, o := range m.members {
				if o != f && !o.dead && !o.paused {
					return // it cannot stop
				}
			}
			if left, limited := f.seen.Left(m.now); limited && left < f.seen.Limit/2 {
				return
			}
			f.writes = false
			m.sayf("member %d stops", f.number)
		case force != "" && leads && f.report != force:
			f.report = force
		case force == "" && f.report != "":
			f.report = "" // before it starts
		case force == "" && leads && !f.writes && !f.seen.Paused:
			f.writes = true
			m.sayf("member %d leads", f.number)
		case force == "" && !leads && !f.seen.Paused && m.members[m.holder].dead:
			// Nobody is promoted in a pause, which the loop of Patroni reads again.
			if !m.object.Paused {
				m.holder, f.writes = f.number, true
				m.sayf("member %d is promoted", f.number)
			}
		}
	}
}

// turnOfLater generation.
func (m *model) turnOfLater(l *later) {
	if l.dead || l.writes {
		return
	}
	if !l.reading {
		l.seen, l.version, l.reading = m.object, len(m.versions), true
		return
	}
	l.reading = false
	if l.failed {
		if next, changed := l.seen.GiveUp(l.id, l.to, "it failed"); changed && m.swap(l.version, next) {
			m.sayf("%s gives up", l.to)
		}
		return
	}
	if !l.offered {
		next, changed, err := l.seen.Offer(l.id, l.to)
		if err == nil {
			l.offered = !changed || m.swap(l.version, next)
		} else if l == m.later && m.planner.step == "Filling" {
			m.failf("the offer of %s is refused: %v, of %+v", l.to, err, l.seen)
		}
		return
	}
	// It ends a fence as the former members do, for they may all be lost.
	if next, changed := l.seen.Settle(m.now); changed && l.seen.Record.ID == l.id && l.seen.Record.To == l.to && m.r.IntN(2) == 0 {
		if !m.swap(l.version, next) {
			return
		}
		m.sayf("%s settles: %s %s", l.to, next.Record.State, next.Record.Why)
		l.seen, l.version = next, len(m.versions)
	}
	if why, lost := l.seen.Lost(l.id, l.to); lost {
		if l == m.later && l.seen.Record.To != l.to {
			m.failf("%s offered, and another one's record took its place", l.to)
		}
		m.sayf("%s fails: %s", l.to, why)
		l.failed = true
		return
	}
	fenced := l.seen.InForce() == l.id
	switch {
	case l.stage == "":
		for _, f := range m.members {
			if fenced && f.number == m.holder && f.report == l.id {
				l.stage, l.rows = "converting", m.rows
				m.sayf("%s has all rows", l.to)
			}
		}
	case l.stage == "converting" && !m.quiet && m.r.IntN(12) == 0:
		l.failed = true
	case l.stage == "converting" && m.r.IntN(3) == 0:
		l.stage = "accepted"
	case l.stage == "accepted":
		next, changed, err := l.seen.Commit(l.id, l.to)
		if errors.Is(err, ErrWithdrawn) {
			l.failed = true
		}
		if err != nil || changed && !m.swap(l.version, next) {
			return
		}
		m.sayf("%s leads", l.to)
		l.writes = true
	}
}

// turnOfPlanner: a pass, which sees what may be old, or the end of it, which writes.
func (m *model) turnOfPlanner() {
	p := &m.planner
	if p.dead {
		return
	}
	if p.pending != nil {
		next := *p.pending
		next.Record = m.object.Record // it owns the configuration only
		m.put(next)
		p.pending = nil
		return
	}
	p.oldest = max(p.oldest, len(m.versions)-4)
	at := p.oldest + m.r.IntN(len(m.versions)-p.oldest)
	seen := m.versions[at]
	if m.r.IntN(3) == 0 {
		p.oldest = at
	}
	state := ""
	if seen.Record.ID == p.id && seen.Record.To == p.to {
		state = seen.Record.State
	}
	var config Object
	switch p.step {
	case "":
		if m.r.IntN(4) > 0 || p.active != 0 {
			break
		}
		if p.next++; m.quiet {
			m.firm = cmp.Or(m.firm, p.next)
		}
		p.step, p.to, p.gives = "Filling", fmt.Sprintf("db.g%d", p.next+1), false
		p.id = fmt.Sprintf("upgrade-%d", p.next/2) // one that was cancelled has the same again
		if m.later != nil && m.r.IntN(2) == 0 {
			m.ghosts = append(m.ghosts, m.later)
		}
		m.later = &later{id: p.id, to: p.to}
		m.sayf("%s begins", p.to)
	case "Filling":
		if m.later.failed {
			p.step = "" // as its pod says
			m.sayf("the step of %s is over before its fence", p.to)
		} else if state != "" && m.r.IntN(2) == 0 {
			p.step, p.since = "Fencing", m.now
		}
	case "Fencing":
		p.gives = p.gives || !m.quiet && m.r.IntN(40) == 0
		switch {
		case m.later.writes:
			p.step, p.active = "", p.next
			m.sayf("clients are switched to %s", p.to)
			return
		case state == members.FenceWithdrawn:
			if m.firm != 0 {
				m.failf("a try that nobody interrupts was withdrawn: %s", seen.Record.Why)
			}
			p.step = ""
			m.sayf("the step of %s is over", p.to)
		default:
			config = Object{ID: p.id, Paused: true, To: p.to, Limit: limit}
			config.Withdraw = state != members.FenceCommitted && (p.gives || m.later.failed || m.now.Sub(p.since) > 2*limit)
		}
	}
	if p.active == 0 && m.r.IntN(3) > 0 { // the objects of a pass are written one by one, and this one may be missed
		p.pending = &config
	}
}

// trouble of one party.
func (m *model) trouble() {
	switch m.r.IntN(60) {
	case 0: // it ends, and begins again
		f := m.members[m.r.IntN(len(m.members))]
		f.turn, f.paused = 0, true
		if f.writes && m.r.IntN(2) == 0 {
			f.writes = false
		}
	case 1: // its node is lost, or comes back
		f := m.members[m.r.IntN(len(m.members))]
		if f.dead = !f.dead; f.dead {
			f.writes = false
			m.sayf("member %d is lost", f.number)
		}
		f.turn, f.paused = 0, true
	case 2, 3:
		if m.later != nil {
			m.later.reading = false
		}
	case 4:
		if m.later != nil && !m.later.writes && m.object.Record.State != members.FenceCommitted {
			m.later.dead = !m.later.dead
		}
	case 5:
		if m.later != nil && !m.later.writes && m.r.IntN(3) == 0 && m.object.Record.State != members.FenceCommitted {
			m.later.failed = true
		}
	}
}

// calm ends all trouble: everybody is there, and the control plane works and gives nothing up.
func (m *model) calm() {
	m.quiet, m.planner.dead = true, false
	for _, f := range m.members {
		if f.dead {
			f.dead, f.turn, f.paused = false, 0, true
		}
	}
	if m.later != nil {
		m.later.dead = false
	}
	m.sayf("calm after %d tries", m.planner.next)
}

// turn of any party.
func (m *model) turn() {
	parties := 5 + len(m.ghosts)
	switch n := m.r.IntN(parties); {
	case n < 3:
		m.turnOf(m.members[n])
	case n == 3:
		if m.later != nil {
			m.turnOfLater(m.later)
		}
	case n == 4:
		m.turnOfPlanner()
	default:
		m.turnOfLater(m.ghosts[n-5])
	}
	m.check()
}

// TestModel: in no history of tries, one after another, do two generations take writes, no row is lost, and once the control plane is dead
// one of them takes writes within the limit of the fence. A later try that nobody interrupts ends with the later generation.
func TestModel(t *testing.T) {
	outcomes, tries := map[string]int{}, [9]int{}
	for seed := range uint64(2000) {
		m := &model{t: t, r: rand.New(rand.NewPCG(seed, 19)), now: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
		m.sayf("seed %d", seed)
		m.put(Object{})
		for i := range 3 {
			m.members = append(m.members, &former{number: i, writes: i == 0})
		}
		for range 100 + m.r.IntN(900) {
			m.trouble()
			m.turn()
			m.now = m.now.Add(time.Duration(m.r.IntN(2000)) * time.Millisecond)
		}
		// The control plane dies in the middle of whatever it does, and for the later generation that may be so, too.
		m.planner.dead = true
		m.sayf("the control plane is dead")
		if l := m.later; l != nil && !l.writes && m.object.Record.State != members.FenceCommitted {
			l.dead = m.r.IntN(2) == 0
		} else if l != nil {
			l.dead = false
		}
		for _, f := range m.members { // one of the former is there
			f.dead = f.dead && f.number > 0
		}
		for until := m.now.Add(limit + 30*time.Second); m.now.Before(until); m.now = m.now.Add(200 * time.Millisecond) {
			m.turn()
		}
		if len(m.writers()) != 1 {
			m.failf("nobody takes writes")
		}
		outcomes[fmt.Sprintf("%s, in force %t", m.object.Record.State, m.object.InForce() != "")]++

		// What is under way then ends in one way or the other, and if the former generation serves, the next try upgrades it.
		tries[min(m.planner.next, 8)]++
		m.calm()
		for until := m.now.Add(5 * limit); m.planner.active == 0; m.now = m.now.Add(200 * time.Millisecond) {
			if !m.now.Before(until) {
				m.failf("no try ends with the later generation")
			}
			m.turn()
		}
		if w := m.writers(); len(w) != 1 || w[0] != m.later.to {
			m.failf("%v take writes, want %s", w, m.later.to)
		}
	}
	t.Log(outcomes, "tries before the calm:", tries)
}
