// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"time"

	"github.com/capstan-dev/capstan/function/compose"
)

// A ledger says which revision callers reach and where. It is an annotation of
// the Algorithm's Service, so that it is written together with the selector that
// sends callers there: the effect and the memory of it cannot come apart.
type ledger struct {
	// Slot that callers reach.
	Slot string `json:"slot"`

	// Revision that serves there. Empty until the first one does.
	Revision string `json:"revision,omitempty"`

	// Since tells when callers were sent to the slot from the other one.
	Since time.Time `json:"since,omitzero"`
}

// recall the ledger. Where the Service is gone, the status of the Algorithm says
// the same, and where that is gone too, the slot with the most pods that serve is
// the one that callers can have reached. When they went there is then unknown: the
// other slot gets all the time it could need.
func (s *state) recall() ledger {
	if l, ok := written(s.Observed[nameService]); ok {
		// A clock gone wrong wrote that.
		if l.Since.After(s.Now) {
			l.Since = s.Now.UTC().Truncate(time.Second)
		}

		return l
	}

	l := s.guess()
	if s.slots[otherSlot(l.Slot)].total > 0 {
		l.Since = s.Now.UTC().Truncate(time.Second)
	}

	return l
}

func (s *state) guess() ledger {
	known := compose.Map(s.Composite.Map(), "status", "revision")
	if slot, revision := compose.Text(known, "slot"), compose.Text(known, "live"); isSlot(slot) && revision != "" {
		return ledger{Slot: slot, Revision: revision}
	}

	l := ledger{Slot: slotA}
	if s.slots[slotB].available > s.slots[slotA].available {
		l.Slot = slotB
	}

	if r := s.slots[l.Slot]; r.available > 0 {
		l.Revision = r.revision
	}

	return l
}

func written(service compose.Object) (ledger, bool) {
	if service == nil {
		return ledger{}, false
	}

	var l ledger

	text := compose.Text(service.Map(), "metadata", "annotations", annotationLedger)
	if err := json.Unmarshal([]byte(text), &l); err != nil || !isSlot(l.Slot) {
		return ledger{}, false
	}

	return l, true
}

// text of the ledger.
func (l ledger) text() string {
	raw, _ := json.Marshal(l) //nolint:errchkjson // Text and a time of this century always marshal.
	return string(raw)
}

func isSlot(slot string) bool { return slot == slotA || slot == slotB }
