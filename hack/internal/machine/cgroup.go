// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// system is the group of a machine's own daemons; pods get a group beside it.
const system = "system"

// v2Controllers are handed down to the machine's groups on cgroup v2. Version 1 has a tree for each.
var v2Controllers = []string{"cpu", "cpuset", "memory", "pids", "io"}

// A hierarchy is one mounted tree of control groups.
type hierarchy struct {
	path string
	v2   bool
}

// createGroups makes the machine's groups in every hierarchy.
func createGroups(name string) error {
	trees, err := hierarchies()
	if err != nil {
		return err
	}
	if len(trees) == 0 {
		return errors.New("cannot find any control groups: mount cgroup2 on /sys/fs/cgroup")
	}
	for _, tree := range trees {
		if err := tree.create(name); err != nil {
			return fmt.Errorf("cannot create control group %q in %s: %w", name, tree.path, err)
		}
	}
	return nil
}

func (h hierarchy) create(name string) error {
	parent := h.path
	for _, part := range []string{name, system} {
		if h.v2 {
			enable(parent)
		}
		dir := filepath.Join(parent, part)
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return err
		}
		// A new group of cpuset v1 has neither processors nor memory and takes no process.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if h.v2 {
				break
			}
			if err := inherit(parent, dir, file); err != nil {
				return err
			}
		}
		parent = dir
	}
	return nil
}

// enable hands down the controllers that the group has. Beside v1 trees the v2 tree has none, which is no error.
func enable(dir string) {
	for _, c := range v2Controllers {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o600)
	}
}

func inherit(parent, dir, file string) error {
	value, err := os.ReadFile(filepath.Join(parent, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), value, 0o600)
}

// joinGroups moves the calling process into the machine's system group.
func joinGroups(name string) error {
	trees, err := hierarchies()
	if err != nil {
		return err
	}
	for _, tree := range trees {
		// Zero is the writer itself, with any pid in this namespace.
		if err := os.WriteFile(filepath.Join(tree.path, name, system, "cgroup.procs"), []byte("0"), 0o600); err != nil {
			return fmt.Errorf("cannot join control group %q in %s: %w", name, tree.path, err)
		}
	}
	return nil
}

// Groups returns the control groups of a machine that exist, deepest first.
func Groups(name string) ([]string, error) {
	trees, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var groups []string
	for _, tree := range trees {
		var below []string
		err := filepath.WalkDir(filepath.Join(tree.path, name), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				below = append(below, path)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("cannot list the control groups of %q: %w", name, err)
		}
		slices.Reverse(below)
		groups = append(groups, below...)
	}
	return groups, nil
}

// removeGroups removes the control groups of a machine that has ended.
func removeGroups(name string) error {
	groups, err := Groups(name)
	if err != nil {
		return err
	}
	for _, dir := range groups {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove control group: %w", err)
		}
	}
	return nil
}

func hierarchies() ([]hierarchy, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cannot list mounts: %w", err)
	}
	return parseHierarchies(data), nil
}

// parseHierarchies finds the control group trees in the content of /proc/self/mountinfo.
func parseHierarchies(mountinfo []byte) []hierarchy {
	var trees []hierarchy
	lines := bufio.NewScanner(bytes.NewReader(mountinfo))
	for lines.Scan() {
		mount, kind, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(mount)
		if !ok || len(fields) < 5 {
			continue
		}
		fsType, _, _ := strings.Cut(kind, " ")
		if fsType == "cgroup" || fsType == "cgroup2" {
			trees = append(trees, hierarchy{path: fields[4], v2: fsType == "cgroup2"})
		}
	}
	return trees
}
