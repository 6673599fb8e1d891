// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/members"
)

// Wait is why a member must not begin yet. Unlike a Problem it passes by itself when the others come.
type Wait struct { //nolint:errname // It is no fault.
	// Reason in one word, and Message with the cause and what helps.
	Reason, Message string
}

func (w *Wait) Error() string { return w.Reason + ": " + w.Message }

// Content is what a volume holds, as far as it matters for which member may begin.
type Content struct {
	// Empty volumes have no data at all.
	Empty bool `json:"empty,omitempty"`
	// It reports whether PostgreSQL was the leader when it last ran on this data; else it was a standby.
	Led bool `json:"led,omitempty"`
	// Timeline of the data; each promotion begins the next.
	Timeline int64 `json:"timeline,omitempty"`
	// Position in the write-ahead log up to which the data is known to be whole, as in 0/3000148.
	Position string `json:"position,omitempty"`
	// System identifier that PostgreSQL made with the data.
	System string `json:"system,omitempty"`
	// Clean reports whether PostgreSQL was the leader and was shut down in good order.
	Clean bool `json:"-"`
}

// MayBegin decides whether a member may begin while there is no record of a leader of the Database: it is new, or its objects
// were removed and its volumes are reused. It returns nil when the member may begin.
//
// Patroni alone would let the first member that starts decide. A member with an empty volume would make a new database beside the
// data of the others. A member that was the leader long ago would take the others back to that time. So the member with the most
// recent data begins. All members have to report what they hold before that member is known. What members hold is by their names;
// expected are the names of the members that there should be.
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
		return &Wait{members.ReasonWaitingForFormerLeader, fmt.Sprintf("there is no leader, and member %s has more recent data: it begins, and this one follows it", bestName)}
	case !own.Empty && !own.Led && len(missing) == 0:
		return &Wait{members.ReasonWaitingForFormerLeader, "there is no leader, and no member has the data of the last leader: bring its volume back. " + byHand(own)}
	case len(missing) > 0:
		message := fmt.Sprintf("there is no leader, and the member with the most recent data is unknown without reports of %s: ", strings.Join(missing, ", "))
		if own.Empty {
			return &Wait{members.ReasonWaitingForMembers, message + "make room for their pods"}
		}
		return &Wait{members.ReasonWaitingForMembers, message + "make room for their pods. " + byHand(own)}
	}
	return nil
}

// byHand says how a person lets a Database begin whose most recent data is lost.
func byHand(own Content) string {
	return fmt.Sprintf("Only if that data is lost for good, accept the loss and let the most recent of the others lead: "+
		"annotate the ConfigMap that ends with -config with initialize=%s", own.System)
}

// newer reports whether data is more recent than other data. Data is more recent than none. A later timeline is more recent,
// because each promotion begins one. Within a timeline the data of the leader is: the others have a part of what it wrote.
func newer(a, b Content) bool {
	switch {
	case a.Empty || b.Empty:
		return !a.Empty && b.Empty
	case a.Timeline != b.Timeline:
		return a.Timeline > b.Timeline
	}
	return a.Led && !b.Led
}
