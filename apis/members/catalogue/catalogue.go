// SPDX-License-Identifier: Apache-2.0

// Package catalogue lists what the images of members contain.
package catalogue

import (
	"fmt"
	"sync"

	"sigs.k8s.io/yaml"

	_ "embed"
)

//go:embed postgres.yaml
var postgres []byte

//go:embed mysql.yaml
var mysql []byte

// A Catalogue lists what an image contains.
type Catalogue struct {
	// Tools maps programs beside the server, such as patroni and pgbackrest, to their versions.
	Tools map[string]string `json:"tools"`
	// Majors are sorted, oldest first.
	Majors []Major `json:"majors"`
}

// Major is one major version of the server.
type Major struct {
	// Major as in 17, or the series of MySQL as in 9.7.
	Major string `json:"major"`
	// Version as the server itself reports it, as in 17.12.
	Version string `json:"version"`
	// Extensions maps names for CREATE EXTENSION to their default versions.
	Extensions map[string]string `json:"extensions"`
}

// Postgres is the catalogue of the image postgres. It must not be changed.
var Postgres = sync.OnceValues(func() (Catalogue, error) { return read("postgres", postgres) })

// MySQL is the catalogue of the image mysql. It must not be changed.
var MySQL = sync.OnceValues(func() (Catalogue, error) { return read("mysql", mysql) })

func read(image string, raw []byte) (Catalogue, error) {
	var c Catalogue
	if err := yaml.Unmarshal(raw, &c); err != nil {
		return Catalogue{}, fmt.Errorf("cannot read the catalogue of the image %s: %w", image, err)
	}
	return c, nil
}
