// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// pausedOnRequest holds a candidate at its share of requests for as long as the spec or a Signal asks for it. First that share has to be in
// force, so that evidence of failure is gathered in the meantime. Replicas that are exchanged one by one take their requests with
// them, and an exchange is completed.
func pausedOnRequest(f Facts, l Ledger) (transition, bool) {
	standing := l.Standing()
	exchanges := l.Next > 0 && f.capacity(l) == v1alpha1.CapacityBorrow
	counts := l.Evidence != 0 || standing == v1alpha1.RolloutPreparing
	by, remedy, end, paused := f.paused()
	switch {
	case l.Experiment != nil:
		return transition{}, false
	case !paused || f.promotes(l.Candidate):
		return unpaused(l)
	case exchanges || !counts:
		return transition{}, false
	}
	message := fmt.Sprintf("%s holds the rollout, and %s may reach revision %s: %s, or name the revision in spec.rollout.promote or abort",
		by, f.shareInWords(l, l.Weight), l.Candidate, remedy)
	if standing == v1alpha1.RolloutMirroring {
		message = fmt.Sprintf("%s holds the rollout, and %s: %s", by, f.copies(l), remedy)
	}
	return holdUntil(l, standing, message, end), true
}

// holdUntil a pause ends, by itself or by a person.
func holdUntil(l Ledger, standing v1alpha1.RolloutPhase, message string, end timers) transition {
	t := hold(l, standing, v1alpha1.ReasonRolloutPaused, message)
	t.timers = t.with(end)
	return t
}

// bakesPaused keeps the revision before the candidate ready for as long as the spec or a Signal asks for it.
func bakesPaused(f Facts, l Ledger) (transition, bool) {
	by, remedy, end, paused := f.paused()
	if !paused {
		return unpaused(l)
	}
	return holdUntil(l, v1alpha1.RolloutBaking, fmt.Sprintf("%s: %s holds the rollout, %s", bakes(l), by, remedy), end), true
}

// unpaused: the step has all of its time again, and what was counted in the meantime counts.
func unpaused(l Ledger) (transition, bool) {
	t := resume(l)
	t.change = func(l Ledger) Ledger { return l.growing(l.Next, l.NextBy).began() }
	return t, l.holdsFor(v1alpha1.ReasonRolloutPaused)
}
