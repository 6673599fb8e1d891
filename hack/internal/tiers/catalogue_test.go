// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/hack/internal/testfile"
)

// repository is where the real list is.
const repository = "../../.."

// TestList compares the real list with the real tests, and the page with the list.
func TestList(t *testing.T) {
	c, err := Load(repository)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(repository, Page))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Table(), string(page)); diff != "" {
		t.Errorf("%s is not what make generate writes (-want +got):\n%s", Page, diff)
	}
	for _, test := range c.Tests {
		if !strings.Contains(string(page), "| ["+test.Name+"](") {
			t.Errorf("%s does not show %s", Page, test.Name)
		}
	}
}

func TestLoad(t *testing.T) {
	const (
		head = "spareMinutes: 20\nclusters:\n- {nodes: 1, setupMinutes: 1, parallel: 4}\ntests:\n"
		one  = "- {name: TestOne, nodes: 1, tier: change, minutes: 1, protects: [src/], why: it matters}\n"
	)
	cases := map[string]struct {
		reason string
		list   string
		want   string
	}{
		"Good":       {reason: "a list that names every test is used", list: head + one},
		"NotListed":  {reason: "a test that no tier has would never run", list: head, want: "TestOne of test/e2e/one_test.go is not listed"},
		"Twice":      {reason: "two entries could disagree", list: head + one + one, want: "TestOne is listed twice"},
		"Undeclared": {reason: "an entry without a test proves nothing", list: head + one + strings.Replace(one, "One", "Gone", 1), want: "TestGone is listed, but no file"},
		"NoCluster":  {reason: "a test without a cluster would never run", list: head + strings.Replace(one, "nodes: 1", "nodes: 2", 1), want: "needs 2 nodes"},
		"NoTier":     {reason: "a test in no tier would never run", list: head + strings.Replace(one, "change", "night", 1), want: `has tier "night"`},
		"NoMinutes":  {reason: "without a time nothing can be planned", list: head + strings.Replace(one, "minutes: 1", "minutes: 0", 1), want: "has no minutes"},
		"NoReason":   {reason: "people want to know why", list: head + strings.Replace(one, "it matters", `""`, 1), want: "has no reason"},
		"NoSource":   {reason: "a test that protects nothing is touched by nothing", list: head + strings.Replace(one, "[src/]", "[]", 1), want: "protects no source"},
		"Moved":      {reason: "a folder that was renamed is touched by nothing", list: head + strings.Replace(one, "src/", "old/", 1), want: `"old/", which matches no file`},
		"Misspelled": {reason: "a field that is not known has no effect", list: head + strings.Replace(one, "protects", "protect", 1), want: `unknown field "protect"`},
		"TooLong": {
			reason: "a slow test that never fits would never run",
			list:   head + strings.NewReplacer("change", "rotation", "minutes: 1", "minutes: 17").Replace(one), want: "needs up to 22 minutes",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			testfile.Write(t, root, "src/a.go", "package src\n")
			testfile.Write(t, root, "test/e2e/one_test.go", "package e2e\n\nfunc TestMain(m *testing.M) {}\nfunc TestOne(t *testing.T) {}\nfunc helper() {}\n")
			testfile.Write(t, root, File, tc.list)
			_, err := Load(root)
			switch {
			case err == nil && tc.want != "":
				t.Errorf("%s: want an error with %q, got none", tc.reason, tc.want)
			case err != nil && (tc.want == "" || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: want an error with %q, got: %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestDeclarations(t *testing.T) {
	root := t.TempDir()
	testfile.Write(t, root, "a_test.go", `//go:build e2e

package e2e

func TestMain(m *testing.M) {}

func TestAlone(t *testing.T) {
	t.Run("Part", func(t *testing.T) { t.Parallel() })
}

func TestBeside(t *testing.T) {
	t.Parallel()
}

func (s suite) TestMethod(t *testing.T) {}
`)
	testfile.Write(t, root, "b_test.go", "//go:build e2e && release\n\npackage e2e\n\nfunc TestElsewhere(t *testing.T) {}\n")
	got, err := declarations(root)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]declaration{"TestAlone": {file: "a_test.go"}, "TestBeside": {file: "a_test.go", parallel: true}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(declaration{})); diff != "" {
		t.Errorf("only a test's own call makes it parallel, and only files of this program count (-want +got):\n%s", diff)
	}
}

func TestTouchedBy(t *testing.T) {
	test := Test{Name: "TestOne", Source: "test/e2e/one_test.go", Protects: []string{"provider/topology/", "function/database/backup*.go"}}
	cases := map[string]struct {
		reason string
		files  []string
		want   string
	}{
		"Folder":   {reason: "everything below a folder counts", files: []string{"README.md", "provider/topology/internal/a.go"}, want: "provider/topology/internal/a.go"},
		"Pattern":  {reason: "a pattern of files counts", files: []string{"function/database/backup_rules.go"}, want: "function/database/backup_rules.go"},
		"Neighbor": {reason: "another file of the folder does not", files: []string{"function/database/verify.go"}},
		"Prefix":   {reason: "a folder whose name only begins alike does not", files: []string{"provider/topology2/a.go"}},
		"UnitTest": {reason: "a unit test is no part of what runs", files: []string{"function/database/backup_test.go"}},
		"Itself":   {reason: "the test's own file counts", files: []string{"test/e2e/one_test.go"}, want: "test/e2e/one_test.go"},
		"Other":    {reason: "the file of another test does not", files: []string{"test/e2e/two_test.go"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := test.touchedBy(tc.files); got != tc.want {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
