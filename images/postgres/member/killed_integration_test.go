// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// TestKilledSoonAfterItsStart: a container that is killed leaves the files of PostgreSQL's first process. In the next container its number may be
// a thread's. Patroni took one for PostgreSQL that began within three seconds of the time in the file, and waited for it for good.
func TestKilledSoonAfterItsStart(t *testing.T) {
	c := newCluster(t, "a", "b")
	begin(t, c, c.letters...)
	standby := c.standbyOf(c.leader())
	c.running(standby).Kill()
	c.api.set(true) // Until it is open Patroni does not start.
	r := c.start(standby)
	thread := ""
	c.eventually("the program has threads", 10*time.Second, func() bool {
		thread = lastThread(t, r.PID())
		return thread != ""
	})
	path := filepath.Join(c.base, "data-"+standby, "pgdata", "postmaster.pid")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(raw), "\n")
	lines[0], lines[2] = thread, strconv.FormatInt(time.Now().Unix(), 10)
	text := strings.Join(lines, "\n")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// A pod keeps the folder of the socket, too.
	c.eventually("there is a folder of the socket", 10*time.Second, func() bool {
		_, err := r.Enter("sh", "-ec", fmt.Sprintf("umask 077; echo '%s' > %s/.s.PGSQL.5432.lock", text, pgmember.FolderSocket))
		return err == nil
	})
	c.api.set(false)
	c.eventually("PostgreSQL answers", time.Minute, func() bool {
		_, err := r.Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-c", "select 1")
		return err == nil
	})
	c.eventually("it follows", time.Minute, func() bool { return c.ready(c.letters...) })
}

// lastThread of a process beside its first, by its number in the container.
func lastThread(t *testing.T, pid int) string {
	t.Helper()
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(all) < 2 {
		return ""
	}
	raw, _ := os.ReadFile(all[len(all)-1])
	for line := range strings.Lines(string(raw)) {
		if numbers, found := strings.CutPrefix(line, "NSpid:"); found {
			own := strings.Fields(numbers)
			return own[len(own)-1]
		}
	}
	return ""
}
