// SPDX-License-Identifier: Apache-2.0

// Package postgres tells what the image postgres has.
package postgres

import (
	"fmt"
	"sync"

	"sigs.k8s.io/yaml"

	_ "embed"
)

//go:embed catalogue.yaml
var raw []byte

// A Catalogue is what the image has.
type Catalogue struct {
	// Tools maps patroni, pgbackrest, pgbouncer and postgres-exporter to their
	// versions.
	Tools map[string]string `json:"tools"`

	// Majors are sorted, oldest first.
	Majors []Major `json:"majors"`
}

// Major is one major version of PostgreSQL.
type Major struct {
	// Major as in 17.
	Major string `json:"major"`

	// Version as PostgreSQL itself tells it, as in 17.12.
	Version string `json:"version"`

	// Extensions maps names for CREATE EXTENSION to their default versions.
	Extensions map[string]string `json:"extensions"`
}

// Read the catalogue of the image. It must not be changed.
var Read = sync.OnceValues(func() (Catalogue, error) {
	var c Catalogue
	if err := yaml.Unmarshal(raw, &c); err != nil {
		return Catalogue{}, fmt.Errorf("cannot read the catalogue of the image postgres: %w", err)
	}

	return c, nil
})
