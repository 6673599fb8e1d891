// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/hack/internal/testfile"
)

// history makes a repository with three commits, each with a file of its name, and returns their hashes.
func history(t *testing.T) (root string, hashes []string) {
	t.Helper()
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_SYSTEM": os.DevNull, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
		"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
	} {
		t.Setenv(name, value)
	}
	root = filepath.Join(t.TempDir(), "first")
	git(t, ".", "init", "--quiet", root)
	for _, name := range []string{"one", "two", "three"} {
		testfile.Write(t, root, name, name)
		git(t, root, "add", ".")
		git(t, root, "commit", "--quiet", "--message", name)
		hashes = append(hashes, git(t, root, "rev-parse", "HEAD"))
	}
	return root, hashes
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestDiffOf(t *testing.T) {
	root, hashes := history(t)
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, ".", "clone", "--quiet", root, clone)
	testfile.Write(t, clone, "branch", "")
	git(t, clone, "add", ".")
	git(t, clone, "commit", "--quiet", "--message", "branch")
	shallow := filepath.Join(t.TempDir(), "shallow")
	git(t, ".", "clone", "--quiet", "--depth=1", "file://"+root, shallow)

	cases := map[string]struct {
		reason  string
		root    string
		base    string
		l       Ledger
		want    string
		because string
		files   []string
	}{
		"Named": {
			reason: "what is named comes first", root: root, base: hashes[0], l: Ledger{{Commit: hashes[1]}},
			want: hashes[0], because: "named", files: []string{"three", "two"},
		},
		"Upstream": {reason: "a branch is compared with where it began", root: clone, want: hashes[2], because: "leaves origin", files: []string{"branch"}},
		"Tested": {
			reason: "without an upstream, with what was tested last", root: root, l: Ledger{{Commit: hashes[0] + "+"}, {Commit: "gone"}, {Commit: hashes[2]}},
			want: hashes[0], because: "tested last", files: []string{"three", "two"},
		},
		"Before": {reason: "without a ledger, with the commit before", root: root, want: hashes[1], because: "commit before", files: []string{"three"}},
		"NamedButAbsent": {
			reason: "a base that the clone lacks is no reason to fail", root: root, base: strings.Repeat("a", 40),
			want: hashes[1], because: "not in this clone", files: []string{"three"},
		},
		"Shallow":      {reason: "a shallow clone knows of no change", root: shallow, because: "no commit before HEAD"},
		"NoRepository": {reason: "nor does an archive", root: t.TempDir(), because: "cannot run git"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := DiffOf(t.Context(), tc.root, tc.base, tc.l)
			if d.Base != tc.want || !strings.Contains(d.Because, tc.because) {
				t.Errorf("%s: want base %q because of %q, got %q because of %q", tc.reason, tc.want, tc.because, d.Base, d.Because)
			}
			if diff := cmp.Diff(tc.files, d.Files); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}

	t.Run("Edited", func(t *testing.T) {
		testfile.Write(t, root, "one", "edited")
		d := DiffOf(t.Context(), root, "", nil)
		if diff := cmp.Diff([]string{"one", "three"}, d.Files); diff != "" || d.Commit != hashes[2]+"+" {
			t.Errorf("what is not committed yet should count, and show: %s (-want +got):\n%s", d.Commit, diff)
		}
	})
}
