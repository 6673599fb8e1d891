// SPDX-License-Identifier: Apache-2.0

package database

import (
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// generations of the Database: what becomes of them is decided before anything is
// composed.
func generations(s *state) error {
	for _, g := range s.generations() {
		if g == s.generation {
			continue
		}

		t, err := s.sibling(g)
		if err != nil {
			return err
		}

		s.siblings[g] = t
	}

	s.forgotten()
	s.restoring, s.upgrading = s.restoreWish(), s.upgradeWish()

	if !s.known || s.pending != "" {
		return nil
	}

	next, changed := s.next()
	if !changed {
		return nil
	}

	text, err := next.text()
	if err != nil {
		return err
	}

	s.remember = text

	return nil
}

// sibling is the state of another generation of this Database. It has members,
// observations and an order of its own, and composes into the same plan.
func (s *state) sibling(generation int) (*state, error) {
	t := *s
	t.generation, t.side = generation, true
	t.order, t.before, t.move, t.awaits, t.holds = order{}, situation{}, nil, nil, false
	t.planned, t.restoring, t.upgrading = nil, nil, nil
	t.look()

	if err := t.ofVersion(); err != nil {
		return nil, err
	}

	// What fits into the volumes of one has to fit into those of another.
	t.least = s.newStorage()

	target, err := t.revision()
	if err != nil {
		return nil, err
	}

	t.target = target
	sit := t.situation(target)
	sit.freeze, sit.fenced = s.frozen(), t.fenced()

	switch {
	case sit.fenced && sit.paused && t.kept().Fenced:
		t.order = sit.halt()
	case sit.fenced:
		t.order = sit.fence()
	case t.asleep():
		t.order = sit.wake()
	default:
		t.order = order{done: true}
	}

	t.before = sit

	return &t, nil
}

// fenced tells whether this generation is stopped, or being stopped, because clients
// are led to another one.
func (s *state) fenced() bool {
	step := s.memory.Step
	if step != nil && s.generation == step.To {
		return false
	}

	if step != nil && s.generation == step.From {
		// The fence of an upgrade is Patroni's.
		return step.Phase == v1alpha1.RestoreFencing && step.Kind != stepUpgrade
	}

	// Of those nothing is known for, nothing is stopped.
	return s.memory.keeps(s.generation)
}

// comesUpBy tells whether this generation comes up by a step of a kind.
func (s *state) comesUpBy(kind string) bool {
	step := s.memory.Step

	return step != nil && step.To == s.generation && step.Kind == kind
}

// filledFrom is what a later generation begins with, as long as it comes up. After
// that it has data: were its volumes lost, it must not begin with that moment again.
func (s *state) filledFrom() *sourceFile {
	if !s.comesUpBy(stepRestore) {
		return nil
	}

	step := s.memory.Step

	return &sourceFile{
		Path: repositoryOf(s.namespace, s.name), Repository: s.served(), Stanza: s.stanzaOf(step.From), At: moment(step.At),
		RestorePoint: string(step.RestorePoint), Encrypted: s.sourceKey().encrypted(),
	}
}

// otherGenerations than the active one: the one that comes up is composed as the
// active is, and those that are kept stay as they are, stopped.
func otherGenerations(s *state) error {
	for _, g := range sortedKeys(s.siblings) {
		t := s.siblings[g]
		t.asked = nil

		step := s.memory.Step

		switch {
		case step != nil && g == step.To:
			for _, st := range comingUp {
				if err := st.do(t); err != nil {
					return err
				}
			}
		case s.memory.keeps(g):
			if err := t.keepStopped(); err != nil {
				return err
			}
		}

		s.asked = append(s.asked, t.asked...)
	}

	return nil
}

// comingUp is what a generation is made of.
var comingUp = []step{
	{"Topology", topology},
	{"Account", account},
	{"Config", config},
	{"Storage", storage},
	{"Members", members},
}

// keepStopped a generation that is kept: its members are stopped if one of them is
// not, and all else stays.
func (s *state) keepStopped() error {
	if err := topology(s); err != nil {
		return err
	}

	for _, letter := range sortedKeys(s.sets) {
		same, err := s.same(letter)
		if err != nil {
			return err
		}

		s.ask(s.in(nameMemberPrefix+letter), same)
	}

	return nil
}

// up tells whether every member of this generation that the spec asks for leads or
// follows closely.
func (s *state) up(sit situation) bool {
	return s.observed && s.leads() && !s.seen.Paused && len(sit.views) > 0 &&
		!slices.ContainsFunc(sit.views, func(v view) bool { return v.expected && !v.healthy() })
}

// down tells whether no member of this generation runs, and none can before its
// StatefulSet is changed: nobody writes there any more.
func (s *state) down() bool {
	return s.observed && len(s.before.strangers) == 0 &&
		!slices.ContainsFunc(s.before.views, func(v view) bool { return v.exists && !v.away() })
}

// next memory, if something is to be written down. It is called only when all that
// was written down before is known to be kept.
func (s *state) next() (memory, bool) {
	m := s.memory.copied()
	w := s.restoring

	// What made it anew from its manifest did not mean to restore once more.
	if len(s.sets) == 0 && m.Step == nil {
		if w == nil || w.undo {
			return m, false
		}

		m.Done = s.remembered(m.Done, doneRestore{ID: w.id, State: v1alpha1.RestoreSkipped, When: s.moment()})

		return m, true
	}

	if m.Step != nil {
		return s.advance(m)
	}

	if w != nil && w.reason == "" {
		return s.begin(m, w), true
	}

	if u := s.upgrading; u != nil && u.reason == "" {
		return s.beginUpgrade(m, u), true
	}

	before := len(m.Kept)
	m.Kept = slices.DeleteFunc(m.Kept, func(k keptGeneration) bool { return !s.Now.Before(k.Until) })

	return m, len(m.Kept) != before
}

// begin what is asked for.
func (s *state) begin(m memory, w *restoring) memory {
	m.Active = m.active()
	step := &generationStep{ID: w.id, Kind: stepRestore, From: m.Active, At: w.at, RestorePoint: w.point, Phase: v1alpha1.RestoreFilling, Since: s.moment()}

	if w.undo {
		step.Kind, step.To = stepUndo, w.to
	} else {
		m.Last = max(m.Last, m.Active) + 1
		step.To = m.Last

		if len(m.Versions) > 0 {
			m.Versions[step.To] = s.spec.Version
		}
	}

	m.Step = step

	return m
}

// advance the step that is under way.
func (s *state) advance(m memory) (memory, bool) {
	step := m.Step
	to := s.siblings[step.To]

	if step.Kind == stepUpgrade {
		return s.advanceUpgrade(m)
	}

	switch {
	case !s.wanted(step):
		// Whoever serves goes on serving.
		m.Step = nil
		return m, true
	case step.Phase == v1alpha1.RestoreFilling && to.up(to.before) && s.mayLeadOver() == "":
		step.Phase, step.Since = v1alpha1.RestoreFencing, s.moment()
		return m, true
	case step.Phase == v1alpha1.RestoreFencing && s.down():
		return s.ledOver(m), true
	default:
		return m, false
	}
}

// ledOver is the memory once clients are led to the other generation.
func (s *state) ledOver(m memory) memory {
	step, now := m.Step, s.moment()

	m.Active, m.Since, m.Step = step.To, &now, nil
	m.Kept = slices.DeleteFunc(m.Kept, func(k keptGeneration) bool { return k.Generation == step.To || k.Generation == step.From })
	m.Kept = append(m.Kept, keptGeneration{
		Generation: step.From, ID: step.ID, Until: now.Add(s.keepsFor(step)), Fenced: step.Kind == stepUpgrade, Led: step.Led,
	})

	kind := ""
	if step.upgrades() {
		kind = stepUpgrade
	}

	if step.Kind == stepUndo || step.Kind == stepUndoUpgrade {
		for i := range m.Done {
			if m.Done[i].ID == step.ID && m.Done[i].Kind == kind {
				m.Done[i].State, m.Done[i].When = v1alpha1.RestoreUndone, now
			}
		}

		return m
	}

	m.Done = s.remembered(m.Done, doneRestore{ID: step.ID, Kind: kind, State: v1alpha1.RestoreDone, From: step.From, To: step.To, At: step.At, RestorePoint: step.RestorePoint, When: now})

	return m
}

// remembered wishes, the last ones, and those that the spec still names: forgotten, they
// would be carried out once more. Why one failed is told only as long as it is named.
func (s *state) remembered(all []doneRestore, d doneRestore) []doneRestore {
	named := func(o doneRestore) bool {
		if o.Kind == stepUpgrade {
			return o.ID == s.undoID() || o.ID == s.upgradeID()
		}

		return o.ID == s.wishedID()
	}

	for i := range all {
		if !named(all[i]) {
			all[i].Why = ""
		}
	}

	all = append(all, d)
	for len(all) > doneKept {
		oldest := slices.IndexFunc(all, func(o doneRestore) bool { return !named(o) })
		all = slices.Delete(all, oldest, oldest+1)
	}

	return all
}

// moment of this pass, as it is written down.
func (s *state) moment() time.Time { return s.Now.UTC().Truncate(time.Second) }
