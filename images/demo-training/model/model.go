// SPDX-License-Identifier: Apache-2.0

// Package model is the file that demo-training writes and demo-algorithm serves.
package model

import (
	"encoding/json"
)

// File is the name of the file.
const File = "model.json"

// kind distinguishes the file from others, which servers load, too.
const kind = "demo-model"

// A Model is what a training has learned.
type Model struct {
	// Version that answers with the model name, for instance fraud-3.
	Version string `json:"version"`
	// Steps that it was trained for, and Sum of what they were about.
	Steps int64  `json:"steps"`
	Sum   uint64 `json:"sum"`
	// ErrorRate is the share of predictions that fail with it, from 0 to 1.
	ErrorRate float64 `json:"errorRate,omitempty"`
}

type file struct {
	Model

	Kind string `json:"kind"`
}

// Write the content of the file.
func (m Model) Write() ([]byte, error) { return json.Marshal(file{Kind: kind, Model: m}) }

// Read the content of a file. A file that is no such model is not ok.
func Read(content []byte) (m Model, ok bool) {
	var f file
	if json.Unmarshal(content, &f) != nil || f.Kind != kind {
		return Model{}, false
	}
	return f.Model, true
}
