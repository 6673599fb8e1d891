// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Named returns the tests that a pattern as for go test -run selects, whole or in part.
func (c *Catalogue) Named(pattern string) ([]Test, error) {
	var found []Test
	for _, alternative := range split(pattern, '|') {
		top, err := regexp.Compile(split(alternative, '/')[0])
		if err != nil {
			return nil, fmt.Errorf("cannot select tests: %w", err)
		}
		for _, t := range c.Tests {
			if top.MatchString(t.Name) && !slices.ContainsFunc(found, func(f Test) bool { return f.Name == t.Name }) {
				found = append(found, t)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("cannot find an e2e test that %q selects: see %s for their names", pattern, Page)
	}
	return found, nil
}

// Whole says whether a pattern selects tests and not subtests of them.
func Whole(pattern string) bool { return !strings.Contains(pattern, "/") }

// Only is the pattern that selects these tests and no other.
func Only(tests []Test) string { return "^(" + strings.Join(names(tests), "|") + ")$" }

// split a pattern where go test does: outside of brackets.
func split(pattern string, at rune) []string {
	var parts []string
	depth, from := 0, 0
	for i, r := range pattern {
		switch {
		case r == '(' || r == '[':
			depth++
		case r == ')' || r == ']':
			depth--
		case r == at && depth == 0:
			parts = append(parts, pattern[from:i])
			from = i + 1
		}
	}
	return append(parts, pattern[from:])
}
