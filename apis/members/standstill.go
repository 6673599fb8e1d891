// SPDX-License-Identifier: Apache-2.0

package members

// Outcomes of a request to stop a member.
const (
	// FenceWaiting: the member still runs.
	FenceWaiting = "Waiting"
	// FenceStopped: the member's server is stopped, and its volume stays as it is.
	FenceStopped = "Stopped"
	// FenceRefused: the member is the leader.
	FenceRefused = "Refused"
	// FenceSkipped: the request was there before the data of the member, or was carried out and removed before.
	FenceSkipped = "Skipped"
)

// MemberFence is a request to keep a member stopped for as long as the request is there.
// Each ID is decided once.
type MemberFence struct {
	ID     string `json:"id"`
	Member string `json:"member"`
}

// MemberFenceReport is what became of the last request to stop a member.
type MemberFenceReport struct {
	// ID of the request.
	ID string `json:"id,omitempty"`

	// Outcome: Waiting, Stopped, Refused or Skipped.
	Outcome string `json:"outcome,omitempty"`

	// Message says what it waits for, or why it was refused.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
