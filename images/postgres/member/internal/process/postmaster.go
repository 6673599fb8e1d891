// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Postmaster returns the number that PostgreSQL's file in the data folder has for its first process, or 0, and whether that
// process runs.
func Postmaster(data string) (pid int, running bool) {
	raw, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0, false
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid <= 1 {
		return 0, false
	}
	// After a restart of the container the number may be another program's.
	p, ok := Get(pid)
	return pid, ok && !p.Dead && p.Name == "postgres"
}

// frozenLooks is how many looks in a row have to find a postmaster frozen before it is ended: somebody may only have looked into it.
const frozenLooks = 100

// stopLook is the pause between two looks at a postmaster that stops.
const stopLook = 20 * time.Millisecond

// StopPostmaster lets PostgreSQL stop at once but cleanly, and returns when it has or the context ends. One that is frozen hears of
// nothing, and is ended.
func StopPostmaster(ctx context.Context, data string) {
	pid, running := Postmaster(data)
	if !running {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGINT)
	for frozen := 0; running && ctx.Err() == nil; _, running = Postmaster(data) {
		if p, ok := Get(pid); ok && p.Stopped {
			frozen++
		} else {
			frozen = 0
		}
		if frozen >= frozenLooks {
			KillPostmaster(data)
			frozen = 0
		}
		time.Sleep(stopLook)
	}
}

// Gone waits until a process is gone or the context ends, and tells which. One that is dead is there until its parent has buried it.
func Gone(ctx context.Context, pid int) bool {
	for ctx.Err() == nil {
		if _, there := Get(pid); !there {
			return true
		}
		time.Sleep(stopLook / 4)
	}
	return false
}

// KillPostmaster ends PostgreSQL with all its processes, of which each may be frozen. The next start recovers what was committed.
func KillPostmaster(data string) {
	pid, running := Postmaster(data)
	if !running {
		return
	}
	below := Descendants(pid) // afterwards they are ours
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for _, p := range below {
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
}
