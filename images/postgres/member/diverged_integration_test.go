// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/test/container"
)

// volume of its own for a member, of a size, whatever else is on the disk of the machine.
func (c *cluster) volume(letter string, size int64) {
	c.t.Helper()
	folder := c.folder("data-" + letter)
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0770,uid=%d,gid=%d", size, container.User, container.User)); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		c.running(letter).Kill()
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			c.t.Error(err)
		}
	})
}

// TestDivergedIsKept: a former leader has a commit that its successor lacks, and pg_rewind fails. It follows as a new copy, and what
// only it had is kept beside it and reported.
func TestDivergedIsKept(t *testing.T) {
	c := newCluster(t, "a", "b")
	for _, l := range c.letters {
		c.volume(l, 512<<20)
	}
	begin(t, c, "a", "b")
	c.eventually("commits are on two members", time.Minute, c.synchronous)
	former := c.leader()
	next := c.standbyOf(former)
	c.running(next).Signal(syscall.SIGSTOP, nil)
	// More than buffers of the network hold, so that the commit is on one member only.
	const alone = "set synchronous_commit = local; "
	c.asSuperuser(former, alone+"select pg_logical_emit_message(false, 'x', repeat('x', 1000000)) from generate_series(1, 40)")
	c.asSuperuser(former, alone+"create table only_here as select 1 as id")
	c.asSuperuser(former, "checkpoint")
	c.running(former).Kill()
	c.running(next).Signal(syscall.SIGCONT, nil)
	c.eventually("the other one leads", time.Minute, func() bool { return c.leader() == next })
	c.eventually("it takes writes", time.Minute, func() bool { return c.asSuperuser(next, "select pg_is_in_recovery()") == "f" })
	c.asSuperuser(next, "revoke execute on function pg_read_binary_file(text, bigint, bigint, boolean) from rewind") //nolint:dupword // Types of arguments.

	c.start(former)
	took := c.eventually("it follows", 2*time.Minute, func() bool { return c.ready("a", "b") })
	t.Logf("follows after %s", took)
	kept := filepath.Join(c.base, "data-"+former, "pgdata.diverged")
	if _, err := os.Stat(filepath.Join(kept, "data", "global", "pg_control")); err != nil {
		raw, _ := os.ReadFile(filepath.Join(c.logs, "log-"+former))
		for line := range strings.SplitSeq(string(raw), "\n") {
			if strings.Contains(line, "rewind") || strings.Contains(line, "emoving") || strings.Contains(line, "kept") {
				t.Log(line)
			}
		}
		t.Fatalf("what only the former leader had is gone: %v", err)
	}
	if c.asSuperuser(former, "select to_regclass('only_here') is null") != "t" {
		t.Error("it follows with data that the leader does not have")
	}
	var told members.Report
	c.eventually("it is reported", time.Minute, func() bool {
		_ = json.Unmarshal([]byte(c.pods()[former].Annotations[members.AnnotationReport]), &told)
		return told.Volume.Diverged != ""
	})
	if at, err := time.Parse(time.RFC3339, told.Volume.Diverged); err != nil || time.Since(at) > 3*time.Minute {
		t.Errorf("it is reported as %q (%v)", told.Volume.Diverged, err)
	}
	// The commit can still be read: a server of its own starts on what was kept.
	said, err := c.running(former).Enter("/bin/sh", "-c", `set -e
		everybody=all
		rm -f /data/pgdata.diverged/data/postmaster.pid
		d=$(mktemp -d /tmp/kept-XXXXXX)
		bin=/usr/lib/postgresql/17/bin
		echo "local all $everybody trust" > $d/hba
		printf "hba_file='$d/hba'\nident_file='$d/hba'\nshared_buffers=16MB\n" > $d/conf
		$bin/postgres -D /data/pgdata.diverged/data -c config_file=$d/conf -c listen_addresses= -c unix_socket_directories=$d \
			-c max_connections=60 -c max_wal_senders=20 -c max_worker_processes=16 -c max_prepared_transactions=16 > $d/log 2>&1 &
		for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do psql -h $d -U postgres -Atc 'select id from only_here' && exit 0; sleep 1; done
		cat $d/log; exit 1`)
	if err != nil || !strings.Contains(said, "1") {
		t.Errorf("what was kept cannot be read: %v: %s", err, said)
	}
}
