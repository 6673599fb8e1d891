// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
)

// wanted is what a member is told of the Database beyond Patroni's configuration.
type wanted struct {
	// Databases, and the Extensions that each of them is to have.
	Databases  []string `json:"databases"`
	Extensions []string `json:"extensions"`
	// Volumes names the members that had a volume before the Database was made. None means that it is new; absent, that it is not
	// known.
	Volumes *[]string `json:"volumes"`
	// Pooled tells that there are poolers, which have to look passwords up.
	Pooled bool `json:"pooled"`
	// Upgrade tells that the Database begins with the data of a generation of an earlier major version.
	Upgrade *wantedUpgrade `json:"upgrade"`
}

// wantedUpgrade is the upgrade that a generation begins with.
type wantedUpgrade struct {
	// ID of the upgrade, which is that of the fence as well.
	ID string `json:"id"`
	// From is the major version of the generation before, Database the value of the label of its pods, and Scope that of its Patroni.
	From     string `json:"from"`
	Database string `json:"database"`
	Scope    string `json:"scope"`
	// Member that does the upgrade. Others wait, and copy from it.
	Member string `json:"member"`
}

// readWanted from the file that the cluster gives every member.
func readWanted() (wanted, error) {
	raw, err := os.ReadFile(layout.Wanted)
	if err != nil {
		return wanted{}, fmt.Errorf("cannot read what the Database is to have: %w", err)
	}
	var w wanted
	if err := json.Unmarshal(raw, &w); err != nil {
		return wanted{}, fmt.Errorf("cannot understand what the Database is to have: %w", err)
	}
	return w, nil
}
