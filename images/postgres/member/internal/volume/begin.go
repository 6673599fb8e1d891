// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reasons to wait before a Database begins anew.
const (
	// WaitingForFormerLeader: the data is a replica's, or older than another member's.
	WaitingForFormerLeader = "WaitingForFormerLeader"
	// WaitingForMembers: others have not told yet what is on their volumes.
	WaitingForMembers = "WaitingForMembers"
)

// Wait is why a member must not begin yet. Unlike a Problem it passes by itself when the others come.
type Wait struct { //nolint:errname // It is no fault.
	// Reason in one word, and Message with the cause and what helps.
	Reason, Message string
}

// Error is the reason and the message.
func (w *Wait) Error() string { return w.Reason + ": " + w.Message }

// MayBegin decides whether a member may begin while nobody is known to have led the Database: it is new, or its objects were
// removed and its volumes are taken back. It returns nil when it may.
//
// Patroni alone would let the first member that starts have its way: one with an empty volume would make a new database beside
// the data of the others, and one that led long ago would take the others back to that time. So the data that is the most recent
// begins, and that is known once all members have told what they hold. What members hold is by their names; expected are those
// that there should be.
func MayBegin(self string, own Content, told map[string]Content, expected []string) *Wait {
	var missing []string
	for _, name := range expected {
		if _, ok := told[name]; !ok && name != self {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)

	best, bestName := own, self
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if c := told[name]; name != self && newer(c, best) {
			best, bestName = c, name
		}
	}
	switch {
	case bestName != self:
		return &Wait{WaitingForFormerLeader, fmt.Sprintf("nobody leads, and member %s has more recent data: it begins, and this one follows it", bestName)}
	case !own.Empty && !own.Led && len(missing) == 0:
		return &Wait{WaitingForFormerLeader, "nobody leads, and no member has the data of the one that led last: bring its volume back. " + byHand(own)}
	case len(missing) > 0:
		message := fmt.Sprintf("nobody leads, and it is not known which member has the most recent data before %s told: ", strings.Join(missing, ", "))
		if own.Empty {
			return &Wait{WaitingForMembers, message + "make room for their pods"}
		}
		return &Wait{WaitingForMembers, message + "make room for their pods. " + byHand(own)}
	}
	return nil
}

// byHand says how a person lets a Database begin whose most recent data is lost.
func byHand(own Content) string {
	return fmt.Sprintf("Only if that data is lost for good, accept the loss and let the most recent of the others lead: "+
		"annotate the ConfigMap that ends with -config with initialize=%s", own.System)
}

// newer tells whether data is more recent than other data. Data is more recent than none. A later timeline is, for every change
// of the lead begins one. Within a timeline the one that led is: what it wrote is what the others have a part of.
func newer(a, b Content) bool {
	switch {
	case a.Empty || b.Empty:
		return !a.Empty && b.Empty
	case a.Timeline != b.Timeline:
		return a.Timeline > b.Timeline
	}
	return a.Led && !b.Led
}
