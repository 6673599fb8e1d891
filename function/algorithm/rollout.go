// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A rollout takes callers from one revision to another by what is known of it. In
// each pass it makes one transition at most, by what it sees and what the ledger
// remembers:
//
//	Stable ─► Preparing ─► (Mirroring) ─► Stepping ─► … ─► Promoting ─► Baking ─► Draining ─► Stable
//	              │            │                │           │
//	              └────────────┴── RollingBack ◄┴───────────┘
//	                                    └─► RolledBack, while the spec asks for it
//
// Every phase before Draining can be held. Each transition begins an epoch.
type rollout struct {
	*state

	lc *v1alpha1.Lifecycle

	ledger ledger

	// there is what runs in the slot that is not the ledger's: the candidate, while it
	// bakes the revision before it, and otherwise what is given up.
	there running

	evidence evidence

	// sizing is the share of callers that the candidate is made large enough for.
	sizing int32

	// message of the phase, and when time alone changes something about it.
	message string
	until   time.Time

	// silentAt is when nobody will have looked at the candidate for too long.
	silentAt time.Time

	moved bool

	// waits is what an experiment waits for that the spec asks for, as reason and message,
	// and winner what came of one that ends.
	waits    xpv2.ConditionReason
	waitsFor string
	winner   v1alpha1.ExperimentWinner
}

const (
	// patience with replicas that find no room, and with a Gateway that does not take
	// its route.
	patience = 2 * time.Minute

	// lastPatience is how long replicas of a candidate may be hindered by what is wrong
	// with the revision itself.
	lastPatience = 3 * time.Minute

	// A third rollback within loopTime is one too many.
	loopTime  = time.Hour
	loopLimit = 3

	// coolDown before a revision can be tried again, which doubles with each attempt.
	coolDown, mostCoolDown = 10 * time.Minute, 6 * time.Hour

	// mostFailed are remembered, each with mostWords of its message.
	mostFailed, mostWords = 10, 240
)

// advance the rollout by one transition, if any is due.
func (s *state) advance(l ledger) *rollout {
	r := &rollout{
		state: s, lc: s.spec.Lifecycle, ledger: l,
		there: s.slots[otherSlot(l.Slot)], evidence: s.evidence(l),
	}

	r.troubled()

	switch back := l.Entered.After(s.clock()); {
	case back && l.standing() == v1alpha1.RolloutStepping:
		_ = r.givenUp() || r.broken()
	case back && (l.standing() == v1alpha1.RolloutPromoting || l.standing() == v1alpha1.RolloutBaking):
		r.takenBack()
	case back:
		// The clock was set back. What time alone decides waits.
		r.wakes(l.Entered)
	case l.standing() == v1alpha1.RolloutPreparing:
		r.prepares()
	case l.standing() == v1alpha1.RolloutMirroring:
		r.mirrors()
	case l.standing() == v1alpha1.RolloutStepping:
		r.steps()
	case l.standing() == v1alpha1.RolloutPromoting:
		r.promotes()
	case l.standing() == v1alpha1.RolloutBaking:
		r.bakes()
	default:
		r.rests()
	}

	return r
}

// to another phase.
func (r *rollout) to(phase v1alpha1.RolloutPhase, reason xpv2.ConditionReason, message string) {
	l := &r.ledger
	from := l.Phase
	if from == "" {
		from = v1alpha1.RolloutStable
	}

	held := l.Held

	l.Epoch++
	l.Phase, l.Reason, l.Held = phase, reason, ""
	l.Entered = r.clock()
	r.message, r.moved = message, true

	if phase == v1alpha1.RolloutHolding {
		l.Held = held
	}

	l.Last = &v1alpha1.RolloutDecision{
		Epoch: l.Epoch, From: from, To: phase, Reason: string(reason), Message: clipped(message), At: metav1.NewTime(l.Entered),
	}
}

// clock to the second, as objects keep it.
func (s *state) clock() time.Time { return s.Now.UTC().Truncate(time.Second) }

// over tells whether a time has passed since something. If not, it is looked at
// again when it has.
func (r *rollout) over(since time.Time, d time.Duration) bool {
	at := since.Add(d)
	if r.Now.Before(at) {
		r.wakes(at)
		return false
	}

	return true
}

func (r *rollout) wakes(at time.Time) {
	if r.until.IsZero() || at.Before(r.until) {
		r.until = at
	}
}

// rests where callers reach one revision, until another is asked for.
func (r *rollout) rests() {
	l := &r.ledger
	gone := !r.there.exists

	switch {
	case r.target == "":
		// What it is made of may be known again in a moment.
	case r.target == l.Revision:
		r.settles(gone)
	case r.refused():
		r.staysBack(gone)
	default:
		if reason, message := r.mayNotBegin(); reason != "" {
			r.holds(v1alpha1.RolloutStable, reason, message)
			return
		}

		// What is in its place ends first.
		if r.there.exists && r.there.revision != r.target {
			r.message = fmt.Sprintf("revision %s starts once the one before it is gone", r.target)
			return
		}

		l.Candidate, l.Previous, l.Weight, l.Evidence = r.target, "", 0, 0
		l.Next, l.NextBy = 0, ""
		r.sizing = r.next()
		r.to(v1alpha1.RolloutPreparing, v1alpha1.ReasonEdited, fmt.Sprintf("replicas of revision %s start, and no caller reaches it", r.target))
		l.Began = l.Entered
	}
}

// settles once what callers have left is gone.
func (r *rollout) settles(gone bool) {
	l := &r.ledger

	switch {
	case l.standing() == v1alpha1.RolloutStable && l.Phase != v1alpha1.RolloutHolding:
		r.experiments()
	case !gone && l.Phase != v1alpha1.RolloutHolding && l.Phase != v1alpha1.RolloutRolledBack:
		r.message = "the revision that callers have left finishes its requests"
	default:
		reason := v1alpha1.ReasonDrained
		if gone && l.Phase != v1alpha1.RolloutRollingBack && l.Phase != v1alpha1.RolloutDraining {
			reason = v1alpha1.ReasonEdited
		}

		l.Candidate, l.Previous = "", ""
		r.to(v1alpha1.RolloutStable, reason, "callers reach revision "+l.Revision)
	}
}

// staysBack while the spec asks for what was rolled back.
func (r *rollout) staysBack(gone bool) {
	f := r.failure(r.target)
	reason := v1alpha1.ReasonRolledBack

	if r.retries(f) {
		reason = v1alpha1.ReasonCoolingDown
		r.wakes(f.RetryAfter.Time)
	}

	message := remedyOf(f)

	// Callers that left it have their requests finished first.
	if l := &r.ledger; (l.Phase != v1alpha1.RolloutRolledBack || l.Reason != reason) && (l.Phase != v1alpha1.RolloutRollingBack || gone) {
		l.Candidate = f.Revision
		r.to(v1alpha1.RolloutRolledBack, reason, message)
	}

	r.message = message
}

// remedyOf a revision that was rolled back.
func remedyOf(f *v1alpha1.FailedRevision) string {
	return fmt.Sprintf("revision %s was rolled back: %s: %s. Correct the spec, or try it again from %s on with spec.lifecycle.retry: %q",
		f.Revision, f.Reason, f.Message, f.RetryAfter.UTC().Format(time.RFC3339), fmt.Sprintf("%s#%d", f.Revision, f.Attempts+1))
}

// refused tells whether the target was rolled back and may not be tried again yet. Who
// asks for another attempt and for its promotion knows what they do.
func (r *rollout) refused() bool {
	f := r.failure(r.target)
	return f != nil && (!r.retries(f) || r.Now.Before(f.RetryAfter.Time) && !names(r.lc.Promote, f.Revision))
}

// retries tells whether the spec asks to try a failed revision again.
func (r *rollout) retries(f *v1alpha1.FailedRevision) bool {
	var n int32
	revision, attempt, _ := strings.Cut(r.lc.Retry, "#")
	_, err := fmt.Sscan(attempt, &n)

	return err == nil && revision == f.Revision && n > f.Attempts
}

func (r *rollout) failure(revision string) *v1alpha1.FailedRevision {
	return r.ledger.failure(revision)
}

// prepares the candidate: its replicas start, and no caller reaches it.
func (r *rollout) prepares() {
	l := &r.ledger
	if r.givenUp() {
		return
	}

	first, promoted := r.next(), l.Experiment == nil && names(r.lc.Promote, l.Candidate)
	if promoted {
		first = 100
	}

	size, copied := first, r.mirrorFirst() && !promoted
	if copied {
		size = max(first, r.lc.Mirror.Percent)
	}

	r.sizing = size

	switch {
	case r.there.exists && r.there.revision != l.Candidate:
		r.message = fmt.Sprintf("revision %s starts once what is in its place is gone", l.Candidate)
	case r.sizeFor(first) == 0:
		r.holds(v1alpha1.RolloutPreparing, v1alpha1.ReasonStepTooFine, r.tooFine(first))
	case r.hampered():
	case copied && !r.offered():
		message, _ := r.mirrorsOffered()
		r.leaves(v1alpha1.ReasonMirrorNotOffered, message)
	case !r.sizedToBegin(size):
		r.resumes(v1alpha1.ReasonNoCapacity, v1alpha1.ReasonStepTooFine)
		r.message = fmt.Sprintf("replicas of revision %s start, and no caller reaches it", l.Candidate)
	case !r.routeTaken():
		r.awaitsRoute(v1alpha1.RolloutPreparing)
	case copied:
		r.to(v1alpha1.RolloutMirroring, v1alpha1.ReasonApplying, fmt.Sprintf("replicas of revision %s serve, and get copies of requests", l.Candidate))
		l.Began = l.Entered
	default:
		if reason, message := r.mayNotGoOn(first, first == 100); reason != "" && !promoted {
			r.holds(v1alpha1.RolloutPreparing, reason, message)
			return
		}

		r.goesOn(first, v1alpha1.ReasonPassed, fmt.Sprintf("replicas of revision %s serve", l.Candidate))
	}
}

// hampered tells whether something keeps replicas of the candidate from serving. Where
// there is no room for them it waits, and what is wrong with themselves ends it.
func (r *rollout) hampered() bool {
	reason, message := r.trouble(otherSlot(r.ledger.Slot))

	switch {
	case outOfRoom(reason):
		r.message = message
		if r.lasts(patience) {
			r.holds(v1alpha1.RolloutPreparing, v1alpha1.ReasonNoCapacity, message)
		}
	case hindered(reason) && r.lasts(lastPatience):
		r.fails(reason, message)
	case r.there.stalled && r.there.revision == r.ledger.Candidate:
		r.fails(v1alpha1.ReasonNeverReady, "its replicas were not ready in the time they have")
	default:
		return false
	}

	return true
}

// sizedToBegin tells whether the candidate is large enough for its first share of
// callers, and could get it.
func (r *rollout) sizedToBegin(weight int32) bool {
	return r.there.runs(r.ledger.Candidate) && r.there.available >= int64(r.sizeFor(weight)) && r.slotServed() && r.bearable(weight)
}

// names tells whether a field of the spec names a revision.
func names(field, revision string) bool { return field != "" && field == revision }

// steps: a share of callers reaches the candidate, and evidence decides.
func (r *rollout) steps() {
	l := &r.ledger
	r.sizing = l.Weight

	switch {
	case r.givenUp(), r.replaced(), r.broken():
	case l.Experiment != nil && l.Evidence == 0:
		r.applies()
	case l.Experiment != nil:
		r.compares()
	case l.Next > 0:
		r.grows()
	case names(r.lc.Promote, l.Candidate):
		r.passes(100, v1alpha1.ReasonPromoted, "spec.lifecycle.promote names it")
	case l.Phase == v1alpha1.RolloutHolding && l.Reason == v1alpha1.ReasonStateLost:
		r.message = fmt.Sprintf("nothing remembers how far revision %s had come: name it in spec.lifecycle.promote or abort", l.Candidate)
	case r.sizeFor(l.Weight) == 0:
		r.holds(v1alpha1.RolloutStepping, v1alpha1.ReasonStepTooFine, r.tooFine(l.Weight))
	case r.resumes(v1alpha1.ReasonStepTooFine):
		// What reached it before was another share.
		l.Evidence, l.Began = 0, l.Entered
	case l.Evidence == 0:
		r.applies()
	default:
		r.weighs()
	}
}

// weighs the evidence.
func (r *rollout) weighs() {
	l := &r.ledger
	judged := r.evidence.passing()
	reason, message := r.unknown()

	if reason == "" && !judged && r.over(l.Began, r.lc.Deadline.Duration) {
		reason = v1alpha1.ReasonInconclusive
		message = "too little is known after the deadline of the step: send more requests, lower spec.lifecycle.minSamples, " +
			"or name the revision in spec.lifecycle.promote or abort"
	}

	if reason != "" {
		r.lacks(reason, message)
		return
	}

	if r.resumes(v1alpha1.ReasonMetricsUnavailable) {
		return
	}

	soak, mirrors := r.lc.Soak.Duration, l.standing() == v1alpha1.RolloutMirroring
	if mirrors {
		soak = r.lc.Mirror.For.Duration
	}

	if soaked := r.over(l.Began, soak); !judged || !soaked {
		if mirrors {
			r.message = r.copies()
			return
		}

		r.message = fmt.Sprintf("%d %% of callers may reach revision %s, and evidence is being gathered", l.Weight, l.Candidate)
		return
	}

	next := r.next()
	if reason, message := r.mayNotGoOn(next, !mirrors || next == 100); reason != "" {
		r.holds(l.standing(), reason, message)
		return
	}

	r.passes(next, v1alpha1.ReasonPassed, r.evidence.summary())
}

// passes for the next share of callers, which goes there once it is large enough.
func (r *rollout) passes(next int32, reason xpv2.ConditionReason, why string) {
	l := &r.ledger
	r.sizing = next

	if r.sized(next) {
		r.goesOn(next, reason, why)
		return
	}

	l.Next, l.NextBy = next, reason
	r.to(v1alpha1.RolloutStepping, reason, fmt.Sprintf("replicas of revision %s start for %d %% of callers: %s", l.Candidate, next, why))
}

// grows for a share of callers that the candidate was found good for.
func (r *rollout) grows() {
	l := &r.ledger
	r.sizing = l.Next
	promoted := names(r.lc.Promote, l.Candidate)

	if l.NextBy == v1alpha1.ReasonPromoted && !promoted {
		l.Next, l.NextBy = 0, ""

		// Nobody reaches it yet, as when it was promoted while it got copies of requests.
		if l.Weight == 0 {
			l.Evidence = 0
			r.to(v1alpha1.RolloutPreparing, v1alpha1.ReasonResumed, "spec.lifecycle.promote does not name it any more")

			return
		}

		r.to(v1alpha1.RolloutStepping, v1alpha1.ReasonResumed, "spec.lifecycle.promote does not name it any more")

		return
	}

	reason, message := r.mayNotGoOn(l.Next, true)
	if promoted {
		reason = ""
	}

	full, why := r.trouble(otherSlot(l.Slot))

	switch sized := r.sized(l.Next); {
	case sized && reason != "":
		r.holds(v1alpha1.RolloutStepping, reason, message)
	case sized:
		r.goesOn(l.Next, l.NextBy, "its replicas serve")
	case outOfRoom(full) && r.lasts(patience):
		r.holds(v1alpha1.RolloutStepping, v1alpha1.ReasonNoCapacity, why)
	default:
		message = fmt.Sprintf("replicas of revision %s start for %d %% of callers", l.Candidate, l.Next)
		if r.message = message; l.Phase == v1alpha1.RolloutHolding {
			r.to(v1alpha1.RolloutStepping, l.NextBy, message)
		}
	}
}

// applies a weight: evidence counts from when it is seen to be in force.
func (r *rollout) applies() {
	l := &r.ledger

	if !r.weighted() {
		r.awaitsShare()
		return
	}

	message := fmt.Sprintf("%d %% of callers may reach revision %s, and evidence is being gathered", l.Weight, l.Candidate)
	r.to(v1alpha1.RolloutStepping, v1alpha1.ReasonSoaking, message)
	l.Evidence, l.Began = l.Epoch, l.Entered

	if t := l.Experiment; t != nil {
		l.Experiment = &trying{ID: t.ID, Key: t.Key, Started: l.Entered}
	}
}

// goesOn to a greater share of callers, or to all of them.
func (r *rollout) goesOn(weight int32, reason xpv2.ConditionReason, why string) {
	l := &r.ledger
	l.Weight, l.Evidence = weight, 0
	l.Next, l.NextBy = 0, ""

	if weight < 100 {
		r.to(v1alpha1.RolloutStepping, reason, fmt.Sprintf("%d %% of callers may reach revision %s: %s", weight, l.Candidate, why))
		l.Began = l.Entered

		return
	}

	l.Slot, l.Revision, l.Previous = otherSlot(l.Slot), l.Candidate, l.Revision
	l.Since = r.clock()
	r.to(v1alpha1.RolloutPromoting, reason, fmt.Sprintf("all callers go to revision %s: %s", l.Candidate, why))
	l.Began = l.Entered
}

// promotes: all callers are sent to the candidate.
func (r *rollout) promotes() {
	l := &r.ledger
	if r.takenBack() {
		return
	}

	if !r.weighted() {
		r.message = fmt.Sprintf("what sends all callers to revision %s is not in force yet", l.Candidate)
		return
	}

	r.to(v1alpha1.RolloutBaking, v1alpha1.ReasonSoaking,
		fmt.Sprintf("all callers reach revision %s, and %s stays to take them back", l.Candidate, l.Previous))
	l.Evidence, l.Began = l.Epoch, l.Entered
}

// bakes: all callers reach the candidate, and the revision before it stays.
func (r *rollout) bakes() {
	l := &r.ledger
	if r.takenBack() {
		return
	}

	if reason, message := r.unknown(); reason != "" && r.lc.Bake.Duration > 0 && !names(r.lc.Promote, l.Candidate) {
		r.lacks(reason, message)
		return
	}

	if r.resumes(v1alpha1.ReasonMetricsUnavailable) {
		return
	}

	if r.over(l.Began, r.lc.Bake.Duration) {
		r.ends(v1alpha1.ReasonBaked, fmt.Sprintf("revision %s has baked: %s ends", l.Candidate, l.Previous))
		return
	}

	r.message = fmt.Sprintf("all callers reach revision %s, and %s stays to take them back", l.Candidate, l.Previous)
}

// ends the revision before the candidate, which is trusted from now on.
func (r *rollout) ends(reason xpv2.ConditionReason, message string) {
	l := &r.ledger
	l.Failed = l.without(l.Candidate)
	r.to(v1alpha1.RolloutDraining, reason, message)
}
