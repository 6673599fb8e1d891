// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

func mirrorRemoved(f Facts, _ Ledger) (transition, bool) {
	return transition{
		to: v1alpha1.RolloutPreparing, reason: v1alpha1.ReasonEdited, message: "spec.lifecycle.mirrorPercent was removed", change: Ledger.uncounted,
	}, f.Lifecycle.MirrorPercent == nil
}

func mirrorRefused(f Facts, l Ledger) (transition, bool) {
	return leave(f, l, v1alpha1.ReasonMirrorNotOffered, f.MirrorRefused), f.MirrorRefused != ""
}

func mirrorNotInForce(f Facts, l Ledger) (transition, bool) {
	if l.Evidence != 0 || f.routeTaken() && f.idle(l).Routed.Mirrored {
		return transition{}, false
	}
	return awaitRoute(f, l, v1alpha1.RolloutMirroring), true
}

func mirrorInForce(f Facts, l Ledger) (transition, bool) {
	return transition{
		to: v1alpha1.RolloutMirroring, reason: v1alpha1.ReasonSoaking, message: f.copies(l), change: Ledger.counting,
	}, l.Evidence == 0
}

// copies that reach the candidate, in words.
func (f Facts) copies(l Ledger) string {
	return fmt.Sprintf("copies of %d %% of requests reach revision %s, whose answers no client gets, and evidence is being gathered",
		*f.Lifecycle.MirrorPercent, l.Candidate)
}
