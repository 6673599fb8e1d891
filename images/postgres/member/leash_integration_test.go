// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/images/member/process"
)

// asynchronous makes a cluster whose leader acknowledges commits alone.
func asynchronous(c *cluster) { c.server.Synchronous = false }

// TestNoLeaderWithoutPatroni: a session that is open at a leader whose Patroni cannot come back has no commit acknowledged after
// another member leads.
func TestNoLeaderWithoutPatroni(t *testing.T) {
	c := newClusterWith(t, []string{"a", "b"}, asynchronous)
	begin(t, c, "a", "b")
	before := c.leader()
	conn, err := c.connect(t.Context(), before, "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	// The mark is missing, so the gate lets no Patroni start.
	mark := filepath.Join(c.base, "data-"+before, "capstan.json")
	if err := os.Rename(mark, mark+".away"); err != nil {
		t.Fatal(err)
	}
	if n := c.running(before).Signal(syscall.SIGKILL, func(p process.Process) bool { return p.Name == "patroni" }); n == 0 {
		t.Fatal("found no Patroni")
	}
	killed := time.Now()
	var last time.Time
	for id := 1; time.Since(killed) < 40*time.Second; id++ {
		one, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := conn.Exec(one, "insert into public.ledger (id) values ($1)", 1_000_000+id)
		cancel()
		if err != nil {
			break
		}
		last = time.Now()
		time.Sleep(20 * time.Millisecond)
	}
	took := last.Sub(killed).Round(10 * time.Millisecond)
	t.Logf("the last commit was acknowledged after %s", took)
	if ttl := time.Duration(c.server.Pace.TTL) * time.Second; took >= ttl {
		t.Errorf("commits were acknowledged for %s, want less than the ttl of %s", took, ttl)
	}
	c.eventually("another member leads", time.Minute, func() bool { return c.leader() != before && c.leader() != "" })
	c.mu.Lock()
	leads := c.events[len(c.events)-1].at
	c.mu.Unlock()
	if !last.Before(leads) {
		t.Errorf("a commit was acknowledged %s after another member led", last.Sub(leads))
	}
	if c.probe(before, "/readyz") == nil {
		t.Error("the former leader is ready")
	}
	if err := errors.Join(os.Rename(mark+".away", mark)); err != nil {
		t.Fatal(err)
	}
	c.eventually("it follows again", 2*time.Minute, func() bool { return c.ready("a", "b") })
	c.oneLeader()
	c.labelFollowsLock()
}

// rounds of a test: so many, or as the environment says.
func rounds(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("CAPSTAN_ROUNDS")); err == nil {
		return n
	}
	return usual
}

// TestLabelFollowsLock: a leader is frozen with all that belongs to it, and thawed at the moment in which another gets the label.
func TestLabelFollowsLock(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w := c.write()
	for round := range rounds(2) {
		c.eventually("all members are ready", 10*time.Minute, func() bool { return c.ready("a", "b", "c") && c.synchronous() })
		before := c.leader()
		r := c.running(before)
		r.Signal(syscall.SIGSTOP, nil)
		took := c.eventually("another member leads", time.Minute, func() bool { return c.leader() != before && c.leader() != "" })
		r.Signal(syscall.SIGCONT, nil)
		now := c.leader()
		// A machine that others use is slow to start a server, which is no defect.
		back := c.eventually("the old leader follows", 10*time.Minute, func() bool {
			return c.pods()[before].Labels[v1alpha1.LabelRole] == v1alpha1.RoleLabelReplica
		})
		if c.leader() != now {
			t.Errorf("round %d: %s leads, and %s led", round, c.leader(), now)
		}
		gap, _ := w.reset()
		t.Logf("round %d: another led after %s, the old leader followed after %s more, longest gap in writing %s", round, took, back, gap)
	}
	w.check(t)
	c.oneLeader()
	c.labelFollowsLock()
	c.onePromotion()
}
