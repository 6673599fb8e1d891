// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/observed"
)

// A Slot is what is observed of one slot.
type Slot struct {
	observed.Deployment

	// Revision that runs there, and whether it has served before.
	Revision string
	Served   bool

	// Needs is the number of replicas that its load asks for, as far as its autoscaler knows, or 0.
	Needs float64

	// Trouble that blocks its pods, as reason and message, or empty, where its cause lies, how many pods have it, and when the
	// youngest of these was created.
	Trouble        xpv2.ConditionReason
	TroubleMessage string
	TroubleCause   observev1alpha1.FindingCause
	TroubleExtent  observev1alpha1.FindingExtent
	TroubleSince   time.Time

	// HasService reports whether the Service of the slot exists.
	HasService bool

	// Routed is what the route says of that Service: whether it names it, the weight that it gives to it, whether some requests
	// go there by a header or cookie, and whether it gets copies of requests.
	Routed struct {
		Named, Chosen, Mirrored bool
		Weight                  int64
	}
}

// sizeAsIs is the number of pods that are desired now.
func (s Slot) sizeAsIs() *int32 {
	return new(int32(s.Size)) //nolint:gosec // The API server keeps it in an int32.
}

// serving replicas that stay, when one that does not serve goes first.
func (s Slot) serving() int64 { return min(s.Available, s.Size) }

// holds is the number of replicas that a slot has room for.
func (s Slot) holds() int64 { return max(s.Size, s.Total) }

// shrunk slot on the way to a size: so many of its replicas have to stay that serve, and so many of them can be spared.
func (s Slot) shrunk(to, stay, spare int64) int64 {
	if s.Size <= to {
		return s.Size
	}
	n := s.serving()
	return max(to, n-max(min(n-stay, spare), 0))
}

// Runs reports whether the pods are of a revision, and no others.
func (s Slot) Runs(revision string) bool { return s.Current() && s.Revision == revision }
