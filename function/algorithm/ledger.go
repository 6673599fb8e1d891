// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"slices"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// A ledger says which revision callers reach and where, and how far the next one
// has come. It is an annotation of what sends callers there: of the Algorithm's
// Service, and of its route while a rollout decides about weights. So the effect
// and the memory of it are written together. The status holds it as well. Of
// several the one of the latest epoch counts: Crossplane writes objects in no order
// and the status last, and any of the writes may fail.
type ledger struct {
	// Slot that callers reach, or go back to.
	Slot string `json:"slot"`

	// Revision that serves there. Empty until the first one does.
	Revision string `json:"revision,omitempty"`

	// Since tells when callers last left one of the slots.
	Since time.Time `json:"since,omitzero"`

	// Epoch counts what was decided.
	Epoch int64 `json:"epoch,omitempty"`

	// Phase of the rollout, and the one that it holds. Empty means Stable.
	Phase v1alpha1.RolloutPhase `json:"phase,omitempty"`
	Held  v1alpha1.RolloutPhase `json:"held,omitempty"`

	// Reason of the phase.
	Reason xpv2.ConditionReason `json:"reason,omitempty"`

	// Candidate is the revision that is tried, and Previous, while it bakes, the one
	// before it.
	Candidate string `json:"candidate,omitempty"`
	Previous  string `json:"previous,omitempty"`

	// Weight is the share of callers in percent that may reach the candidate. Next is
	// the one that it was found good for, while it grows for it, and NextBy why.
	Weight int32                `json:"weight,omitempty"`
	Next   int32                `json:"next,omitempty"`
	NextBy xpv2.ConditionReason `json:"nextBy,omitempty"`

	// Evidence is the epoch that evidence is gathered for: that in which the weight was
	// seen to be in force. Zero until then.
	Evidence int64 `json:"evidence,omitempty"`

	// Entered tells when the phase began, and Began when the step did that it belongs
	// to.
	Entered time.Time `json:"entered,omitzero"`
	Began   time.Time `json:"began,omitzero"`

	// Trouble that the candidate has, and since when.
	Trouble   xpv2.ConditionReason `json:"trouble,omitempty"`
	TroubleAt time.Time            `json:"troubleAt,omitzero"`

	// Experiment that goes on, ids of those that were run, the latest first, and what came
	// of the last.
	Experiment   *trying                    `json:"experiment,omitempty"`
	Experimented []string                   `json:"experimented,omitempty"`
	Compared     *v1alpha1.ExperimentStatus `json:"compared,omitempty"`

	// Last decision, for people.
	Last *v1alpha1.RolloutDecision `json:"last,omitempty"`

	// Failed revisions, the latest first, and the times of the latest rollbacks.
	Failed    []v1alpha1.FailedRevision `json:"failed,omitempty"`
	Rollbacks []time.Time               `json:"rollbacks,omitempty"`
}

// standing is the phase, or the one that is held.
func (l ledger) standing() v1alpha1.RolloutPhase {
	switch l.Phase {
	case v1alpha1.RolloutHolding:
		return l.Held
	case "":
		return v1alpha1.RolloutStable
	default:
		return l.Phase
	}
}

// sends tells whether callers go where they do by another ledger, and are taken back
// from the same revisions.
func (l ledger) sends(other ledger) bool {
	return l.Slot == other.Slot && l.Revision == other.Revision && l.Previous == other.Previous && l.Candidate == other.Candidate &&
		l.Weight == other.Weight && l.standing() == other.standing() &&
		slices.EqualFunc(l.Failed, other.Failed, func(a, b v1alpha1.FailedRevision) bool {
			return a.Revision == b.Revision && a.Attempts == b.Attempts
		})
}

// failure of a revision that was rolled back, or nil.
func (l ledger) failure(revision string) *v1alpha1.FailedRevision {
	for i := range l.Failed {
		if l.Failed[i].Revision == revision {
			return &l.Failed[i]
		}
	}

	return nil
}

// without the failure of a revision that is trusted from now on.
func (l ledger) without(revision string) []v1alpha1.FailedRevision {
	return slices.DeleteFunc(slices.Clone(l.Failed), func(f v1alpha1.FailedRevision) bool { return f.Revision == revision })
}

// forgotten rollout: what remains where nothing is asked about how callers go over.
// Revisions that were rolled back are among it: nobody says that they are better now.
func (l ledger) forgotten() ledger {
	epoch := l.Epoch
	if l.standing() != v1alpha1.RolloutStable {
		epoch++
	}

	if t := l.Experiment; t != nil {
		l = l.concluded(v1alpha1.ExperimentStatus{
			ID: t.ID, Phase: v1alpha1.ExperimentEnded, Winner: v1alpha1.WinnerInconclusive, Reason: string(v1alpha1.ReasonExperimentRemoved),
			Message: "spec.lifecycle was removed, or no replicas are asked for",
		})
	}

	return ledger{
		Slot: l.Slot, Revision: l.Revision, Since: l.Since, Epoch: epoch,
		Failed: l.without(l.Revision), Rollbacks: l.Rollbacks,
		Experimented: l.Experimented, Compared: l.Compared,
	}
}

// recall the ledger. Where nothing holds it any more, the status of the Algorithm
// says as much about revisions, and where that is gone too, the slot with the most
// pods that serve is the one that callers can have reached. When they went there is
// then unknown: the other slot gets all the time it could need.
func (s *state) recall() ledger {
	var (
		latest ledger
		known  bool
	)

	for _, text := range []string{
		annotated(s.Observed[nameService]),
		annotated(s.Observed[nameRoute]),
		compose.Text(s.Composite.Map(), "status", "rollout", "ledger"),
	} {
		if l, ok := written(text); ok && (!known || l.Epoch > latest.Epoch) {
			latest, known = l, true
		}
	}

	if known && !s.deserted(latest.Slot) {
		latest.Epoch = max(latest.Epoch, s.lastEpoch())
		return latest.until(s.Now)
	}

	l := s.guess()
	if s.slots[otherSlot(l.Slot)].total > 0 {
		l.Since = s.Now.UTC().Truncate(time.Second)
	}

	// What is said of other times is still true.
	l.Epoch = max(l.Epoch, latest.Epoch, s.lastEpoch())
	l.Failed, l.Rollbacks = latest.Failed, latest.Rollbacks
	l.Experimented, l.Compared = latest.Experimented, latest.Compared

	return l
}

// deserted tells whether a slot is not the one that callers reach, whatever is
// remembered: no pods are asked for in it, and the Service leads to those that serve in
// the other one. A status that was restored from a backup remembers so.
func (s *state) deserted(slot string) bool {
	other := otherSlot(slot)
	return !s.slots[slot].holdsRoom() && s.serviceSelects() == other && s.slots[other].available > 0
}

// mostAhead is how far the clock may be set back. Then a rollout waits for the time
// to come again; a clock that was further off was wrong.
const mostAhead = time.Hour

// until now: a clock gone wrong wrote what comes later.
func (l ledger) until(now time.Time) ledger {
	now = now.UTC().Truncate(time.Second)

	if l.Since.After(now) {
		l.Since = now
	}

	for _, at := range []*time.Time{&l.Entered, &l.Began, &l.TroubleAt} {
		if at.After(now.Add(mostAhead)) {
			*at = now
		}
	}

	return l
}

func (s *state) guess() ledger {
	known := compose.Map(s.Composite.Map(), "status", "revision")
	if slot, revision := compose.Text(known, "slot"), compose.Text(known, "live"); isSlot(slot) && revision != "" && !s.deserted(slot) {
		return ledger{Slot: slot, Revision: revision}
	}

	l := ledger{Slot: slotA}
	if s.slots[slotB].available > s.slots[slotA].available {
		l.Slot = slotB
	}

	// What served is pinned, and what is tried is not.
	for _, slot := range []string{slotA, slotB} {
		if s.pinned(slot) && !s.pinned(otherSlot(slot)) && s.slots[slot].available > 0 {
			l.Slot = slot
		}
	}

	r, other := s.slots[l.Slot], s.slots[otherSlot(l.Slot)]
	if r.available > 0 {
		l.Revision = r.revision
	}

	// A Gateway that sends callers to both goes on as it does until somebody decides.
	seen := s.observedRoute().weights
	if w := seen[s.slotServiceName(otherSlot(l.Slot))]; w > 0 && w < 100 && seen[s.slotServiceName(l.Slot)] > 0 && other.exists && other.revision != "" {
		now := s.Now.UTC().Truncate(time.Second)
		l.Epoch, l.Phase, l.Held, l.Reason = s.lastEpoch()+1, v1alpha1.RolloutHolding, v1alpha1.RolloutStepping, v1alpha1.ReasonStateLost
		l.Candidate, l.Weight, l.Entered, l.Began = other.revision, int32(w), now, now //nolint:gosec // It is below 100.
	}

	return l
}

// lastEpoch that evidence was gathered for, so that none of before counts again.
func (s *state) lastEpoch() int64 {
	o := s.Observed[nameAnalysis]
	if o == nil {
		return 0
	}

	return max(compose.Number(o.Map(), 0, "spec", "forProvider", "metrics", "canary", "epoch"),
		compose.Number(o.Map(), 0, "status", "atProvider", "canary", "epoch"))
}

// pinned tells whether the revision in a slot has served.
func (s *state) pinned(slot string) bool {
	return s.slots[slot].exists && s.Observed[nameRevisionPrefix+s.slots[slot].revision] != nil
}

func annotated(o compose.Object) string {
	if o == nil {
		return ""
	}

	return compose.Text(o.Map(), "metadata", "annotations", annotationLedger)
}

func written(text string) (ledger, bool) {
	var l ledger
	if err := json.Unmarshal([]byte(text), &l); err != nil || !isSlot(l.Slot) {
		return ledger{}, false
	}

	return l, true
}

// text of the ledger.
func (l ledger) text() string {
	raw, _ := json.Marshal(l) //nolint:errchkjson // Text, numbers and times of this century always marshal.
	return string(raw)
}

func isSlot(slot string) bool { return slot == slotA || slot == slotB }

// awaits tells whether another revision than the live one is to come, and has not
// failed.
func (l ledger) awaits(target string) bool {
	return l.Revision != "" && target != "" && target != l.Revision && l.failure(target) == nil
}
