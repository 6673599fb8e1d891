// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// MostAhead is how far the clock may be set back. Then a rollout waits for the time to come again; a clock that was further off
// was wrong.
const MostAhead = time.Hour

// A Memory is everything that remembers where requests went.
type Memory struct {
	// Ledgers on objects and in the status, as text.
	Ledgers []string

	// Slot and Live revision that the status reports.
	Slot, Live string

	// Epoch is the latest one that evidence was gathered for.
	Epoch int64
}

// Recall the ledger. Where nothing holds it any more, the status of the Algorithm reports as much about revisions, and where that
// is gone too, requests can have reached the slot with the most pods that serve. When they went there is then unknown: the other
// slot gets all the time it could need. No evidence of before counts for an epoch again.
func Recall(f Facts, m Memory) Ledger {
	var latest Ledger
	known := false
	for i, text := range m.Ledgers {
		if slices.Contains(m.Ledgers[:i], text) {
			continue
		}
		if l, ok := ParseLedger(text); ok && (!known || l.Epoch > latest.Epoch) {
			latest, known = l, true
		}
	}
	stopping := latest.Capacity == v1alpha1.CapacityRecreate && latest.Standing() == v1alpha1.RolloutRollingBack
	if known && (stopping || !f.deserted(latest.Slot, latest.Revision)) {
		latest.Epoch = max(latest.Epoch, m.Epoch)
		return latest.until(f.clock())
	}
	l := f.guess(m)
	if f.idle(l).Total > 0 {
		l.Since = f.clock()
	}
	// What is remembered of other times is still true.
	l.Epoch = max(l.Epoch, latest.Epoch, m.Epoch)
	l.Failed, l.Rollbacks = latest.Failed, latest.Rollbacks
	l.Experimented, l.Compared = latest.Experimented, latest.Compared
	return l
}

// deserted reports whether requests do not reach a revision in a slot, even if the ledger or the status names it, while pods serve in
// the other one. A status that was restored from a backup may name such a slot: no pods are desired in it, and the Service sends to
// the other one, or it runs another revision, and the Service does not send to it alone.
func (f Facts) deserted(slot, revision string) bool {
	other, s := names.Other(slot), f.Slots[slot]
	empty := !s.HoldsRoom() && f.Selects == other
	taken := f.Selects != slot && s.Exists && s.Revision != "" && revision != "" && s.Revision != revision
	return (empty || taken) && f.Slots[other].Available > 0
}

// until now: a clock gone wrong wrote what is later.
func (l Ledger) until(now time.Time) Ledger {
	if l.Since.After(now) {
		l.Since = now
	}
	l.Hooks = slices.Clone(l.Hooks)
	for i := range l.Hooks {
		if at := &l.Hooks[i].Started; at.After(now.Add(MostAhead)) {
			*at = now
		}
	}
	l.Interrupted = slices.DeleteFunc(slices.Clone(l.Interrupted), func(at time.Time) bool { return at.After(now.Add(MostAhead)) })
	for _, at := range []*time.Time{&l.Entered, &l.Began, &l.TroubleAt, &l.Started} {
		if at.After(now.Add(MostAhead)) {
			*at = now
		}
	}
	return l
}

// guess the ledger by what runs.
func (f Facts) guess(m Memory) Ledger {
	if names.IsSlot(m.Slot) && m.Live != "" && !f.deserted(m.Slot, m.Live) {
		return Ledger{Slot: m.Slot, Revision: m.Live}
	}
	l := Ledger{Slot: f.serving()}
	live, idle := f.live(l), f.idle(l)
	if live.Available > 0 {
		l.Revision = live.Revision
	}
	// A Gateway that sends requests to both slots continues to do so until a person decides.
	if w := idle.Routed.Weight; w > 0 && w < 100 && live.Routed.Weight > 0 && idle.Exists && idle.Revision != "" {
		l.Epoch, l.Phase, l.Held, l.Reason = m.Epoch+1, v1alpha1.RolloutHolding, v1alpha1.RolloutStepping, v1alpha1.ReasonStateLost
		l.Candidate, l.Weight, l.Entered, l.Began = idle.Revision, int32(w), f.clock(), f.clock() //nolint:gosec // It is below 100.
	}
	return l
}

// serving slot, as far as it can be known: the Service sends to the revision that was live, or became so just now. What served is
// pinned, and a candidate is not.
func (f Facts) serving() string {
	a, b := f.Slots[names.SlotA], f.Slots[names.SlotB]
	switch {
	case names.IsSlot(f.Selects) && f.Slots[f.Selects].Available > 0:
		return f.Selects
	case a.Served && !b.Served && a.Available > 0:
		return names.SlotA
	case b.Served && !a.Served && b.Available > 0, b.Available > a.Available:
		return names.SlotB
	default:
		return names.SlotA
	}
}
