// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
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
}

// readWanted from a file.
func readWanted(file string) (wanted, error) {
	raw, err := os.ReadFile(file) //nolint:gosec // It is a constant.
	if err != nil {
		return wanted{}, fmt.Errorf("cannot read what the Database is to have: %w", err)
	}
	var w wanted
	if err := json.Unmarshal(raw, &w); err != nil {
		return wanted{}, fmt.Errorf("cannot understand what the Database is to have: %w", err)
	}
	return w, nil
}
