// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"strconv"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
)

// TestCut: members lose the network between them, while clients still reach each one. The one that is cut off takes no write, the others go on,
// and afterwards all are one group again.
func TestCut(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w, p := c.write(), c.askAll()
	w.goesOn(10 * time.Second)
	c.through(t, w, p, []step{
		{"Follower", followerCut},
		{"Leader", leaderCut},
		{"LeaderFromOne", leaderCutFromOne},
		{"AllFromAll", allCut},
	})
}

// shut reports whether a member lets no client in.
func (c *cluster) shut(letter string) bool {
	return c.probe(letter, "/readyz") != nil && c.inside(letter, "SELECT @@super_read_only, @@offline_mode") == "1\t1"
}

// whole waits until all members are one group, and clients write.
func (c *cluster) whole(w *writer) {
	c.t.Helper()
	took := c.eventually("all are one group", 4*time.Minute, func() bool {
		for _, l := range c.letters {
			if c.online(l) != strconv.Itoa(len(c.letters)) {
				return false
			}
		}
		return c.ready(c.letters...)
	})
	w.goesOn(time.Minute)
	gap, errs := w.reset()
	c.t.Logf("one group again after %s, writes waited %s; %v", took, gap, errs)
}

// followerCut: it closes, and the leader stays.
func followerCut(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	leader, away := c.leader(), c.followers()[0]
	c.cut(away)
	c.eventually("the group goes on without it", 30*time.Second, func() bool { return c.online(leader) == "2" })
	c.eventually("it closes", time.Minute, func() bool { return c.shut(away) })
	w.goesOn(10 * time.Second)
	if l := c.leader(); l != leader {
		t.Errorf("%s was the leader, and %s is", leader, l)
	}
	c.rejoin(away)
	c.whole(w)
}

// leaderCut: another member leads, and the former one has neither writes nor a label when it is back.
func leaderCut(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former := c.leader()
	c.cut(former)
	gapOf(t, c, w, former)
	c.eventually("it closes", time.Minute, func() bool { return c.shut(former) })
	c.rejoin(former)
	c.whole(w)
	if _, r, role := c.status(former); role != members.RoleReplica || r.Reason != "" {
		t.Errorf("%s has the role %q, and reports %v", former, role, r)
	}
}

// leaderCutFromOne: a standby and the leader do not hear from each other, and the third member hears from both.
func leaderCutFromOne(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	leader, apart := c.leader(), c.followers()[1]
	c.part(leader, apart)
	c.eventually("the group goes on with two", time.Minute, func() bool {
		for _, l := range c.letters {
			if open, of := c.inside(l, "SELECT @@super_read_only"), c.online(l); open == "0" && of == "2" {
				return true
			}
		}
		return false
	})
	w.goesOn(time.Minute)
	gap, errs := w.reset()
	t.Logf("%s leads, writes waited %s; %v", c.leader(), gap, errs)
	c.unite(leader, apart)
	c.whole(w)
}

// allCut: no member hears from another one, as when a switch fails. All close, and are one group again without a person.
func allCut(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	pairs := [][2]string{{"a", "b"}, {"a", "c"}, {"b", "c"}}
	for _, p := range pairs {
		c.part(p[0], p[1])
	}
	for _, l := range c.letters {
		c.eventually(l+" closes", 90*time.Second, func() bool { return c.shut(l) })
	}
	for _, p := range pairs {
		c.unite(p[0], p[1])
	}
	c.whole(w)
}
