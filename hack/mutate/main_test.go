// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/capstan-dev/capstan/hack/internal/build"
)

// TestMutations shows that each mutation still changes its file, and has a name of its own.
func TestMutations(t *testing.T) {
	root, err := build.Repository()
	if err != nil {
		t.Fatal(err)
	}
	all, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range all {
		if names[m.Name] || m.Name == "" || m.Old == m.New || len(m.Tests) == 0 {
			t.Errorf("Mutation %q needs a name that no other has, a new text and tests", m.Name)
		}
		names[m.Name] = true
		if _, err := m.mutated(root); err != nil {
			t.Error(err)
		}
	}
}
