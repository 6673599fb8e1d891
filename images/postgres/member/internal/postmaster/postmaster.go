// SPDX-License-Identifier: Apache-2.0

// Package postmaster finds and ends the first process of PostgreSQL.
package postmaster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/images/member/process"
)

// file of the first process, in the data folder.
const file = "postmaster.pid"

// Find returns the number that PostgreSQL's file in the data folder has for its first process, or 0, and whether that process
// runs.
func Find(data string) (pid int, running bool) {
	raw, err := os.ReadFile(filepath.Join(data, file))
	if err != nil {
		return 0, false
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid <= 1 {
		return 0, false
	}
	// After a restart of the container the number may be another program's.
	p, ok := process.Get(pid)
	return pid, ok && !p.Dead && p.Name == "postgres"
}

// Forget one that was killed with its container: its file in the data folder, and the lock of its socket. The numbers of the next container
// begin again, so that these may be a thread's there: Patroni takes a thread that is about as old as the file says for PostgreSQL and waits for it,
// and PostgreSQL does not start while any thread has the number.
func Forget(data, socket string) error {
	if _, running := Find(data); running {
		return nil
	}
	locks, err := filepath.Glob(filepath.Join(socket, ".s.PGSQL.*.lock"))
	if err != nil {
		return fmt.Errorf("cannot look for what an earlier PostgreSQL left: %w", err)
	}
	for _, path := range append(locks, filepath.Join(data, file)) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove what an earlier PostgreSQL left: %w", err)
		}
	}
	return nil
}

// lineStatus of PostgreSQL's file says how far its first process is.
const lineStatus = 7

// IsStopping reports whether PostgreSQL is being shut down: it has ended its sessions and accepts no more.
func IsStopping(data string) bool {
	raw, err := os.ReadFile(filepath.Join(data, file))
	lines := strings.Split(string(raw), "\n")
	return err == nil && len(lines) > lineStatus && strings.TrimSpace(lines[lineStatus]) == "stopping"
}

// frozenLooks is how many looks in a row have to find a postmaster frozen before it is ended: another program may have
// stopped it only to inspect it.
const frozenLooks = 100

// stopLook is the pause between two looks at a postmaster that stops.
const stopLook = 20 * time.Millisecond

// Stop lets PostgreSQL stop at once but cleanly, and returns when it has or the context ends. One that is frozen hears of
// nothing, and is ended.
func Stop(ctx context.Context, data string) {
	pid, running := Find(data)
	if !running {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGINT)
	for frozen := 0; running && ctx.Err() == nil; _, running = Find(data) {
		if p, ok := process.Get(pid); ok && p.Stopped {
			frozen++
		} else {
			frozen = 0
		}
		if frozen >= frozenLooks {
			Kill(data)
			frozen = 0
		}
		time.Sleep(stopLook)
	}
}

// Kill ends PostgreSQL with all its processes. Each of them may be frozen. The next start recovers what was committed.
func Kill(data string) {
	pid, running := Find(data)
	if !running {
		return
	}
	below := process.Descendants(pid) // afterwards they are ours
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for _, p := range below {
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
}
