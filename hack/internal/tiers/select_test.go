// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamed(t *testing.T) {
	c := &Catalogue{Tests: []Test{{Name: "TestDatabase"}, {Name: "TestDatabaseBackup"}, {Name: "TestDrift"}}}
	cases := map[string]struct {
		reason  string
		pattern string
		want    []string
		fails   bool
	}{
		"Prefix":      {reason: "a pattern matches anywhere", pattern: "Database", want: []string{"TestDatabase", "TestDatabaseBackup"}},
		"Anchored":    {reason: "unless it says otherwise", pattern: "^TestDatabase$", want: []string{"TestDatabase"}},
		"Subtest":     {reason: "a part of a test needs the test", pattern: "^TestDatabase$/FailsOver", want: []string{"TestDatabase"}},
		"Alternative": {reason: "each alternative has parts of its own", pattern: "Drift|^TestDatabase$/A|Backup/B", want: []string{"TestDrift", "TestDatabase", "TestDatabaseBackup"}},
		"Brackets":    {reason: "an alternative in brackets is one pattern", pattern: "^Test(Drift|Database)$", want: []string{"TestDrift", "TestDatabase"}},
		"Nothing":     {reason: "a name that is misspelled would be green without a test", pattern: "TestDatabse", fails: true},
		"Broken":      {reason: "a pattern that cannot be read selects nothing", pattern: "Test(", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tests, err := c.Named(tc.pattern)
			if (err != nil) != tc.fails {
				t.Fatalf("%s: got error %v", tc.reason, err)
			}
			got := map[string]bool{}
			for _, test := range tests {
				got[test.Name] = true
			}
			want := map[string]bool{}
			for _, name := range tc.want {
				want[name] = true
			}
			if diff := cmp.Diff(want, got); diff != "" || len(tests) != len(tc.want) {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOnly(t *testing.T) {
	if got, want := Only([]Test{{Name: "TestA"}, {Name: "TestB"}}), "^(TestA|TestB)$"; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}
