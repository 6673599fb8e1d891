// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// TestReinitialize copies a standby again when a person requests it, once for each id, while clients write. The leader refuses.
func TestReinitialize(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w := c.write()
	w.goesOn(5 * time.Second)
	leader := c.leader()
	doubted := c.standbyOf(leader)
	const made = "select (pg_stat_file('PG_VERSION')).modification"
	before := c.asSuperuser(doubted, made)
	request := func(id, letter, outcome string) {
		t.Helper()
		c.want(pgmember.Config{Reinitialize: &members.Reinitialize{ID: id, Member: c.identify(letter).Name}})
		took := c.eventually("outcome "+outcome, 2*time.Minute, func() bool {
			r := c.report(letter).Reinitialize
			return r.ID == id && r.Outcome == outcome
		})
		t.Logf("%s after %s", outcome, took.Round(time.Second))
	}
	request("1", doubted, members.ReinitializeDone)
	copied := c.asSuperuser(doubted, made)
	if copied == before {
		t.Errorf("the data is still of %s", before)
	}
	c.eventually("all are ready", time.Minute, func() bool { return c.ready("a", "b", "c") })
	request("2", leader, members.ReinitializeRefused)
	c.running(doubted).Kill()
	c.start(doubted)
	c.want(pgmember.Config{Reinitialize: &members.Reinitialize{ID: "1", Member: c.identify(doubted).Name}})
	c.eventually("it follows again", time.Minute, func() bool { return c.ready("a", "b", "c") })
	w.goesOn(15 * time.Second)
	if again := c.asSuperuser(doubted, made); again != copied {
		t.Errorf("the same id copied the data twice: %s, then %s", copied, again)
	}
	w.check(t)
	c.oneLeader()
}
