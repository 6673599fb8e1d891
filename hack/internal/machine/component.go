// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machine

import (
	"fmt"
	"os"
	"strings"
)

// Running finds the process of a component of the machine whose data lies in dir: the child of its first process that
// writes the component's log.
func Running(dir, component string) (Process, error) {
	first, alive := Find(dir)
	if !alive {
		return Process{}, fmt.Errorf("cannot find component %q: the machine does not run", component)
	}
	all, err := pids()
	if err != nil {
		return Process{}, err
	}
	for _, pid := range all {
		s, err := readStat(pid)
		if err != nil || s.parent != first.PID {
			continue // It has ended, or is not ours.
		}
		out, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/1", pid))
		if err == nil && strings.HasSuffix(out, "/log/"+component+".log") {
			return identify(pid)
		}
	}
	return Process{}, fmt.Errorf("cannot find component %q: the machine has none of that name that runs", component)
}
