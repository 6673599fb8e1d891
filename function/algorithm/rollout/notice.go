// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A NoticeEvent is what a notice is about.
type NoticeEvent string

// What notices are about.
const (
	NoticeStarted    NoticeEvent = "Started"
	NoticeHeld       NoticeEvent = "Held"
	NoticePromoted   NoticeEvent = "Promoted"
	NoticeRolledBack NoticeEvent = "RolledBack"
	NoticeEnded      NoticeEvent = "Ended"
)

// A Notice is a transition that is reported to people, as the ledger remembers it until it is delivered.
type Notice struct {
	Epoch    int64                `json:"epoch"`
	Event    NoticeEvent          `json:"event"`
	Revision string               `json:"revision,omitempty"`
	Weight   int32                `json:"weight,omitempty"`
	Reason   xpv2.ConditionReason `json:"reason"`
	Message  string               `json:"message"`
	At       time.Time            `json:"at"`
}

// Key of a notice.
func (n Notice) Key() string { return fmt.Sprintf("transition-%d", n.Epoch) }

// noticeOf a transition from a standing phase, or empty.
func noticeOf(l, before Ledger) NoticeEvent {
	was, is := before.Standing(), l.Standing()
	switch {
	case l.Phase == v1alpha1.RolloutHolding:
		return NoticeHeld
	case is == was:
		return ""
	case is == v1alpha1.RolloutPreparing && !before.Testing():
		return NoticeStarted
	case is == v1alpha1.RolloutPromoting:
		return NoticePromoted
	case is == v1alpha1.RolloutRollingBack:
		return NoticeRolledBack
	case is == v1alpha1.RolloutDraining:
		return NoticeEnded
	default:
		return ""
	}
}

// NoticeKey is the key of what is observed of a notice by way of a hook: each hook delivers every notice.
func NoticeKey(hook string, n Notice) string { return hook + "/" + n.Key() }
