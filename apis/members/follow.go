// SPDX-License-Identifier: Apache-2.0

package members

// States of a standby cluster.
const (
	// FollowCaughtUp: all that the archive has is replayed.
	FollowCaughtUp = "CaughtUp"
	// FollowBehind: for minutes the archive has had more than what is replayed.
	FollowBehind = "Behind"
	// FollowUnreachable: the archive cannot be read.
	FollowUnreachable = "Unreachable"
	// FollowReplaced: the primary has another archive since a restore or an upgrade.
	FollowReplaced = "Replaced"
	// FollowSecondPrimary: the former primary archived more after this Database was promoted.
	FollowSecondPrimary = "SecondPrimary"
)

// FollowReport is what the leader reports of the archive that its Database follows, or
// followed before it was promoted.
type FollowReport struct {
	// State: CaughtUp, Behind, Unreachable, Replaced or SecondPrimary.
	//
	// +optional
	State string `json:"state,omitempty"`

	// Message says more about the state.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Stanza that is followed.
	//
	// +optional
	Stanza string `json:"stanza,omitempty"`

	// Active reports that the archive grew within the last two minutes: the primary
	// runs.
	//
	// +optional
	Active bool `json:"active,omitempty"`

	// ReplayedTo is when the last transaction was committed that is replayed, in RFC
	// 3339. It is at most five minutes old while the state stays.
	//
	// +optional
	ReplayedTo string `json:"replayedTo,omitempty"`
}
