// SPDX-License-Identifier: Apache-2.0

package members

// Outcomes of a request to copy a member again.
const (
	// ReinitializeWaiting: it has not begun.
	ReinitializeWaiting = "Waiting"
	// ReinitializeCopying: the data of the member was removed, and is copied from the leader.
	ReinitializeCopying = "Copying"
	// ReinitializeDone: the member has a new copy, and follows the leader.
	ReinitializeDone = "Done"
	// ReinitializeRefused: the member is the leader.
	ReinitializeRefused = "Refused"
	// ReinitializeSkipped: the request was there before the data of the member.
	ReinitializeSkipped = "Skipped"
)

// Reinitialize is a request to copy a member again from the others, once for each ID.
type Reinitialize struct {
	ID     string `json:"id"`
	Member string `json:"member"`
}

// ReinitializeReport is what became of the last request to copy a member again.
type ReinitializeReport struct {
	// ID of the request.
	ID string `json:"id,omitempty"`

	// Outcome: Waiting, Copying, Done, Refused or Skipped.
	Outcome string `json:"outcome,omitempty"`

	// Message says what it waits for, or why it was refused.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
