// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Settle lets a plan change the conditions of a composite resource or the rest of its status, but not both in one pass, unless
// Crossplane writes the status in any case: while conditions change, the rest stays as it was observed. The next pass follows at once,
// since the change wakes the composite resource up.
//
// Crossplane 2.4 writes the two one after the other: first the status together with the conditions as they were when the pass
// began, then the conditions as they are now. If both writes change something, the first wakes up the next pass before Crossplane
// has seen the second. That pass puts the old conditions back, corrects them, and so wakes up the next one: a loop of several
// passes a second that ends by luck, or when Crossplane no longer listens to the composite resource for five minutes (its
// condition Responsive, then False).
//
// Where other objects are referred to, or the spec was edited, the first write wakes up the next pass in any case. So nothing is held
// back there: the rest of the status would take a pass of its own, and wake up another one.
//
// Urgent status is not held back: it is what a later pass could not find out again.
func Settle(r Request, p *Plan, urgent bool) {
	xr := r.Composite.Map()
	before := Map(xr, "status")
	if len(before) == 0 || urgent || refersAnew(r, p) || unanswered(xr) || !changesConditions(xr, p) {
		return
	}
	kept := maps.Clone(before)
	delete(kept, "conditions")
	p.Status = kept
	p.TTL = min(p.TTL, ttlAsking)
}

// Hold back the conditions of a plan that changes composed objects: they stay as they were observed, and follow in the next pass, which
// the changed objects wake up. The rest of the status is written together with the objects. It reports whether it holds any back.
//
// The events of changed objects wake up a pass before Crossplane has seen the conditions that it writes last. That pass would put
// the old ones back, and correct them: a pass more for each change. The same status twice is no change.
//
// Where Crossplane writes conditions in any case, because the spec was edited or other objects are referred to, nothing is held
// back: then the rest waits (see Settle).
func Hold(r Request, p *Plan) bool {
	xr := r.Composite.Map()
	if len(Map(xr, "status")) == 0 || regenerated(xr) || refersAnew(r, p) || !changesConditions(xr, p) {
		return false
	}
	types := make([]xpv2.ConditionType, 0, len(p.Conditions))
	for _, c := range p.Conditions {
		types = append(types, c.Type)
	}
	before := Unchanged(xr, types...)
	if len(before) != len(types) {
		return false // A new one is not kept back.
	}
	p.Conditions, p.Ready = before, IsTrue(xr, xpv2.TypeReady)
	p.TTL = min(p.TTL, ttlAsking)
	return true
}

// refersAnew reports whether a plan has other objects than there are, so that Crossplane changes its references to them: a change of
// the spec.
func refersAnew(r Request, p *Plan) bool {
	for resource, d := range p.Objects {
		if o, ok := d.Object.(Named); r.Observed[resource] == nil && (!ok || !Referenced(r.Composite.Map(), *o.GetKind(), *o.GetName())) {
			return true
		}
	}
	for resource := range r.Observed {
		if _, stays := p.Objects[resource]; !stays {
			return true
		}
	}
	return false
}

// unanswered reports whether the spec was changed since Crossplane wrote whether it listens. It does that first in each pass, together
// with the status.
func unanswered(xr map[string]any) bool {
	generation := Number(xr, 0, "metadata", "generation")
	return Number(Condition(xr, typeResponsive), generation, "observedGeneration") != generation
}

// regenerated reports whether the spec was changed since Crossplane wrote conditions.
func regenerated(xr map[string]any) bool {
	generation := Number(xr, 0, "metadata", "generation")
	return Number(Condition(xr, string(xpv2.TypeSynced)), generation, "observedGeneration") != generation
}

// changesConditions reports whether Crossplane will write conditions after a pass with this plan: ours, its own Ready, or the
// generation they speak of.
func changesConditions(xr map[string]any, p *Plan) bool {
	ready := xpv2.Condition{Type: xpv2.TypeReady, Status: corev1.ConditionFalse, Reason: xpv2.ReasonCreating}
	if p.Ready {
		ready.Status, ready.Reason = corev1.ConditionTrue, xpv2.ReasonAvailable
	}
	if regenerated(xr) {
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
