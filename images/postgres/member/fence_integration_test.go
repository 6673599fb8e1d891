// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// TestFenceMember keeps a standby stopped while clients write, also after a restart of its pod and a failover of the others. The leader refuses.
// Without the request the standby follows again.
func TestFenceMember(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w := c.write()
	w.goesOn(5 * time.Second)
	leader := c.leader()
	doubted := c.standbyOf(leader)
	request := func(id, letter, outcome string) {
		t.Helper()
		c.want(pgmember.Config{Fence: &members.MemberFence{ID: id, Member: c.identify(letter).Name}})
		took := c.eventually("outcome "+outcome, time.Minute, func() bool {
			r := c.report(letter).Fence
			return r.ID == id && r.Outcome == outcome
		})
		t.Logf("%s after %s", outcome, took.Round(time.Second))
	}
	request("1", leader, members.FenceRefused)
	request("2", doubted, members.FenceStopped)
	stopped := func() bool {
		reason, _ := c.blockedBy(doubted)
		return reason == members.ReasonStopped && c.probe(doubted, "/readyz") != nil && c.probe(doubted, "/livez") == nil
	}
	c.eventually("it is stopped, and its pod is well", time.Minute, stopped)
	if out, err := c.running(doubted).Enter(pgmember.Programs("17")+"/pg_controldata", pgmember.FolderData); err != nil {
		t.Errorf("its data cannot be looked at: %v: %s", err, out)
	}
	w.goesOn(15 * time.Second)
	c.running(doubted).Kill()
	c.start(doubted)
	c.eventually("it is stopped after a restart as well", time.Minute, stopped)

	// A failover of the others goes without it, and a leader that refused once stays up as a standby.
	w.reset()
	c.running(leader).Kill()
	c.eventually("another member leads", time.Minute, func() bool { l := c.leader(); return l != "" && l != leader })
	if l := c.leader(); l == doubted {
		t.Errorf("%s leads, which is kept stopped", l)
	}
	w.goesOn(15 * time.Second)
	c.start(leader)
	c.want(pgmember.Config{Fence: &members.MemberFence{ID: "1", Member: c.identify(leader).Name}})
	c.eventually("all are ready", 90*time.Second, func() bool { return c.ready("a", "b", "c") })
	c.eventually("the refusal is still reported", time.Minute, func() bool { return c.report(leader).Fence.Outcome == members.FenceRefused })
	c.want(pgmember.Config{})
	c.eventually("no request is reported", time.Minute, func() bool { return c.report(leader).Fence.ID == "" })
	// A request that was carried out is not carried out again: the member may lead since.
	request("2", doubted, members.FenceSkipped)
	c.eventually("it still runs", time.Minute, func() bool { return c.ready("a", "b", "c") })
	w.check(t)
	c.oneLeader()
}
