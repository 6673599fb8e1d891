// SPDX-License-Identifier: Apache-2.0

package members

import "time"

const (
	// AnnotationFence of the ConfigMap <scope>-config is how the fence of that generation
	// is decided, as the JSON of a FenceRecord.
	AnnotationFence = "capstan.dev/fence"

	// AnnotationDecides of a pod, with the value "true", says that its member takes part in
	// the decision. Members of earlier images do not.
	AnnotationDecides = "capstan.dev/member-decides"

	// AnnotationYields of a pod, with the value "true", says that its member also stops for
	// a generation that has other data, as a restore makes it. Members of earlier images stop
	// only for a copy of their own data that follows them.
	AnnotationYields = "capstan.dev/member-yields"
)

// States of a FenceRecord, in the order in which they come. Committed and Withdrawn are
// final: exactly one of them is ever written for a fence.
const (
	// FenceOffered: the later generation is ready, and will ask here before it serves.
	FenceOffered = "Offered"
	// FenceHeld: the former generation stops, or has stopped, and waits until Until.
	FenceHeld = "Held"
	// FenceCommitted: the later generation serves, and the former stays stopped.
	FenceCommitted = "Committed"
	// FenceWithdrawn: the former generation serves, and the later one never will.
	FenceWithdrawn = "Withdrawn"
)

// FenceRecord decides which of two generations of a Database takes writes. Members change
// it only as they have read it, so that one request wins.
type FenceRecord struct {
	// ID of the upgrade or the restore, and of its fence.
	ID string `json:"id"`

	// To is the label of the later generation's pods, such as orders-db.g2.
	To string `json:"to"`

	// State that it is in.
	State string `json:"state"`

	// Until is when the former generation withdraws a fence that is held.
	Until *time.Time `json:"until,omitempty"`

	// Why the fence was withdrawn.
	Why string `json:"why,omitempty"`
}
