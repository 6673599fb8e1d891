// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"github.com/capstan-dev/capstan/function/compose"
)

// An Algorithm has two slots. Callers reach one of them, the live one. A new
// revision starts in the other, the idle one, and callers go over to it once it
// can serve them. Then the slots have changed their parts, and no pod was started
// again for it.
const (
	slotA = "a"
	slotB = "b"
)

func otherSlot(slot string) string {
	if slot == slotA {
		return slotB
	}

	return slotA
}

// Names of the objects of a slot within the composition.
func deploymentOf(slot string) string { return "deployment-" + slot }
func serviceOf(slot string) string    { return "service-" + slot }
func autoscalerOf(slot string) string { return "hpa-" + slot }

// slotName of the objects of a slot.
func (s *state) slotName(slot string) string { return compose.Name(s.name, slot) }

// serveSlots tells whether anybody needs the Services of slots: a Gateway, or
// Prometheus.
func (s *state) serveSlots() bool { return s.spec.Route != nil || s.measures() }

// slotServiceName is longer than that, because the Service of an Algorithm has its
// name: reco and reco-a must get along in one namespace.
func (s *state) slotServiceName(slot string) string { return compose.Name(s.name, "slot", slot) }

// slotLabels of the objects of a slot, and of its pods.
func (s *state) slotLabels(slot string) map[string]string {
	l := s.labels()
	l[labelSlot] = slot

	return l
}

// selector of the pods of a slot.
func (s *state) selector(slot string) map[string]string {
	return map[string]string{labelAlgorithm: s.name, labelSlot: slot}
}

// slots runs what was decided about the revisions: the live one, and beside it
// the one that comes or the one that goes.
func slots(s *state) error {
	for _, r := range []run{s.decision.live, s.decision.beside} {
		if r.revision == "" {
			continue
		}

		s.deployment(r)
	}

	// Both or none, whatever runs: a Service or backend that came and went with each
	// revision would wake the Algorithm up several times for it, and its Gateway too.
	if s.serveSlots() {
		s.slotService(slotA)
		s.slotService(slotB)
	}

	return s.autoscaler(s.decision.live.slot)
}
