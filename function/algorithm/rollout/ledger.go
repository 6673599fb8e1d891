// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

const (
	// mostFailed revisions are remembered, each with mostRunes of its message.
	mostFailed, mostRunes = 10, 240
	// mostOfLast is how much is kept of the last decision, which has the numbers of all checks.
	mostOfLast = 800

	// mostExperimented ids are remembered.
	mostExperimented = 20

	// coolDown before a revision can be tried again, which doubles with each attempt.
	coolDown, mostCoolDown = 10 * time.Minute, 6 * time.Hour
)

// A third rollback within loopTime is one too many.
const (
	loopTime  = time.Hour
	loopLimit = 3
)

// A third loss of all replicas within interruptionTime is one too many to continue at once.
const (
	interruptionTime = time.Hour
	interruptions    = 3
)

// A Ledger says which revision requests reach and where, and how far the next one has come. It is an annotation of what sends
// requests there: of the Algorithm's Service, and of its route while a rollout decides about weights. So the effect and the
// memory of it are written together. The status holds it as well. Of several the one of the latest epoch counts: Crossplane
// writes objects in no order and the status last, and any of the writes may fail.
type Ledger struct {
	// Slot that requests reach, or go back to.
	Slot string `json:"slot"`

	// Revision that serves there. Empty until the first one does.
	Revision string `json:"revision,omitempty"`

	// Since is when requests last left one of the slots.
	Since time.Time `json:"since,omitzero"`

	// Epoch counts decisions.
	Epoch int64 `json:"epoch,omitempty"`

	// Phase of the rollout, and the one that it holds. Empty means Stable.
	Phase v1alpha1.RolloutPhase `json:"phase,omitempty"`
	Held  v1alpha1.RolloutPhase `json:"held,omitempty"`

	// Reason of the phase.
	Reason xpv2.ConditionReason `json:"reason,omitempty"`

	// Candidate is the revision under test, and Previous, while it bakes, the one before it.
	Candidate string `json:"candidate,omitempty"`
	Previous  string `json:"previous,omitempty"`

	// Weight is the share of requests in percent that may reach the candidate. Next is the share that it passed for, while it
	// grows for it, and NextBy why.
	Weight int32                `json:"weight,omitempty"`
	Next   int32                `json:"next,omitempty"`
	NextBy xpv2.ConditionReason `json:"nextBy,omitempty"`

	// Base is the number of replicas that all requests need, while an autoscaler follows the load of a part of them, or that two
	// revisions share while they exchange replicas.
	Base int32 `json:"base,omitempty"`

	// Capacity is where the candidate's replicas find room, empty for Surge. Stopped reports whether the live revision has stopped
	// so that they find it.
	Capacity v1alpha1.Capacity `json:"capacity,omitempty"`
	Stopped  bool              `json:"stopped,omitempty"`

	// Unmeasured reports whether nothing was known of the candidate in a step, although the live revision can be measured.
	Unmeasured bool `json:"unmeasured,omitempty"`

	// Evidence is the epoch that evidence is gathered for: the one in which the weight was seen to be in force, or all requests
	// were sent to the candidate. Zero until then.
	Evidence int64 `json:"evidence,omitempty"`

	// Entered is when the phase began, and Began when its step did.
	Entered time.Time `json:"entered,omitzero"`
	Began   time.Time `json:"began,omitzero"`

	// Trouble that the candidate has, and since when.
	Trouble   xpv2.ConditionReason `json:"trouble,omitempty"`
	TroubleAt time.Time            `json:"troubleAt,omitzero"`

	// Started is since when another replica of the candidate should become ready, Serving how many are, and Excused reports
	// whether they wait for what the revision cannot give.
	Started time.Time `json:"started,omitzero"`
	Serving int64     `json:"serving,omitempty"`
	Excused bool      `json:"excused,omitempty"`

	// Interrupted is when the candidate lost all of its replicas, the latest first. Doubted reports whether it failed a check
	// with all requests, and is compared with the revision before it once more.
	Interrupted []time.Time `json:"interrupted,omitempty"`
	Doubted     bool        `json:"doubted,omitempty"`

	// Experiment under way, ids of the experiments that were run, the latest first, and the result of the last.
	Experiment   *Trial                        `json:"experiment,omitempty"`
	Experimented []string                      `json:"experimented,omitempty"`
	Compared     *v1alpha1.AlgorithmExperiment `json:"compared,omitempty"`

	// Attempt names the present attempt of the candidate by an epoch of it, where there are hooks. Hooks are their latest runs.
	Attempt int64     `json:"attempt,omitempty"`
	Hooks   []HookRun `json:"hooks,omitempty"`

	// Notices that are not delivered yet, and Unheard is why the last one was not, if so.
	Notices []Notice `json:"notices,omitempty"`
	Unheard string   `json:"unheard,omitempty"`

	// Last decision, for people.
	Last *v1alpha1.RolloutDecision `json:"last,omitempty"`

	// Failed revisions, the latest first, and the times of the latest rollbacks.
	Failed    []v1alpha1.FailedRevision `json:"failed,omitempty"`
	Rollbacks []time.Time               `json:"rollbacks,omitempty"`
}

// ParseLedger reads an annotation, and reports whether it holds a ledger.
func ParseLedger(text string) (Ledger, bool) {
	var l Ledger
	if err := json.Unmarshal([]byte(text), &l); err != nil || !names.IsSlot(l.Slot) {
		return Ledger{}, false
	}
	return l, true
}

// Text of the ledger for an annotation.
func (l Ledger) Text() string {
	raw, _ := json.Marshal(l) //nolint:errchkjson // Text, numbers and times of this century always marshal.
	return string(raw)
}

// Standing is the phase, or the one that is held.
func (l Ledger) Standing() v1alpha1.RolloutPhase {
	switch l.Phase {
	case v1alpha1.RolloutHolding:
		return l.Held
	case "":
		return v1alpha1.RolloutStable
	default:
		return l.Phase
	}
}

// Testing reports whether a candidate runs in the idle slot.
func (l Ledger) Testing() bool {
	p := l.Standing()
	return p == v1alpha1.RolloutPreparing || p == v1alpha1.RolloutMirroring || p == v1alpha1.RolloutStepping
}

// Shared reports whether requests reach the candidate and the live revision, so that what both need counts.
func (l Ledger) Shared() bool { return l.Standing() == v1alpha1.RolloutStepping && l.Weight > 0 }

// SendsLike reports whether requests go where they do by another ledger, and are taken back from the same revisions.
func (l Ledger) SendsLike(other Ledger) bool {
	alike := l.Candidate == other.Candidate && l.Standing() == other.Standing()
	return l.Slot == other.Slot && l.Revision == other.Revision && l.Previous == other.Previous && l.Weight == other.Weight &&
		(alike || l.undivided() && other.undivided()) && slices.Equal(l.Experimented, other.Experimented) &&
		slices.EqualFunc(l.Failed, other.Failed, func(a, b v1alpha1.FailedRevision) bool {
			return a.Revision == b.Revision && a.Attempts == b.Attempts
		})
}

// undivided reports whether requests reach one revision, and nothing has to be undone for another: a rollout that is forgotten here
// begins again.
func (l Ledger) undivided() bool {
	phase := l.Standing()
	return l.Weight == 0 && l.Previous == "" && (l.Capacity == "" || l.Capacity == v1alpha1.CapacitySurge) &&
		(phase == v1alpha1.RolloutStable || phase == v1alpha1.RolloutPreparing || phase == v1alpha1.RolloutRollingBack)
}

// scaledUp is the number of replicas that all requests need, when those that do not reach the candidate need so many.
func (l Ledger) scaledUp(replicas int64) int64 {
	rest := int64(max(100-l.Weight, 1))
	return (100*replicas + rest - 1) / rest
}

// Failure of a revision that was rolled back, or nil.
func (l Ledger) Failure(revision string) *v1alpha1.FailedRevision {
	for i := range l.Failed {
		if l.Failed[i].Revision == revision {
			return &l.Failed[i]
		}
	}
	return nil
}

// Ran reports whether an experiment of an id has been run.
func (l Ledger) Ran(id string) bool { return slices.Contains(l.Experimented, id) }

// holdsFor reports whether the rollout holds for one of some reasons.
func (l Ledger) holdsFor(reasons ...xpv2.ConditionReason) bool {
	return l.Phase == v1alpha1.RolloutHolding && slices.Contains(reasons, l.Reason)
}

// The methods below are the changes that a transition makes to a ledger, whose phase it has begun already.

// counting evidence from this epoch on.
func (l Ledger) counting() Ledger {
	l.Evidence, l.Began = l.Epoch, l.Entered
	return l
}

// began its time, and counts the evidence of before.
func (l Ledger) began() Ledger {
	l.Began = l.Entered
	return l
}

// uncounted evidence: what there was is about another share.
func (l Ledger) uncounted() Ledger {
	l.Evidence, l.Began = 0, l.Entered
	return l
}

// testing a candidate, from its start.
func (l Ledger) testing(candidate string, t *Trial) Ledger {
	l.Candidate, l.Previous, l.Weight, l.Evidence, l.Began = candidate, "", 0, 0, l.Entered
	l.Experiment, l.Unmeasured, l.Interrupted, l.Doubted, l.Stopped = t, false, nil, false, false
	return l.growing(0, "").startingAt(l.Entered).attempting()
}

// growing for the next share, or for none (0).
func (l Ledger) growing(next int32, why xpv2.ConditionReason) Ledger {
	l.Next, l.NextBy = next, why
	if next > 0 {
		l.Started = l.Entered
	}
	return l
}

// startingAt a time, or not at all (zero), the candidate has no replica yet.
func (l Ledger) startingAt(t time.Time) Ledger {
	l.Started, l.Serving, l.Excused = t, 0, false
	return l
}

// interrupted candidate, without a replica that serves: a share of requests waits for it. What was counted is about a share that no
// longer reaches it; the arms of an experiment are counted all the same.
func (l Ledger) interrupted(share int32) Ledger {
	if l.Weight > 0 {
		l.Since = l.Entered
	}
	l.Interrupted = append([]time.Time{l.Entered}, l.Interrupted[:min(len(l.Interrupted), interruptions-1)]...)
	l.Weight = 0
	l = l.startingAt(l.Entered)
	if l.Experiment == nil {
		l.Evidence = 0
	}
	if share == 0 {
		return l.growing(0, "")
	}
	return l.growing(share, v1alpha1.ReasonResumed)
}

// weighing the candidate at a share.
func (l Ledger) weighing(share int32) Ledger {
	l.Weight = share
	return l.growing(0, "").uncounted()
}

// promoted candidate: it is live from now on. Requests may reach it at once, even if the Gateway does not report it.
func (l Ledger) promoted() Ledger {
	l = l.weighing(100).counting()
	l.Slot, l.Revision, l.Previous, l.Since = names.Other(l.Slot), l.Candidate, l.Revision, l.Entered
	l.Stopped = false
	return l.startingAt(time.Time{}).ungated()
}

// left candidate: no request reaches it any more.
func (l Ledger) left() Ledger {
	if l.Weight > 0 {
		l.Since = l.Entered
	}
	l.Weight, l.Evidence, l.Stopped = 0, 0, false
	return l.growing(0, "").startingAt(time.Time{}).ungated()
}

// returned to the previous revision, with all requests.
func (l Ledger) returned() Ledger {
	l.Slot, l.Revision, l.Previous = names.Other(l.Slot), l.Previous, ""
	l.Since, l.Weight, l.Evidence = l.Entered, 0, 0
	return l.growing(0, "").startingAt(time.Time{}).ungated()
}

// condemned revision: it is not tried again by itself.
func (l Ledger) condemned(revision string, reason xpv2.ConditionReason, message string) Ledger {
	attempts := int32(1)
	if f := l.Failure(revision); f != nil {
		attempts = f.Attempts + 1
	}
	cool := mostCoolDown
	if shift := attempts - 1; shift < 6 { // beyond it the doubled time is above the greatest
		cool = min(coolDown<<shift, mostCoolDown)
	}
	failed := []v1alpha1.FailedRevision{{
		Revision: revision, Reason: string(reason), Message: clipped(message), At: metav1.NewTime(l.Entered),
		Attempts: attempts, RetryAfter: metav1.NewTime(l.Entered.Add(cool)),
	}}
	for _, f := range l.Failed {
		if f.Revision != revision && len(failed) < mostFailed {
			failed = append(failed, f)
		}
	}
	l.Failed = failed
	l.Rollbacks = append([]time.Time{l.Entered}, l.Rollbacks[:min(len(l.Rollbacks), loopLimit-1)]...)
	return l
}

// trusting a revision: that it failed before is forgotten.
func (l Ledger) trusting(revision string) Ledger {
	l.Failed = slices.DeleteFunc(slices.Clone(l.Failed), func(f v1alpha1.FailedRevision) bool { return f.Revision == revision })
	return l
}

// concluded experiment: it is remembered with its result, so that it does not run again.
func (l Ledger) concluded(result v1alpha1.AlgorithmExperiment) Ledger {
	l.Experimented = slices.Insert(slices.Clone(l.Experimented), 0, result.Name)
	l.Experimented = l.Experimented[:min(len(l.Experimented), mostExperimented)]
	l.Compared, l.Experiment = &result, nil
	return l
}

// suffering from a trouble since now, or from none ("").
func (l Ledger) suffering(reason xpv2.ConditionReason, now time.Time) Ledger {
	switch reason {
	case l.Trouble:
	case "":
		l.Trouble, l.TroubleAt = "", time.Time{}
	default:
		l.Trouble, l.TroubleAt = reason, now
	}
	return l
}

// withoutRollout is what remains where the spec has no lifecycle. Revisions that were rolled back are among it: nothing says that
// they are better now.
func (l Ledger) withoutRollout() Ledger {
	epoch := l.Epoch
	if l.Standing() != v1alpha1.RolloutStable {
		epoch++
	}
	if t := l.Experiment; t != nil {
		l = l.concluded(v1alpha1.AlgorithmExperiment{Name: t.ID, ExperimentState: v1alpha1.ExperimentState{
			Phase: v1alpha1.ExperimentEnded, Winner: v1alpha1.WinnerInconclusive, Reason: string(v1alpha1.ReasonExperimentRemoved),
			Message: "spec.lifecycle was removed, or no replicas are desired",
		}})
	}
	return Ledger{
		Slot: l.Slot, Revision: l.Revision, Since: l.Since, Epoch: epoch,
		Failed: l.trusting(l.Revision).Failed, Rollbacks: l.Rollbacks,
		Experimented: l.Experimented, Compared: l.Compared,
	}
}

// clipped message, for what is kept on objects.
func clipped(message string) string { return clippedAt(message, mostRunes) }

// clippedAt so many characters.
func clippedAt(message string, most int) string {
	if runes := []rune(message); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return message
}
