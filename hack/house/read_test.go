// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLargest(t *testing.T) {
	cases := map[string]struct {
		reason string
		uses   map[string]map[string]bool
		want   int
	}{
		"Chain": {"files that use one another in one direction stand alone", map[string]map[string]bool{"a": {"b": true}, "b": {"c": true}, "c": {}}, 1},
		"Circle": {
			"a circle counts as a whole, and what only uses it does not belong to it",
			map[string]map[string]bool{"a": {"b": true}, "b": {"c": true}, "c": {"a": true}, "d": {"a": true}},
			3,
		},
		"Two":     {"the larger of two circles counts", map[string]map[string]bool{"a": {"b": true}, "b": {"a": true}, "c": {"d": true}, "d": {"e": true}, "e": {"c": true}}, 3},
		"Nothing": {"a package without files has none", nil, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := largest(tc.uses); got != tc.want {
				t.Errorf("%s: largest(…) = %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestAddLines(t *testing.T) {
	var c counts
	c.addLines([]byte("// a\npackage a // b\n\nvar a = `\n\n// text\n`\n"))
	if diff := cmp.Diff(counts{Lines: 7, Code: 5, Comments: 1, Blank: 1}, c); diff != "" {
		t.Errorf("lines of a file with a comment, a blank line and text that looks like both: -want, +got:\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	packages := []pkg{{dir: "a", counts: counts{Files: 20, Component: 10}}, {dir: "b", counts: counts{Files: 20, Component: 11}}}
	if err := check(packages[:1], 10); err != nil {
		t.Errorf("a component of the allowed size is fine, got %v", err)
	}
	if err := check(packages, 10); err == nil || !strings.HasPrefix(err.Error(), "b: 11 of 20 files") {
		t.Errorf("a larger one should be named with its package, got %v", err)
	}
}
