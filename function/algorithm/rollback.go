// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// givenUp tells whether the spec does not want the candidate any more, or somebody
// aborts it.
func (r *rollout) givenUp() bool {
	l := &r.ledger

	switch {
	case l.Experiment != nil:
		return r.experimentGivenUp()
	case names(r.lc.Abort, l.Candidate):
		r.fails(v1alpha1.ReasonAborted, "spec.lifecycle.abort names it")
	case r.target == "" || r.target == l.Candidate:
		// What it is made of may be known again in a moment.
		return false
	case r.target == l.Revision:
		r.leaves(v1alpha1.ReasonReverted, fmt.Sprintf("the spec asks for revision %s again", l.Revision))
	default:
		r.leaves(v1alpha1.ReasonSuperseded, fmt.Sprintf("the spec asks for revision %s instead of %s", r.target, l.Candidate))
	}

	return true
}

// replaced tells whether another revision runs where the candidate should: somebody
// wrote over what is remembered. Nothing of it is known.
func (r *rollout) replaced() bool {
	l := &r.ledger
	if !r.there.exists || r.there.revision == l.Candidate {
		return false
	}

	r.leaves(v1alpha1.ReasonStateLost, "another revision runs in the place of "+l.Candidate)

	return true
}

// broken tells whether the candidate fails those that reach it.
func (r *rollout) broken() bool {
	l := &r.ledger
	reason, message := r.fault(otherSlot(l.Slot), l.Candidate)

	if reason == "" {
		return false
	}

	r.fails(reason, message)

	return true
}

// fault of the candidate in a slot.
func (r *rollout) fault(slot, candidate string) (xpv2.ConditionReason, string) {
	there := r.slots[slot]
	reason, message := r.trouble(slot)

	switch failing := r.evidence.failing(); {
	case reason == v1alpha1.ReasonCrashLooping:
		return reason, message
	case !there.exists || there.revision == candidate && there.noticed && there.available == 0:
		return v1alpha1.ReasonNotServing, "none of its replicas serves any more"
	case failing == nil:
		return "", ""
	case failing.Name == checkOfDrift:
		return v1alpha1.ReasonDrifted, r.evidence.tells(failing)
	default:
		return v1alpha1.ReasonMetricFailed, r.evidence.tells(failing)
	}
}

// fails the candidate before all callers reach it.
func (r *rollout) fails(reason xpv2.ConditionReason, message string) {
	candidate := r.ledger.Candidate

	// An arm that fails says nothing against a rollout of the same.
	if t := r.ledger.Experiment; t != nil {
		if reason == v1alpha1.ReasonMetricFailed {
			reason = v1alpha1.ReasonGuardrailViolated
		}

		r.leaves(reason, fmt.Sprintf("experiment %s: arm B, revision %s: %s", t.ID, candidate, message))

		return
	}

	r.leaves(reason, fmt.Sprintf("revision %s is rolled back: %s", candidate, message))
	r.condemns(candidate, reason, message)
}

// leaves the candidate: no caller reaches it any more.
func (r *rollout) leaves(reason xpv2.ConditionReason, message string) {
	l := &r.ledger
	if l.Weight > 0 {
		l.Since = r.clock()
	}

	l.Weight, l.Evidence = 0, 0
	l.Next, l.NextBy = 0, ""
	r.sizing = 0

	if l.Experiment != nil {
		r.concludes(reason, message)
	}

	r.to(v1alpha1.RolloutRollingBack, reason, message)
}

// condemns a revision: it is not tried again by itself.
func (r *rollout) condemns(revision string, reason xpv2.ConditionReason, message string) {
	l, at := &r.ledger, r.clock()

	attempts := int32(1)
	if f := r.failure(revision); f != nil {
		attempts = f.Attempts + 1
	}

	cool := mostCoolDown
	if shift := attempts - 1; shift < 6 { //nolint:mnd // Beyond it the doubled time is above the greatest.
		cool = min(coolDown<<shift, mostCoolDown)
	}

	failed := []v1alpha1.FailedRevision{{
		Revision: revision, Reason: string(reason), Message: clipped(message), At: metav1.NewTime(at),
		Attempts: attempts, RetryAfter: metav1.NewTime(at.Add(cool)),
	}}

	for _, f := range l.Failed {
		if f.Revision != revision && len(failed) < mostFailed {
			failed = append(failed, f)
		}
	}

	l.Failed = failed
	l.Rollbacks = append([]time.Time{at}, l.Rollbacks[:min(len(l.Rollbacks), loopLimit-1)]...)
}

// takenBack tells whether callers are taken back from the candidate that all of them
// reach, or should be, or whether its time to bake ends for another reason.
func (r *rollout) takenBack() bool {
	l := &r.ledger
	reason, message := r.fault(l.Slot, l.Candidate)
	reverted := r.target == l.Previous && r.target != ""

	if names(r.lc.Abort, l.Candidate) {
		reason, message = v1alpha1.ReasonAborted, "spec.lifecycle.abort names it"
	}

	switch {
	case r.there.exists && r.there.revision != l.Previous:
		r.to(v1alpha1.RolloutDraining, v1alpha1.ReasonStateLost, fmt.Sprintf("revision %s is not there any more to take callers back", l.Previous))
	case reason == "" && !reverted && r.target != "" && r.target != l.Candidate:
		r.to(v1alpha1.RolloutDraining, v1alpha1.ReasonSuperseded,
			fmt.Sprintf("the spec asks for revision %s before %s has baked", r.target, l.Candidate))
	case reason == "" && !reverted:
		return false
	case r.there.available == 0:
		// Where callers would go back to must be able to take them.
		r.message = fmt.Sprintf("revision %s fails, and no replica of %s can take callers back yet: %s", l.Candidate, l.Previous, message)
	default:
		r.goesBack(reason, message)
	}

	return true
}

// goesBack with all callers to the revision before the candidate.
func (r *rollout) goesBack(reason xpv2.ConditionReason, message string) {
	l := &r.ledger
	candidate := l.Candidate
	l.Slot, l.Revision, l.Previous = otherSlot(l.Slot), l.Previous, ""
	l.Since, l.Weight, l.Evidence = r.clock(), 0, 0
	l.Next, l.NextBy = 0, ""

	if reason == "" {
		r.to(v1alpha1.RolloutRollingBack, v1alpha1.ReasonReverted, fmt.Sprintf("the spec asks for revision %s again", l.Revision))
		return
	}

	r.to(v1alpha1.RolloutRollingBack, reason, fmt.Sprintf("revision %s is rolled back: %s", candidate, message))
	r.condemns(candidate, reason, message)
}

// clipped message, for what is kept on objects.
func clipped(message string) string {
	if words := []rune(message); len(words) > mostWords {
		return string(words[:mostWords-1]) + "…"
	}

	return message
}
