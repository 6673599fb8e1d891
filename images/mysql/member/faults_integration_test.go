// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
)

// TestRareFaults are those that need more than one thing to go wrong.
func TestRareFaults(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	for _, l := range c.letters {
		c.volume(l, 1500)
	}
	begin(t, c, "a", "b", "c")
	w, p := c.write(), c.askAll()
	w.goesOn(10 * time.Second)
	for _, step := range []struct {
		name string
		do   func(*testing.T, *cluster, *writer)
	}{
		{"RejoinsWithoutAPIServer", rejoinsWithoutAPIServer},
		{"FarBehind", farBehind},
		{"LeaderNeverRemoved", leaderNeverRemoved},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			c.t = t
			c.eventually("all members are ready", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
			w.goesOn(10 * time.Second)
			w.reset()
			step.do(t, c, w)
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

// primary as the members that are online say, if they agree; and whether it takes writes of clients.
func (c *cluster) primary() (letter string, open bool) {
	for _, l := range c.letters {
		out := c.inside(l, "SELECT MEMBER_ROLE, @@super_read_only, @@offline_mode FROM performance_schema.replication_group_members "+
			"WHERE MEMBER_ID = @@server_uuid AND MEMBER_STATE = 'ONLINE'")
		if strings.HasPrefix(out, "PRIMARY\t") {
			return l, out == "PRIMARY\t0\t0"
		}
	}
	return "", false
}

// online reports how many members of the group a member sees online.
func (c *cluster) online(letter string) string {
	return c.inside(letter, "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'")
}

// rejoinsWithoutAPIServer: leaders are killed one after the other while the API server is away. Each comes back by what the others say, and
// leads only once its seat is recorded.
func rejoinsWithoutAPIServer(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	c.setAPI(false)
	defer c.setAPI(true)
	killed := map[string]bool{}
	for range 2 {
		former, _ := c.primary()
		begun := time.Now()
		_ = syscall.Kill(c.running(former).Child("mysqld"), syscall.SIGKILL)
		killed[former] = true
		c.eventually("another one leads, which is recorded", time.Minute, func() bool { l, open := c.primary(); return open && !killed[l] })
		t.Logf("%s was killed, and another one takes writes after %s", former, time.Since(begun).Round(10*time.Millisecond))
		c.eventually("it is back without the API server", 2*time.Minute, func() bool { return c.online(former) == "3" })
		t.Logf("%s is back after %s", former, time.Since(begun).Round(10*time.Millisecond))
	}
	last, _ := c.primary()
	_ = syscall.Kill(c.running(last).Child("mysqld"), syscall.SIGKILL)
	c.eventually("one leads that is not recorded", time.Minute, func() bool { l, _ := c.primary(); return l != "" && l != last })
	// The server of the new leader takes writes until its program sees that it leads.
	var since time.Time
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		l, open := c.primary()
		switch {
		case !open:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > 500*time.Millisecond:
			t.Fatalf("%s takes writes, and after an outage nobody would wait for it", l)
		}
	}
	c.setAPI(true)
	t.Logf("takes writes %s after the API server is back", c.eventually("it takes writes", 30*time.Second, func() bool { _, open := c.primary(); return open }))
	c.eventually("all members are back", 2*time.Minute, func() bool { return c.ready(c.letters...) })
	w.goesOn(30 * time.Second)
	c.eventually("all are recorded", 20*time.Second, func() bool {
		return strings.Count(c.annotations(members.SuffixLeader)["capstan.dev/view"], `"name"`) == 3
	})
}

// farBehind: the others have removed the binary logs that a member needs, which copies all data again by itself.
func farBehind(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	away := c.followers()[0]
	c.running(away).Terminate(true)
	w.goesOn(10 * time.Second)
	for _, l := range c.letters {
		if l != away {
			if out := c.inside(l, "FLUSH BINARY LOGS; DO SLEEP(1); PURGE BINARY LOGS BEFORE NOW()"); out != "" {
				t.Fatal(out)
			}
		}
	}
	w.goesOn(10 * time.Second)
	c.start(away)
	t.Logf("ready again after %s", c.eventually("it follows", 2*time.Minute, func() bool { return c.ready(away) }))
	raw, _ := os.ReadFile(filepath.Join(c.logs, "log-"+away))
	if !strings.Contains(string(raw), "the server copied data, and starts again") {
		t.Error("it is ready, and did not copy the data")
	}
	if _, r, _ := c.status(away); r.Reason != "" {
		t.Errorf("it reports %v", r)
	}
}

// leaderNeverRemoved: a group that has a majority keeps a leader that it does not hear of, and elects no other one. Here that is because
// it removes nobody within an hour; it was seen with leaders that were killed seconds after another member had joined. When the server of
// the leader is back, in no group, all begin again together.
func leaderNeverRemoved(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	for _, l := range c.letters {
		if out := c.inside(l, "SET GLOBAL group_replication_member_expel_timeout = 3600"); out != "" {
			t.Fatal(out)
		}
	}
	former := c.leader()
	_ = syscall.Kill(c.running(former).Child("mysqld"), syscall.SIGKILL)
	seen := c.followers()[0]
	c.eventually("the group keeps it", 30*time.Second, func() bool {
		return c.inside(seen, "SELECT MEMBER_STATE FROM performance_schema.replication_group_members WHERE MEMBER_ROLE = 'PRIMARY'") == "UNREACHABLE"
	})
	begun := time.Now()
	// A minute until they leave, and half of one until the group's threads have ended.
	w.goesOn(4 * time.Minute)
	c.eventually("all begin again", 2*time.Minute, func() bool { return c.ready(c.letters...) })
	gap, errs := w.reset()
	t.Logf("ready again after %s, writes waited %s; %v", time.Since(begun).Round(time.Millisecond), gap, errs)
	for _, l := range c.letters {
		c.inside(l, "SET GLOBAL group_replication_member_expel_timeout = 0")
	}
}

// TestLongAPIOutage: the API server is away for five minutes, and the leader is lost meanwhile. Clients that are connected notice nothing before
// that, members elect and come back by themselves, and all is recorded afterwards.
func TestLongAPIOutage(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w, p := c.write(), c.askAll()
	w.goesOn(10 * time.Second)
	w.reset()
	former := c.leader()
	c.setAPI(false)
	defer c.setAPI(true)
	begun := time.Now()
	time.Sleep(2 * time.Minute)
	if gap, errs := w.reset(); gap > 3*time.Second || len(errs) > 0 || !c.ready(c.letters...) {
		t.Errorf("in two minutes without the API server writes waited %s; %v", gap, errs)
	}
	_ = syscall.Kill(c.running(former).Child("mysqld"), syscall.SIGKILL)
	t.Logf("another one takes writes after %s", c.eventually("another one takes writes", time.Minute, func() bool { l, open := c.primary(); return open && l != former }))
	t.Logf("%s is back after %s", former, c.eventually("it is back", 2*time.Minute, func() bool { return c.online(former) == "3" }))
	next, _ := c.primary()
	for time.Since(begun) < 5*time.Minute {
		time.Sleep(time.Second)
		if l, open := c.primary(); l != next || !open {
			t.Errorf("%s was the leader, and now %s is, which takes writes: %t", next, l, open)
			break
		}
	}
	c.setAPI(true)
	t.Logf("labelled %s after the API server is back", c.eventually("it has the label", 30*time.Second, func() bool { return c.leader() == next }))
	w.goesOn(10 * time.Second)
	c.eventually("all are ready and recorded", 30*time.Second, func() bool {
		a := c.annotations(members.SuffixLeader)
		return c.ready(c.letters...) && strings.Count(a["capstan.dev/view"], `"name"`) == 3 && a[members.AnnotationLeader] == c.identify(next).Pod
	})
	for _, l := range c.letters {
		if _, r, _ := c.status(l); r.Reason != "" {
			t.Errorf("%s reports %v", l, r)
		}
	}
	w.check(t)
	p.check(t)
	c.oneLeader()
}
