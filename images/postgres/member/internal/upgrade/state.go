// SPDX-License-Identifier: Apache-2.0

// Package upgrade brings data to a later major version of PostgreSQL: it copies the running data, follows it, tries whether the
// copy can be upgraded, and upgrades it. What is copied is never written to.
package upgrade

import (
	"fmt"
	"os"

	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
)

// A Stage of an upgrade on its volume. It outlasts the program.
type Stage string

// Stages, in order.
const (
	// Copying: there is no copy that can be used.
	Copying Stage = "Copying"
	// Following: the copy is whole, and gets what is written.
	Following Stage = "Following"
	// Converting: the copy has all that was ever acknowledged, and nothing follows any more.
	Converting Stage = "Converting"
	// Settling: the data is upgraded and serves.
	Settling Stage = "Settling"
	// Failed: for good.
	Failed Stage = "Failed"
)

// A State of an upgrade, as it is kept on the volume.
type State struct {
	ID    string `json:"id"`
	Stage Stage  `json:"stage"`
	// Failure says why, in the stage Failed.
	Failure string `json:"failure,omitempty"`
	// Verdict on the copy, once it was tried whether it can be upgraded.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Tries to convert the copy that have begun.
	Tries int `json:"tries,omitempty"`
	// Offered reports that this generation asks before it serves, as package fence has it.
	Offered bool `json:"offered,omitempty"`
}

// Fit reports whether the copy is whole and can be upgraded, as far as it is known.
func (s State) Fit() bool {
	return s.Stage == Following && s.Verdict != nil && s.Verdict.Findings == ""
}

// Load the state of an upgrade. What another one left is removed; without any it is about to copy.
func Load(id string) (State, error) {
	s, _, err := Left()
	if err != nil {
		return State{}, err
	}
	if s.ID == id {
		return s, nil
	}
	if err := os.RemoveAll(layout.Upgrade); err != nil {
		return State{}, fmt.Errorf("cannot remove what an earlier upgrade left: %w", err)
	}
	s = State{ID: id, Stage: Copying}
	return s, s.Save()
}

// Left returns the state of the upgrade that is on the volume, and whether there is one.
func Left() (State, bool, error) {
	var s State
	found, err := durable.ReadJSON(layout.UpgradeState, &s)
	if err != nil {
		return State{}, false, fmt.Errorf("cannot read how far the upgrade is: %w", err)
	}
	return s, found, nil
}

// Save the state durably, as a whole or not at all.
func (s State) Save() error {
	if err := durable.Folders(layout.Upgrade); err != nil {
		return err
	}
	if err := durable.WriteJSON(layout.UpgradeState, s); err != nil {
		return fmt.Errorf("cannot write how far the upgrade is: %w", err)
	}
	return nil
}
