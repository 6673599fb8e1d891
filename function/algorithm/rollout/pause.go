// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// pausedOnRequest holds a candidate at its share of requests for as long as the spec asks for it. First that share has to be in
// force, so that evidence of failure is gathered in the meantime. Replicas that are exchanged one by one take their requests with
// them, and an exchange is completed.
func pausedOnRequest(f Facts, l Ledger) (transition, bool) {
	standing := l.Standing()
	exchanges := l.Next > 0 && f.capacity(l) == v1alpha1.CapacityBorrow
	counts := l.Evidence != 0 || standing == v1alpha1.RolloutPreparing
	switch {
	case l.Experiment != nil:
		return transition{}, false
	case !f.Requests.Pause || f.promotes(l.Candidate):
		return unpaused(l)
	case exchanges || !counts:
		return transition{}, false
	}
	message := fmt.Sprintf("spec.rollout.pause holds the rollout, and %s may reach revision %s: remove pause to continue, or name the revision in spec.rollout.promote or abort",
		f.shareInWords(l, l.Weight), l.Candidate)
	if standing == v1alpha1.RolloutMirroring {
		message = fmt.Sprintf("spec.rollout.pause holds the rollout, and %s: remove pause to continue", f.copies(l))
	}
	return hold(l, standing, v1alpha1.ReasonRolloutPaused, message), true
}

// bakesPaused keeps the revision before the candidate ready for as long as the spec asks for it.
func bakesPaused(f Facts, l Ledger) (transition, bool) {
	if !f.Requests.Pause {
		return unpaused(l)
	}
	return hold(l, v1alpha1.RolloutBaking, v1alpha1.ReasonRolloutPaused, bakes(l)+": spec.rollout.pause holds the rollout, remove it to continue"), true
}

// unpaused: the step has all of its time again, and what was counted in the meantime counts.
func unpaused(l Ledger) (transition, bool) {
	t := resume(l)
	t.change = func(l Ledger) Ledger { return l.growing(l.Next, l.NextBy).began() }
	return t, l.holdsFor(v1alpha1.ReasonRolloutPaused)
}
