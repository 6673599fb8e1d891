// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// isApart wants the write-ahead log of a member that runs on its volume, and nothing of a move left over.
func (c *cluster) isApart(letter string) {
	c.t.Helper()
	data, volume := filepath.Join(c.base, "data-"+letter), filepath.Join(c.base, "wal-"+letter)
	if to, err := os.Readlink(filepath.Join(data, "pgdata", "pg_wal")); err != nil || to != pgmember.FolderWAL+"/pg_wal" {
		c.t.Errorf("the log of %s is not on its volume: %q, %v", letter, to, err)
	}
	if all, err := filepath.Glob(filepath.Join(volume, "pg_wal", "0000000*")); err != nil || len(all) == 0 {
		c.t.Errorf("the volume of %s has no log: %v", letter, err)
	}
	for _, pattern := range []string{data + "/pgdata.wal-*", volume + "/pg_wal.*"} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			c.t.Errorf("something is left over: %v", left)
		}
	}
}

// TestWALVolume: members whose write-ahead log is on a volume of its own from the start begin, copy, rewind and are copied again as others
// are, and nothing that was acknowledged is lost.
func TestWALVolume(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	c.apart = true
	begin(t, c, c.letters...)
	for _, l := range c.letters {
		c.isApart(l)
	}
	w := c.write()
	w.goesOn(5 * time.Second)
	c.eventually("commits wait for another member", time.Minute, c.synchronous) // which can lead then
	former := c.leader()
	c.running(former).Kill()
	c.eventually("another member leads", time.Minute, func() bool { l := c.leader(); return l != "" && l != former })
	w.goesOn(10 * time.Second)
	c.start(former)
	c.eventually("the former leader follows", 2*time.Minute, func() bool { return c.ready(c.letters...) })
	c.isApart(former)

	standby := c.standbyOf(c.leader())
	c.want(pgmember.Config{Reinitialize: &members.Reinitialize{ID: "1", Member: c.identify(standby).Name}})
	c.eventually("it is copied again", 2*time.Minute, func() bool { return c.report(standby).Reinitialize.Outcome == members.ReinitializeDone })
	c.isApart(standby)
	c.eventually("both volumes are reported", time.Minute, func() bool {
		r := c.report(standby)
		return r.Disk != "" && r.WALDisk != "" && r.WALVolume.FileSystem != ""
	})

	t.Run("Lost", func(t *testing.T) {
		c.t = t
		c.running(standby).Kill()
		c.loseLogVolume(standby)
		c.start(standby)
		c.eventually("it says that its log is lost", time.Minute, func() bool { return c.reason(standby) == pgmember.ReasonWALVolumeLost })
		// What the message says helps.
		c.running(standby).Kill()
		c.loseLogVolume(standby)
		if err := os.RemoveAll(filepath.Join(c.base, "data-"+standby)); err != nil {
			t.Fatal(err)
		}
		c.start(standby)
		c.eventually("it is copied", 2*time.Minute, func() bool { return c.ready(c.letters...) })
		c.isApart(standby)
	})
	c.t = t
	w.check(t)
	c.oneLeader()
}

// TestWALVolumeIsAdded to members that run, one after the other, standbys first, as a change does it. The member is also killed at each
// point of the move, and at random ones. Nothing that was acknowledged is lost.
func TestWALVolumeIsAdded(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, c.letters...)
	w := c.write()
	w.goesOn(5 * time.Second)
	leader := c.leader()
	// So much that a move takes a while.
	c.asSuperuser(leader, "set synchronous_commit = local; select pg_logical_emit_message(false, 'x', repeat('x', 1000000)) from generate_series(1, 200)")
	c.eventually("all are ready", time.Minute, func() bool { return c.ready(c.letters...) })
	one := c.standbyOf(leader)
	in := func(parts ...string) string { return filepath.Join(append([]string{c.base}, parts...)...) }

	t.Run("Points", func(t *testing.T) {
		c.t = t
		data, wal := in("data-"+one), c.logVolume(one)
		// A pod without the volume has its log in the data again after each.
		for _, point := range []struct{ name, script string }{
			{"HalfCopied", "mkdir $W/pg_wal.next && head -c 1000 /dev/zero > $W/pg_wal.next/000000010000000000000001"},
			{"Copied", "cp -a $D/pgdata/pg_wal $W/pg_wal.next"},
			{"Named", "cp -a $D/pgdata/pg_wal $W/pg_wal"},
			{"Linked", "cp -a $D/pgdata/pg_wal $W/pg_wal && ln -s /wal/pg_wal $D/pgdata.wal-link"},
			{"Parted", "cp -a $D/pgdata/pg_wal $W/pg_wal && ln -s /wal/pg_wal $D/pgdata.wal-link && mv $D/pgdata/pg_wal $D/pgdata.wal-former"},
			{"Joined", "cp -a $D/pgdata/pg_wal $W/pg_wal && mv $D/pgdata/pg_wal $D/pgdata.wal-former && ln -s /wal/pg_wal $D/pgdata/pg_wal"},
			{"HalfTidied", "cp -a $D/pgdata/pg_wal $W/pg_wal && mv $D/pgdata/pg_wal $D/pgdata.wal-former && ln -s /wal/pg_wal $D/pgdata/pg_wal && rm -r $D/pgdata.wal-former/archive_status"},
		} {
			c.running(one).Kill()
			c.shell("D="+data+" W="+wal, `[ ! -L $D/pgdata/pg_wal ] || { rm $D/pgdata/pg_wal; cp -a $W/pg_wal $D/pgdata/pg_wal; }; rm -rf $W/*; `+
				`echo '{"identity":"`+identity+`","version":"17"}' > $W/capstan.json; `+point.script+`; chown -R 999:999 $W $D`)
			c.wal[one] = true
			c.start(one)
			took := c.eventually("it follows after "+point.name, time.Minute, func() bool { return c.ready(c.letters...) })
			t.Logf("%s: follows after %s", point.name, took)
			c.isApart(one)
			w.goesOn(10 * time.Second)
		}
	})
	t.Run("Killed", func(t *testing.T) {
		c.t = t
		other := ""
		for _, l := range c.letters {
			if l != one && l != c.leader() {
				other = l
			}
		}
		c.wal[other] = true
		c.running(other).Terminate(true)
		interrupted := 0
		for range 12 {
			r := c.start(other)
			time.Sleep(time.Duration(100+rand.IntN(900)) * time.Millisecond)
			r.Kill()
			if left, _ := filepath.Glob(in("wal-"+other, "pg_wal.next", "0*")); len(left) > 0 {
				interrupted++
			}
		}
		t.Logf("%d of 12 kills were in the middle of the copy", interrupted)
		c.start(other)
		c.eventually("it follows", time.Minute, func() bool { return c.ready(c.letters...) })
		c.isApart(other)
	})
	t.Run("Leader", func(t *testing.T) {
		c.t = t
		c.eventually("commits wait for another member", time.Minute, c.synchronous)
		w.goesOn(10 * time.Second)
		w.reset()
		leader := c.leader()
		c.wal[leader] = true
		c.running(leader).Terminate(true)
		c.start(leader)
		c.eventually("it follows", time.Minute, func() bool { return c.ready(c.letters...) })
		within(t, w, 5*time.Second)
		c.isApart(leader)
	})
	t.Run("WithoutTheVolume", func(t *testing.T) {
		c.t = t
		standby := c.standbyOf(c.leader())
		c.running(standby).Kill()
		c.wal[standby] = false
		c.start(standby)
		c.eventually("it says what it lacks", time.Minute, func() bool { return c.reason(standby) == pgmember.ReasonWALVolumeLost })
		c.running(standby).Kill()
		c.wal[standby] = true
		c.start(standby)
		c.eventually("it follows", time.Minute, func() bool { return c.ready(c.letters...) })
	})
	c.t = t
	w.check(t)
	c.oneLeader()
}

// shell runs a script outside of members, with variables.
func (c *cluster) shell(variables, script string) {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), "sh", "-ec", strings.ReplaceAll(variables, " ", "; ")+"; "+script).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s: %v: %s", script, err, out)
	}
}
