// SPDX-License-Identifier: Apache-2.0

package checkout_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/hack/internal/checkout"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := checkout.Read(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "release from a clone with git") {
		t.Errorf("a folder without git: want the remedy, got %v", err)
	}
	run(t, dir, "init", "--quiet")
	run(t, dir, "commit", "--quiet", "--allow-empty", "--message=one")
	run(t, dir, "tag", "v0.1.0")
	first, err := checkout.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := checkout.State{Commit: run(t, dir, "rev-parse", "HEAD"), Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Tags: []string{"v0.1.0"}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("a clean tree with a tag: -want, +got:\n%s", diff)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	dirty, err := checkout.Read(t.Context(), dir)
	if diff := cmp.Diff([]string{"?? file"}, dirty.Dirty); err != nil || diff != "" {
		t.Errorf("a file that no commit has: %v, -want, +got:\n%s", err, diff)
	}
	run(t, dir, "add", "file")
	run(t, dir, "commit", "--quiet", "--message=two")
	for tag, want := range map[string]string{"v0.1.0": first.Commit, "v0.2.0": ""} {
		if got, err := checkout.CommitOf(t.Context(), dir, tag); err != nil || got != want {
			t.Errorf("CommitOf(%s): want %q, got %q, %v", tag, want, got, err)
		}
	}
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{
		"-C", dir, "-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false",
	}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}
