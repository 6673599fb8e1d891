// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// request a member to be copied again, as the composition does.
func (c *cluster) request(id, letter string) {
	c.t.Helper()
	c.config.Reinitialize = &members.Reinitialize{ID: id, Member: c.identify(letter).Name}
	c.shared()
}

// becomes waits for what becomes of the request.
func (c *cluster) becomes(id, letter, outcome string) members.ReinitializeReport {
	c.t.Helper()
	var r members.ReinitializeReport
	took := c.eventually("outcome "+outcome, 2*time.Minute, func() bool {
		_, report, _ := c.status(letter)
		r = report.Reinitialize
		return r.ID == id && r.Outcome == outcome
	})
	c.t.Logf("%s is %s after %s: %s", id, outcome, took, r.Message)
	return r
}

// TestReinitialize copies a member again when a person requests it, once for each id, while clients write. The leader refuses, and so
// does a member without which too few would be left.
func TestReinitialize(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w := c.write()
	w.goesOn(5 * time.Second)
	leader, doubted, other := c.leader(), c.followers()[0], c.followers()[1]
	data := func() string { return c.inside(doubted, "SELECT @@server_uuid") }
	first := data()

	c.request("1", doubted)
	c.becomes("1", doubted, members.ReinitializeDone)
	c.eventually("all are ready", time.Minute, func() bool { return c.ready("a", "b", "c") })
	copied := data()
	if copied == first {
		t.Errorf("the data is still %s", first)
	}
	w.goesOn(10 * time.Second)

	c.request("2", leader)
	c.becomes("2", leader, members.ReinitializeRefused)

	// A program that ends does not carry out the same request again.
	c.running(doubted).Kill()
	c.request("1", doubted)
	c.start(doubted)
	c.eventually("it is back", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
	c.becomes("1", doubted, members.ReinitializeDone)
	if again := data(); again != copied {
		t.Errorf("the same id copied the data twice: %s, then %s", copied, again)
	}

	// One of three that is lost could leave the leader alone.
	c.running(other).Kill()
	c.request("3", doubted)
	if r := c.becomes("3", doubted, members.ReinitializeWaiting); !strings.Contains(r.Message, "more than half of the 2 other members") {
		t.Errorf("want it to say for what, got %q", r.Message)
	}
	w.goesOn(30 * time.Second)
	if again := data(); again != copied {
		t.Errorf("its data is %s, and should stay %s", again, copied)
	}
	c.start(other)
	c.becomes("3", doubted, members.ReinitializeDone)
	c.eventually("all are ready", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
	w.goesOn(15 * time.Second)

	// Transactions that the group does not have go with the data.
	c.inside(doubted, "STOP GROUP_REPLICATION; SET GLOBAL super_read_only = OFF; CREATE DATABASE extra")
	c.eventually("it tells of them", 30*time.Second, func() bool {
		_, r, _ := c.status(doubted)
		return r.Reason == mysqlmember.ReasonExtraTransactions
	})
	c.request("4", doubted)
	c.becomes("4", doubted, members.ReinitializeDone)
	if got := c.inside(doubted, "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'extra'"); got != "0" {
		t.Errorf("want them to be gone, got %s", got)
	}

	// So does data that no server starts on.
	c.running(doubted).Kill()
	if err := os.Truncate(filepath.Join(c.base, "data-"+doubted, "mysql", "ibdata1"), 0); err != nil {
		t.Fatal(err)
	}
	c.start(doubted)
	c.eventually("its server does not start", time.Minute, func() bool {
		s, _, _ := c.status(doubted)
		return s.State == members.StateStartFailed || s.State == members.StateCrashed
	})
	c.request("5", doubted)
	c.becomes("5", doubted, members.ReinitializeDone)
	c.eventually("all are ready", time.Minute, func() bool { return c.ready("a", "b", "c") })
	w.check(t)
	c.oneLeader()
}
