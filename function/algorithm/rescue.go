// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// rescue callers from a candidate that fails while the spec cannot be carried out:
// what is wrong with the spec says nothing about them. They go back to the revision
// before, and nothing else is changed.
func rescue(s *state) error {
	l := s.ledger
	r := &rollout{
		state: s, lc: &v1alpha1.Lifecycle{}, ledger: l,
		there: s.slots[otherSlot(l.Slot)], evidence: s.gathered(l),
	}

	slot := otherSlot(l.Slot)
	if l.Previous != "" {
		slot = l.Slot
	}

	reason, message := r.fault(slot, l.Candidate)

	switch l.standing() {
	case v1alpha1.RolloutStepping:
		if reason != "" && l.Weight > 0 {
			r.fails(reason, message)
		}
	case v1alpha1.RolloutPromoting, v1alpha1.RolloutBaking:
		if reason != "" && r.there.revision == l.Previous && r.there.available > 0 {
			r.goesBack(reason, message)
		}
	default:
	}

	if r.moved {
		s.decision.rollout, s.decision.ledger = r, r.ledger
		s.redirect(r.ledger)
	}

	return nil
}

// gathered evidence of the ledger's epoch, whatever was asked.
func (s *state) gathered(l ledger) evidence {
	var e evidence

	if s.Observed[nameAnalysis] == nil {
		return e
	}

	seen := compose.Map(s.Observed[nameAnalysis].Map(), "status", "atProvider", "canary")
	if l.Evidence == 0 || compose.Number(seen, 0, "epoch") != l.Evidence {
		return e
	}

	e.experiment = compose.Map(seen, "experiment")

	for _, v := range compose.List(seen, "checks") {
		m, _ := v.(map[string]any)
		e.checks = append(e.checks, evidenceStatus(m))
	}

	return e
}

// redirect kept objects, so that all callers reach the slot of a ledger.
func (s *state) redirect(l ledger) {
	for _, resource := range []string{nameService, nameRoute} {
		d, ok := s.plan.Objects[resource]
		kept, isMap := d.Object.(map[string]any)

		if !ok || !isMap {
			continue
		}

		o := runtime.DeepCopyJSON(kept)
		metadata := compose.Map(o, "metadata")
		if metadata["annotations"] == nil {
			metadata["annotations"] = map[string]any{}
		}

		compose.Map(metadata, "annotations")[annotationLedger] = l.text()

		if selector := compose.Map(o, "spec", "selector"); selector != nil {
			selector[labelSlot] = l.Slot
		}

		if rules := compose.List(o, "spec", "rules"); len(rules) > 0 {
			everybody := rules[len(rules)-1]
			compose.Map(o, "spec")["rules"] = []any{everybody}

			rule, _ := everybody.(map[string]any)
			for _, v := range compose.List(rule, "backendRefs") {
				b, _ := v.(map[string]any)
				b["weight"] = 0.0

				if compose.Text(b, "name") == s.slotServiceName(l.Slot) {
					b["weight"] = 100.0
				}
			}
		}

		d.Object = o
		s.plan.Objects[resource] = d
	}
}
