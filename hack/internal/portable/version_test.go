// SPDX-License-Identifier: Apache-2.0

// Package portable tests the scripts that people run on a laptop, also on macOS: they may use what POSIX and both the GNU
// and the BSD tools have, and nothing else.
package portable

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/semver"
)

// shells that may run the scripts. macOS has bash 3.2 as sh; CAPSTAN_SHELLS adds more, separated by colons.
func shells(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	candidates := [][]string{{"sh"}, {"bash"}, {"bash", "--posix"}, {"dash"}, {"posh"}, {"yash"}, {"ksh"}, {"busybox", "sh"}}
	for _, s := range filepath.SplitList(os.Getenv("CAPSTAN_SHELLS")) {
		candidates = append(candidates, []string{s})
	}
	for _, c := range candidates {
		if p, err := exec.LookPath(c[0]); err == nil {
			found[strings.Join(c, " ")] = append([]string{p}, c[1:]...)
		}
	}
	if len(found) == 0 {
		t.Fatal("cannot find any shell")
	}
	return found
}

// bsd makes a folder of tools that refuse what the BSD ones do not know: long options, GNU's stat, NUL-separated lists. It
// has shasum and no sha256sum. Nothing else is in PATH.
func bsd(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	refuse := func(tool, patterns string) string {
		return fmt.Sprintf(`for a in "$@"; do case $a in %s) echo "%s: illegal option -- $a" >&2; exit 1 ;; esac; done`, patterns, tool)
	}
	for tool, body := range map[string]string{
		"printf":  "",
		"dirname": refuse("dirname", "--*"),
		"sort":    refuse("sort", "--*|-z*|-V*|-h*"),
		"cut":     refuse("cut", "--*|-z"),
		"tail":    refuse("tail", "--*|-[0-9]*"),
		"find":    refuse("find", "--*|-printf|-regextype|-quit|-newermt"),
		"shasum":  "",
		"git":     "",
	} {
		shim(t, dir, tool, body+"\nexec '"+look(t, tool)+"' \"$@\"")
	}
	stat := look(t, "stat")
	shim(t, dir, "stat", fmt.Sprintf(`[ "$1 $2" = "-f %%m" ] || { echo "stat: illegal option -- $1" >&2; exit 1; }
shift 2
exec '%s' -c %%Y "$@"`, stat))
	return dir
}

// gnu makes a folder with GNU's tools, or with those that the machine has.
func gnu(t *testing.T, tools ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, tool := range append([]string{"dirname", "printf", "sort", "cut", "tail", "find", "stat", "git"}, tools...) {
		shim(t, dir, tool, "exec '"+look(t, tool)+"' \"$@\"")
	}
	return dir
}

func shim(t *testing.T, dir, tool, body string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, tool), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func look(t *testing.T, tool string) string {
	t.Helper()
	p, err := exec.LookPath(tool)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A tree has what hack/version looks at, and the script itself.
type tree struct {
	*testing.T

	dir  string
	path string
}

func newTree(t *testing.T, path string) tree {
	t.Helper()
	script, err := os.ReadFile("../../version")
	if err != nil {
		t.Fatal(err)
	}
	r := tree{T: t, dir: t.TempDir(), path: path}
	r.write("hack/version", string(script), 0)
	for _, f := range []string{
		"crossplane.yaml", "go.mod", "go.sum", "apis/a.go", "console/main.go", "function/fn.go", "images/postgres/packages", "images/mysql/packages", "input/a.go", "internal/addresses/a.go",
		"package/platform.yaml", "provider/main.go", "provider/main_test.go",
		"hack/package/main.go", "hack/internal/image/image.go", "hack/internal/memberimage/image.go", "README.md",
	} {
		r.write(f, f, 0)
	}
	return r
}

// write a file that was modified some seconds after a fixed time.
func (r tree) write(file, content string, second int64) {
	r.Helper()
	p := filepath.Join(r.dir, file)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		r.Fatal(err)
	}
	at := time.Unix(1_800_000_000+second, 0)
	if err := os.Chtimes(p, at, at); err != nil {
		r.Fatal(err)
	}
}

func (r tree) git(args ...string) {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "tag.gpgSign=false"}, args...)...)
	cmd.Dir = r.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// run the script by a shell, or directly.
func (r tree) run(shell ...string) (string, error) {
	args := append(append([]string{}, shell...), filepath.Join(r.dir, "hack/version"))
	cmd := exec.CommandContext(r.Context(), args[0], args[1:]...)
	cmd.Dir = r.TempDir()
	cmd.Env = []string{"PATH=" + r.path, "HOME=" + r.dir, "GIT_CEILING_DIRECTORIES=" + filepath.Dir(r.dir)}
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

func (r tree) version() string {
	r.Helper()
	out, err := r.run("/bin/sh")
	if err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
	if !semver.IsValid(out) || semver.Canonical(out) != out {
		r.Fatalf("%q is no version", out)
	}
	return out
}

// TestVersionPortable runs hack/version with each shell that there is and with tools of both families.
func TestVersionPortable(t *testing.T) {
	// All files of the tree have the same time.
	const want = "v0.1.0-dev.1800000000.h"
	for family, path := range map[string]string{"GNU": gnu(t, "sha256sum"), "BSD": bsd(t)} {
		for name, shell := range shells(t) {
			t.Run(family+"/"+name, func(t *testing.T) {
				r := newTree(t, path)
				got, err := r.run(shell...)
				if err != nil || got != r.version() || !strings.HasPrefix(got, want) || len(got) != len(want)+8 {
					t.Errorf("got %q, %v; want %s and 8 digits, as with sh: %q", got, err, want, r.version())
				}
			})
		}
	}
	if g, b := newTree(t, gnu(t, "sha256sum")).version(), newTree(t, bsd(t)).version(); g != b {
		t.Errorf("the same tree has version %s with GNU tools and %s with BSD tools", g, b)
	}
}

// TestVersionFast holds a limit, because every make target waits for the script.
func TestVersionFast(t *testing.T) {
	best := time.Hour
	for range 5 {
		cmd := exec.CommandContext(t.Context(), "../../version")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		// Time of processors: on a busy machine the clock says little.
		best = min(best, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	if best > 500*time.Millisecond {
		t.Errorf("the cheapest of five runs took %s of a processor", best)
	}
}

func TestVersionFollowsPackages(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(tree)
		same   bool
	}{
		"Edited":     {reason: "Nodes do not pull a version again that they have.", edit: func(r tree) { r.write("function/fn.go", "new", 10) }},
		"EditedFast": {reason: "Two edits within a second are two versions.", edit: func(r tree) { r.write("function/fn.go", "new", 0) }},
		"Added":      {reason: "A new file counts, whatever its name.", edit: func(r tree) { r.write("package/provider/a b.yaml", "new", 10) }},
		"Builder":    {reason: "What builds packages counts.", edit: func(r tree) { r.write("hack/package/main.go", "new", 10) }},
		"Members":    {reason: "What decides which files images of members have counts.", edit: func(r tree) { r.write("hack/internal/memberimage/image.go", "new", 10) }},
		"Test":       {reason: "Tests are not in packages.", edit: func(r tree) { r.write("provider/main_test.go", "new", 10) }, same: true},
		"Readme":     {reason: "Docs are not in packages.", edit: func(r tree) { r.write("README.md", "new", 10) }, same: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newTree(t, bsd(t))
			before := r.version()
			tc.edit(r)
			after := r.version()
			if (after == before) != tc.same {
				t.Errorf("%s\nversion before %s, after %s", tc.reason, before, after)
			}
			if strings.HasSuffix(name, "Fast") || tc.same {
				return
			}
			if semver.Compare(after, before) <= 0 {
				t.Errorf("a later edit has the older version: %s before, %s after", before, after)
			}
		})
	}
}

func TestVersionFollowsTags(t *testing.T) {
	cases := map[string]struct {
		reason string
		tags   []string
		want   string
		newer  string
	}{
		"NoTag":     {reason: "The first release is yet to come.", want: "v0.1.0-dev."},
		"Release":   {reason: "Builds after a release are newer.", tags: []string{"v0.1.0"}, want: "v0.1.1-dev.", newer: "v0.1.0"},
		"Later":     {reason: "The last release counts.", tags: []string{"v0.1.9", "v0.2.0"}, want: "v0.2.1-dev.", newer: "v0.2.0"},
		"Candidate": {reason: "A candidate is no release.", tags: []string{"v0.2.0", "v0.3.0-rc.1"}, want: "v0.2.1-dev.", newer: "v0.2.0"},
		"Others":    {reason: "Tags of other things are not ours.", tags: []string{"v0.2.0", "docs", "chart-1.2.3"}, want: "v0.2.1-dev."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newTree(t, bsd(t))
			r.git("init", "--quiet")
			for _, tag := range append(tc.tags, "") {
				r.git("commit", "--quiet", "--allow-empty", "--message=a")
				if tag != "" {
					r.git("tag", tag)
				}
			}
			got := r.version()
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("%s\nwant %s…, got %s", tc.reason, tc.want, got)
			}
			if tc.newer != "" && semver.Compare(got, tc.newer) <= 0 {
				t.Errorf("%s is not newer than %s", got, tc.newer)
			}
		})
	}
}

func TestVersionFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		path   string
		spoil  func(tree)
		want   string
	}{
		"NoHashTool": {
			reason: "One line tells the remedy.",
			path:   gnu(t), want: "version: cannot find sha256sum or shasum: install coreutils or Perl",
		},
		"FolderMissing": {
			reason: "Half a tree has no version.",
			path:   bsd(t), want: "images",
			spoil: func(r tree) {
				if err := os.RemoveAll(filepath.Join(r.dir, "images")); err != nil {
					r.Fatal(err)
				}
			},
		},
		"TagUnusable": {
			reason: "The next version cannot be counted from it.",
			path:   bsd(t), want: `version: cannot count on from the tag v0.1.0x: a release is tagged as in v0.1.0`,
			spoil: func(r tree) {
				r.git("init", "--quiet")
				r.git("commit", "--quiet", "--allow-empty", "--message=a")
				r.git("tag", "v0.1.0x")
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newTree(t, tc.path)
			if tc.spoil != nil {
				tc.spoil(r)
			}
			out, err := r.run("/bin/sh")
			if err == nil || !strings.Contains(out, tc.want) || strings.Contains(out, "\n") {
				t.Errorf("%s\ngot %q, %v; want one line with %q", tc.reason, out, err, tc.want)
			}
		})
	}
}
