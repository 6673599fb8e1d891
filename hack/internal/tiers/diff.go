// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// A Diff is the change that is tested.
type Diff struct {
	// Commit is the hash of HEAD, with a plus sign when files differ from it.
	Commit string
	// Base is what HEAD is compared with, and Because how it was found. Without one, nothing is known to be touched.
	Base, Because string
	Files         []string
}

// DiffOf the repository against a base: the one that is named, else where the branch left the upstream branch, else the newest commit
// that the ledger knows, else the commit before.
func DiffOf(ctx context.Context, root, base string, l Ledger) Diff {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = fmt.Errorf("cannot run git %s: %s", strings.Join(args, " "), strings.TrimSpace(string(exit.Stderr)))
		}
		return strings.TrimSpace(string(out)), err
	}
	d := Diff{Commit: "unknown"}
	head, err := git("rev-parse", "HEAD")
	if err != nil {
		d.Because = err.Error()
		return d
	}
	d.Commit = head
	if dirty, err := git("status", "--porcelain", "--untracked-files=no"); err == nil && dirty != "" {
		d.Commit += "+"
	}

	if d.Base, d.Because = baseOf(git, head, base, l); d.Base == "" {
		return d
	}
	files, err := git("diff", "--name-only", "--no-renames", "-z", d.Base)
	if err != nil {
		d.Base, d.Because = "", err.Error()
		return d
	}
	d.Files = slices.DeleteFunc(strings.Split(files, "\x00"), func(f string) bool { return f == "" })
	return d
}

func baseOf(git func(...string) (string, error), head, named string, l Ledger) (base, because string) {
	if named != "" {
		hash, err := git("rev-parse", "--verify", "--quiet", named+"^{commit}")
		if err == nil {
			return hash, "it is named"
		}
		// A shallow clone may lack it. Another base says nothing wrong, only less.
		because = fmt.Sprintf("%q is not in this clone, and ", named)
	}
	for _, upstream := range []string{"origin/HEAD", "origin/main"} {
		if hash, err := git("merge-base", upstream, "HEAD"); err == nil && hash != head {
			return hash, because + "the branch leaves " + upstream + " there"
		}
	}
	asked := map[string]bool{head: true}
	for _, r := range slices.Backward(l) {
		if hash := strings.TrimSuffix(r.Commit, "+"); !asked[hash] {
			asked[hash] = true
			if _, err := git("merge-base", "--is-ancestor", hash, "HEAD"); err == nil {
				return hash, because + "it was tested last on this machine"
			}
		}
	}
	if hash, err := git("rev-parse", "--verify", "--quiet", "HEAD^"); err == nil {
		return hash, because + "it is the commit before"
	}
	return "", because + "this clone has no commit before HEAD"
}
