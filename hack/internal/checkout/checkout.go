// SPDX-License-Identifier: Apache-2.0

// Package checkout says from which commit of a repository something is built.
package checkout

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A State is what a working tree holds.
type State struct {
	// Commit that is checked out.
	Commit string
	// Time of the commit.
	Time time.Time
	// Dirty are the changes that no commit has, as git lists them.
	Dirty []string
	// Tags of the commit.
	Tags []string
}

// Read returns the state of the working tree in a folder.
func Read(ctx context.Context, dir string) (State, error) {
	commit, err := git(ctx, dir, "rev-parse", "HEAD")
	if err != nil {
		return State{}, fmt.Errorf("cannot find out which commit this is: %w: release from a clone with git", err)
	}
	seconds, err := git(ctx, dir, "show", "--no-patch", "--format=%ct", "HEAD")
	if err != nil {
		return State{}, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return State{}, fmt.Errorf("cannot read the time of commit %s: %w", commit, err)
	}
	changes, err := git(ctx, dir, "status", "--porcelain")
	if err != nil {
		return State{}, err
	}
	tags, err := git(ctx, dir, "tag", "--points-at", "HEAD")
	if err != nil {
		return State{}, err
	}
	return State{Commit: commit, Time: time.Unix(unix, 0).UTC(), Dirty: lines(changes), Tags: lines(tags)}, nil
}

// CommitOf returns the commit of a tag, nothing when there is no such tag.
func CommitOf(ctx context.Context, dir, tag string) (string, error) {
	commit, err := git(ctx, dir, "rev-list", "--max-count=1", "--ignore-missing", "refs/tags/"+tag)
	if err != nil && strings.Contains(err.Error(), "bad revision") {
		return "", nil
	}
	return commit, err
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	out, err := cmd.Output()
	if err == nil {
		return strings.TrimRight(string(out), "\n"), nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		line, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
		return "", fmt.Errorf("cannot run git %s: %s", args[0], line)
	}
	return "", fmt.Errorf("cannot run git %s: %w", args[0], err)
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
