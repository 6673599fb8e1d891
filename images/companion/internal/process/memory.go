// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory of the container, by its control group.
type Memory struct {
	// Root is where the control group is mounted. Default: /sys/fs/cgroup.
	Root string
}

// Kills is how many processes the kernel has killed for want of memory, and whether that is known.
func (m Memory) Kills() (int, bool) {
	for _, file := range []string{"memory.events", "memory/memory.oom_control"} { // Versions 2 and 1.
		raw, err := os.ReadFile(filepath.Join(m.root(), file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
				n, err := strconv.Atoi(strings.TrimSpace(count))
				return n, err == nil
			}
		}
	}
	return 0, false
}

// Limit in bytes, or 0 when there is none.
func (m Memory) Limit() int64 {
	for _, file := range []string{"memory.max", "memory/memory.limit_in_bytes"} {
		raw, err := os.ReadFile(filepath.Join(m.root(), file))
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && n < 1<<60 {
			return n
		}
	}
	return 0
}

func (m Memory) root() string {
	if m.Root == "" {
		return "/sys/fs/cgroup"
	}
	return m.Root
}
