// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/capstan-dev/capstan/hack/internal/machine"
)

// Leftovers lists everything on the real machine that belongs to this cluster beyond its caches, a line each. After a
// down, or before the first up, there is nothing. Network namespaces, interfaces and packet filters live and die with
// the processes that are looked for here; mounts are looked for as well, because one that leaked would not.
func (c *Cluster) Leftovers() ([]string, error) {
	var left []string
	procs, err := c.processes()
	if err != nil {
		return nil, err
	}
	left = append(left, procs...)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cannot list mounts: %w", err)
	}
	for line := range bytes.Lines(mounts) {
		fields := bytes.Fields(line)
		if len(fields) > 4 && bytes.HasPrefix(fields[4], []byte(c.home()+"/")) {
			left = append(left, "mount "+string(fields[4]))
		}
	}
	for _, letter := range letters() {
		groups, err := machine.Groups(c.machine(letter))
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			left = append(left, "control group "+g)
		}
	}
	if _, err := os.Stat(c.state()); err == nil {
		left = append(left, "folder "+c.state())
	}
	return left, nil
}

// processes finds the first process of every machine by its command line, and commands in a machine's network. Unlike
// everything that ends processes, this trusts a name: it is to find what the records have lost.
func (c *Cluster) processes() ([]string, error) {
	var found []string
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		args := bytes.Split(bytes.TrimRight(line, "\x00"), []byte{0})
		if len(args) == 3 && string(args[1]) == machine.InitCommand && bytes.HasPrefix(args[2], []byte(c.state()+"/")) {
			found = append(found, "process "+filepath.Base(filepath.Dir(path))+" "+string(bytes.Join(args[1:], []byte(" "))))
		}
	}
	visitors, err := c.visitors()
	if err != nil {
		return nil, err
	}
	for _, pid := range visitors {
		found = append(found, fmt.Sprintf("process %d in the cluster's network", pid))
	}
	return found, nil
}
