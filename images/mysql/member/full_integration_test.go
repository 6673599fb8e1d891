// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/capstan-dev/capstan/images/member/volume"
)

// fill the volume of a member until nothing more fits.
func (c *cluster) fill(letter string) {
	c.t.Helper()
	f, err := os.Create(filepath.Join(c.base, "data-"+letter, "filler"))
	if err != nil {
		c.t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for size := len(block); size > 0; {
		if _, err := f.Write(block[:size]); err != nil {
			size /= 2
		}
	}
	_ = f.Close()
}

// grow the volume of a member to a size in MiB, as a larger spec.storage does.
func (c *cluster) grow(letter string, size int) {
	c.t.Helper()
	if err := unix.Mount("", filepath.Join(c.base, "data-"+letter), "", unix.MS_REMOUNT, fmt.Sprintf("size=%dm", size)); err != nil {
		c.t.Fatal(err)
	}
}

// TestVolumeFull of a follower, and then of the leader: it is reported, the others go on, and the member is back when the volume has grown.
func TestVolumeFull(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	for _, l := range c.letters {
		c.volume(l, 700)
	}
	begin(t, c, "a", "b", "c")
	w, p := c.write(), c.askAll()
	w.goesOn(10 * time.Second)
	for _, step := range []struct {
		name string
		who  func() string
		// within is how long writes may wait.
		within time.Duration
	}{
		{"Follower", func() string { return c.followers()[0] }, 15 * time.Second},
		{"Leader", c.leader, time.Minute},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			c.t = t
			c.eventually("all members are ready", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
			w.goesOn(10 * time.Second)
			w.reset()
			who := step.who()
			c.fill(who)
			c.eventually("it is reported", time.Minute, func() bool { _, r, _ := c.status(who); return r.Disk == volume.DiskFull })
			time.Sleep(30 * time.Second)
			s, r, role := c.status(who)
			t.Logf("%s has a full volume: state %v, report %v, role %q; %s leads, and sees %s; %v", who, s, r, role, c.leader(), c.inside(c.leader(),
				"SELECT MEMBER_HOST, MEMBER_STATE, COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE, COUNT_TRANSACTIONS_IN_QUEUE FROM "+
					"performance_schema.replication_group_members JOIN performance_schema.replication_group_member_stats USING (MEMBER_ID)"), w.count())
			w.goesOn(step.within)
			gap, errs := w.reset()
			t.Logf("%s leads, writes waited %s; %v", c.leader(), gap, errs)
			c.grow(who, 1400)
			t.Logf("ready again after %s", c.eventually("it is back", 3*time.Minute, func() bool { return c.ready("a", "b", "c") }))
			w.goesOn(10 * time.Second)
			c.eventually("it is reported", time.Minute, func() bool { _, r, _ := c.status(who); return r.Disk != volume.DiskFull && r.Reason == "" })
		}) {
			break
		}
	}
	c.t = t
	c.eventually("all members are ready", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
	w.check(t)
	p.check(t)
	c.oneLeader()
}
