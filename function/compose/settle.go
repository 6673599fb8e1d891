// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Settle lets a plan change the conditions of a composite resource or the rest of its status, but not both in one pass: while
// conditions change, the rest stays as it was observed. The next pass follows at once, since the change wakes the composite
// resource up.
//
// Crossplane 2.4 writes the two one after the other: first the status together with the conditions as they were when the pass
// began, then the conditions as they are now. If both writes change something, the first wakes up the next pass before Crossplane
// has seen the second. That pass puts the old conditions back, corrects them, and so wakes up the next one: a loop of several
// passes a second that ends by luck, or when Crossplane no longer listens to the composite resource for five minutes (its
// condition Responsive, then False).
//
// Urgent status is not held back: it is what a later pass could not find out again.
func Settle(r Request, p *Plan, urgent bool) {
	xr := r.Composite.Map()
	before := Map(xr, "status")
	if len(before) == 0 || urgent || !changesConditions(xr, p) {
		return
	}
	kept := maps.Clone(before)
	delete(kept, "conditions")
	p.Status = kept
	p.TTL = min(p.TTL, ttlAsking)
}

// changesConditions reports whether Crossplane will write conditions after a pass with this plan: ours, its own Ready, or the
// generation they speak of.
func changesConditions(xr map[string]any, p *Plan) bool {
	ready := xpv2.Condition{Type: xpv2.TypeReady, Status: corev1.ConditionFalse, Reason: xpv2.ReasonCreating}
	if p.Ready {
		ready.Status, ready.Reason = corev1.ConditionTrue, xpv2.ReasonAvailable
	}
	generation := Number(xr, 0, "metadata", "generation")
	if synced := Condition(xr, string(xpv2.TypeSynced)); Number(synced, generation, "observedGeneration") != generation {
		return true
	}
	for _, c := range append([]xpv2.Condition{ready}, p.Conditions...) {
		o := Condition(xr, string(c.Type))
		if o["status"] != string(c.Status) || o["reason"] != string(c.Reason) || Text(o, "message") != c.Message {
			return true
		}
	}
	return false
}
