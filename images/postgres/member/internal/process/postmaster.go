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

// StopPostmaster lets PostgreSQL stop at once but cleanly, and returns when it has or the context ends.
func StopPostmaster(ctx context.Context, data string) {
	pid, running := Postmaster(data)
	if !running {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGINT)
	for running && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		_, running = Postmaster(data)
	}
}
