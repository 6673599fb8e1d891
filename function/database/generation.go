// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// decideAll of a Database: what happens to its generations, before anything is composed.
func decideAll(c *cluster) *state {
	s := &state{decision: decide(c), remember: cmp.Or(c.pending, c.told), siblings: map[int]*decision{}}
	for _, g := range c.generations() {
		if g != c.generation {
			s.siblings[g] = decideSibling(c.sibling(g))
		}
	}
	s.restoring, s.upgrading = s.restoreRequest(), s.upgradeRequest()
	if s.known && s.pending == "" {
		if next, changed := s.next(); changed {
			s.remember = next.text()
		}
	}
	return s
}

// decideSibling is what happens to a generation that is not the active one.
func decideSibling(c *cluster) *decision {
	target := c.revision()
	sit := c.situation(target)
	sit.freeze, sit.fenced = frozen(c.spec.Maintenance, c.Now), c.fenced()
	d := &decision{cluster: c, target: target, before: sit}
	switch {
	case sit.fenced && sit.paused && c.kept().Fenced:
		d.order = sit.halt()
	case sit.fenced:
		d.order = sit.fence()
	case c.asleep():
		d.order = sit.wake()
	default:
		d.order = order{done: true}
	}
	return d
}

// fenced reports whether this generation is stopped, or being stopped, because clients are switched to another one.
func (s *cluster) fenced() bool {
	step := s.memory.Step
	if step != nil && s.generation == step.To {
		return false
	}
	if step != nil && s.generation == step.From {
		// The members themselves hold the fence of an upgrade.
		return step.Phase == v1alpha1.RestoreFencing && step.Kind != stepUpgrade
	}
	// Of those nothing is known for, nothing is stopped.
	return s.memory.keeps(s.generation)
}

// comesUpBy reports whether this generation comes up by a step of a kind.
func (s *cluster) comesUpBy(kind string) bool {
	step := s.memory.Step
	return step != nil && step.To == s.generation && step.Kind == kind
}

// filledFrom is what a later generation begins with, as long as it comes up. After that it has data: were its volumes lost, it
// must not begin with that moment again.
func (s *cluster) filledFrom() *engine.Source {
	if !s.comesUpBy(stepRestore) {
		return nil
	}
	step := s.memory.Step
	return &engine.Source{
		Path: repositoryOf(s.namespace, s.name), Repository: s.repositoryAddress(), Stanza: s.stanzaOf(step.From), At: moment(step.At),
		RestorePoint: string(step.RestorePoint), Encrypted: s.sourceKey().encrypted(),
	}
}

// otherGenerations than the active one: the one that comes up is composed as the active is, and those that are kept stay as they
// are, stopped.
func otherGenerations(d *compose.Draft, s *state) {
	for _, g := range compose.SortedKeys(s.siblings) {
		t := s.siblings[g]
		switch step := s.memory.Step; {
		case step != nil && g == step.To:
			topology(d, t)
			account(d, t.cluster)
			config(d, t)
			storage(d, t.cluster)
			members(d, t, t.missingFor(s.known && s.pending != ""))
		case s.memory.keeps(g):
			keepStopped(d, t)
		}
	}
}

// keepStopped a generation that is kept: its members are stopped if one of them is not, and all else stays.
func keepStopped(d *compose.Draft, s *decision) {
	topology(d, s)
	for _, letter := range compose.SortedKeys(s.sets) {
		d.Add(s.in(nameMemberPrefix+letter), s.same(letter), s.side)
	}
}

// up reports whether every member of this generation that the spec asks for leads or follows closely.
func (s *cluster) up(sit situation) bool {
	return s.observed && s.leads() && !s.seen.Paused && len(sit.views) > 0 &&
		!slices.ContainsFunc(sit.views, func(v view) bool { return v.expected && !v.healthy() })
}

// down reports whether no member of this generation runs, and none can before its StatefulSet is changed: nobody writes there any
// more.
func (s *decision) down() bool {
	return s.observed && len(s.before.strangers) == 0 &&
		!slices.ContainsFunc(s.before.views, func(v view) bool { return v.exists && !v.away() })
}

// next memory, if something is to be written down. It is called only when all that was written down before is known to be kept.
func (s *state) next() (memory, bool) {
	m := s.memory.copied()
	w := s.restoring
	// A Database that is recreated from its manifest must not restore a second time.
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
func (s *cluster) begin(m memory, w *restoring) memory {
	m.Active = m.active()
	step := &generationStep{ID: w.id, Kind: stepRestore, From: m.Active, At: w.at, RestorePoint: w.point, Phase: v1alpha1.RestoreFilling, Since: s.moment()}
	if w.undo {
		step.Kind, step.To = stepUndo, w.to
	} else {
		m.Last = max(m.Last, m.Active) + 1
		step.To = m.Last
		if len(m.Versions) > 0 {
			m.Versions[step.To] = s.data
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
	case step.Phase == v1alpha1.RestoreFilling && to.up(to.before) && s.switchBlocked() == "":
		step.Phase, step.Since = v1alpha1.RestoreFencing, s.moment()
		return m, true
	case step.Phase == v1alpha1.RestoreFencing && s.down():
		return s.switchClients(m), true
	default:
		return m, false
	}
}

// switchClients is the memory once clients are switched to the other generation.
func (s *cluster) switchClients(m memory) memory {
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

// remembered wishes, the last ones, and those that the spec still names: forgotten, they would be carried out once more. Why one
// failed is told only as long as it is named.
func (s *cluster) remembered(all []doneRestore, d doneRestore) []doneRestore {
	named := func(o doneRestore) bool {
		if o.Kind == stepUpgrade {
			return o.ID == s.undoID() || o.ID == s.upgradeID()
		}
		return o.ID == s.restoreID()
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
func (s *cluster) moment() time.Time { return s.Now.UTC().Truncate(time.Second) }
