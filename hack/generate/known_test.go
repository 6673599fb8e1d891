// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestFields keeps the number of fields that a reader of a page has to read. Lower a ceiling with the number. It rises only
// for a field that no other one can express.
func TestFields(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| \\[`spec[.]")
	for page, most := range map[string]int{
		// docs/changes.md has what was merged, and no two of the rest say the same.
		"algorithm.md": 120,
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", references, page))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(row.FindAll(text, -1)); n > most {
			t.Errorf("%s describes %d fields, and %d are allowed: express the new one by those that exist, or merge others", page, n, most)
		}
	}
}

// TestKnown shows which fields have one row.
func TestKnown(t *testing.T) {
	of := func(names ...string) *schema {
		s := &schema{Type: "object", Properties: map[string]*schema{}}
		for _, n := range names {
			s.Properties[n] = &schema{Type: "string"}
		}
		return s
	}
	for name, tc := range map[string]struct {
		reason, field string
		schema        *schema
		want          int
	}{
		"Known":   {"a reader knows what a variable is", "env", &schema{Items: of("name", "value")}, 1},
		"Other":   {"a field of the same name with a field of ours is ours", "env", &schema{Items: of("name", "rotate")}, 3},
		"Pod":     {"a part of a PodSpec", "pod", &schema{Properties: of("containers", "volumes").Properties}, 1},
		"Limits":  {"limits of pods have the name of a field, and are ours", "pod", of("volumes"), 2},
		"Text":    {"so is a plain value", "gateway", &schema{Type: "string"}, 1},
		"Unknown": {"so is any other object", "mirror", of("percent", "for"), 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := &schema{Properties: map[string]*schema{tc.field: tc.schema}}
			if got := len(fields(s)); got != tc.want {
				t.Errorf("%s: want %d rows, got %d", tc.reason, tc.want, got)
			}
		})
	}
}
