// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// owned are the paths that only this program writes. What is found there and is not generated any more is removed.
func owned() []string {
	return []string{
		"apis/v*/zz_generated.deepcopy.go",
		"apis/*/v*/zz_generated.deepcopy.go",
		"apis/*/definition.yaml",
		"apis/*/form.json",
		"docs/api/*.md",
		"integrations/backstage/*/template.yaml",
		"integrations/backstage/*/manifest.njk",
		"integrations/port/*.json",
		"input/v*/zz_generated.deepcopy.go",
		"package/function/input/*.yaml",
		"package/provider/crds/*.yaml",
	}
}

// A tree holds the content of files by their paths below the root of the repository.
type tree map[string][]byte

// A change is what a file of the repository lacks to be as generated.
type change struct {
	path string
	what string
}

func (c change) String() string { return c.what + " " + c.path }

// repaired says what was done about a change.
func (c change) repaired() string {
	if c.what == stale {
		return "removed " + c.path
	}
	return "wrote " + c.path
}

// What can be wrong with a file.
const (
	missing  = "missing"
	outdated = "outdated"
	stale    = "stale"
)

// changes compares the generated files with those below root.
func (t tree) changes(root string) ([]change, error) {
	var changes []change
	for _, path := range slices.Sorted(maps.Keys(t)) {
		have, err := os.ReadFile(filepath.Join(root, path))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			changes = append(changes, change{path, missing})
		case err != nil:
			return nil, fmt.Errorf("cannot compare a generated file: %w", err)
		case !bytes.Equal(have, t[path]):
			changes = append(changes, change{path, outdated})
		}
	}
	for _, pattern := range owned() {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, fmt.Errorf("cannot look for files at %q: %w", pattern, err)
		}
		for _, file := range found {
			path, err := filepath.Rel(root, file)
			if err != nil {
				return nil, fmt.Errorf("cannot name file %q: %w", file, err)
			}
			if _, ok := t[path]; !ok {
				changes = append(changes, change{path, stale})
			}
		}
	}
	return changes, nil
}

// apply makes the files below root as generated.
func (t tree) apply(root string, changes []change) error {
	for _, c := range changes {
		file := filepath.Join(root, c.path)
		if c.what == stale {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("cannot remove a stale file: %w", err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("cannot make a folder for generated files: %w", err)
		}
		if err := os.WriteFile(file, t[c.path], 0o644); err != nil {
			return fmt.Errorf("cannot write a generated file: %w", err)
		}
	}
	return nil
}

// refuse returns an error that lists the changes, or nil when there are none.
func refuse(changes []change) error {
	if len(changes) == 0 {
		return nil
	}
	lines := make([]string, 0, len(changes))
	for _, c := range changes {
		lines = append(lines, "  "+c.String())
	}
	return fmt.Errorf("generated files do not match the Go types, run make generate and commit the result:\n%s",
		strings.Join(lines, "\n"))
}
