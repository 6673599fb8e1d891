// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
)

// TestFenceMember keeps a standby stopped while clients write: after a restart of its pod, and through an outage of both others, which begin
// without it. The leader refuses. Without the request the standby follows again.
func TestFenceMember(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w := c.write()
	w.goesOn(5 * time.Second)
	leader, doubted, other := c.leader(), c.followers()[0], c.followers()[1]
	request := func(id, letter, outcome string) {
		t.Helper()
		c.config.Fence = nil
		if id != "" {
			c.config.Fence = &members.MemberFence{ID: id, Member: c.identify(letter).Name}
		}
		c.configure()
		took := c.eventually("outcome "+outcome, 2*time.Minute, func() bool {
			_, r, _ := c.status(letter)
			return r.Fence.ID == id && r.Fence.Outcome == outcome
		})
		t.Logf("%s after %s", outcome, took)
	}
	request("1", leader, members.FenceRefused)
	request("2", doubted, members.FenceStopped)
	stopped := func() bool {
		s, r, role := c.status(doubted)
		return r.Reason == members.ReasonStopped && s.State == members.StateStopped && role == "" &&
			c.probe(doubted, "/readyz") != nil && c.probe(doubted, "/livez") == nil
	}
	c.eventually("it is stopped, and its pod is well", time.Minute, stopped)
	w.goesOn(15 * time.Second)
	if gap, errs := w.reset(); gap > 2*time.Second {
		t.Errorf("writes waited %s for it: %v", gap, errs)
	}
	c.running(doubted).Kill()
	c.start(doubted)
	c.eventually("it is stopped after a restart as well", time.Minute, stopped)

	// The group left it out, so the two others know all that was acknowledged.
	for _, l := range []string{leader, other} {
		c.running(l).Kill()
	}
	for _, l := range []string{leader, other} {
		c.start(l)
	}
	c.eventually("the others are ready", 2*time.Minute, func() bool { return c.ready(leader, other) })
	if l := c.leader(); l == doubted || !stopped() {
		t.Errorf("%s leads, and %s should still be stopped", l, doubted)
	}
	w.goesOn(30 * time.Second)

	request("", doubted, "")
	c.eventually("it follows again", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
	// A request that was carried out is not carried out again: the member may lead since.
	request("2", doubted, members.FenceSkipped)
	c.eventually("it still runs", time.Minute, func() bool { return c.ready("a", "b", "c") })
	w.check(t)
	c.oneLeader()
}
