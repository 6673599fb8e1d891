// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/test/container"
)

func TestMain(m *testing.M) { os.Exit(container.Main(m)) }

// begin a Database with a table to write to.
func begin(t *testing.T, c *cluster, letters ...string) {
	t.Helper()
	for _, l := range letters {
		c.start(l)
	}
	took := c.eventually("all members are ready", 4*time.Minute, func() bool { return c.ready(letters...) })
	t.Logf("%d members ready after %s", len(letters), took)
	var err error
	c.eventually("the platform can log in", 30*time.Second, func() bool {
		conn := c.connect(c.leader(), mysqlmember.AccountAccess, "")
		defer func() { _ = conn.Close() }()
		_, err = conn.ExecContext(t.Context(), "CREATE DATABASE IF NOT EXISTS shop")
		return err == nil
	})
	conn := c.connect(c.leader(), mysqlmember.AccountAccess, "shop")
	defer func() { _ = conn.Close() }()
	for _, statement := range []string{
		"CREATE TABLE ledger (id BIGINT PRIMARY KEY)",
		"CREATE TABLE probes (id BIGINT PRIMARY KEY)",
		"CREATE USER api@'%' IDENTIFIED WITH caching_sha2_password AS 0x" + hex.EncodeToString([]byte(verifier(password))) + " REQUIRE SSL",
		"GRANT ALL ON shop.* TO api@'%'",
	} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// TestOneMember begins, serves, stops in order, and begins again with its data.
func TestOneMember(t *testing.T) {
	c := newCluster(t, "a")
	begin(t, c, "a")
	w := c.write()
	w.goesOn(10 * time.Second)
	c.eventually("the status is told", 10*time.Second, func() bool {
		s, r, role := c.status("a")
		return s.State == members.StateRunning && s.Role == members.StatusPrimary && s.Timeline == 1 && r.Version == "9.7.4" && r.Reason == "" && role == members.RoleLeader
	})
	begun := time.Now()
	c.running("a").Terminate(true)
	t.Logf("stopped after %s", time.Since(begun).Round(time.Millisecond))
	if s, _, role := c.status("a"); s.State != members.StateStopped || role != "" || c.annotations(members.SuffixLeader)[members.AnnotationLeader] != "" {
		t.Errorf("it stopped, and tells %v with the role %q, of the leader %q", s, role, c.annotations(members.SuffixLeader)[members.AnnotationLeader])
	}
	c.start("a")
	t.Logf("ready again after %s", c.eventually("it serves again", time.Minute, func() bool { return c.ready("a") }))
	w.goesOn(20 * time.Second)
	w.check(t)
}

// TestThreeMembers form a group by copying the first one, and it survives what happens to members, without a lost row.
func TestThreeMembers(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w, p := c.write(), c.askAll()
	w.goesOn(10 * time.Second)
	for _, step := range []struct {
		name string
		do   func(*testing.T, *cluster, *writer)
	}{
		{"Told", told},
		{"Parameters", parameters},
		{"Blocked", blocked},
		{"BlockedElection", blockedElection},
		{"CertificateRenewed", certificateRenewed},
		{"APIServerDown", apiServerDown},
		{"Handover", handOver},
		{"Switchover", switchOver},
		{"ServerKilled", serverKilled},
		{"ServerFrozen", serverFrozen},
		{"EverythingFrozen", everythingFrozen},
		{"NodeLost", nodeLost},
		{"AllKilled", allKilled},
		{"TwoOfThreeKilled", twoOfThreeKilled},
		{"ExtraTransactions", extraTransactions},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			c.t = t
			c.eventually("all members are ready", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
			w.goesOn(10 * time.Second)
			w.reset()
			step.do(t, c, w)
		}) {
			_, errs := w.reset()
			t.Log(errs)
		}
	}
	c.t = t
	c.eventually("all members are ready", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
	w.check(t)
	p.check(t)
	c.oneLeader()
}

// told: the status of each member, and the record of the group.
func told(t *testing.T, c *cluster, _ *writer) {
	t.Helper()
	c.eventually("all tell their status", 15*time.Second, func() bool {
		for _, l := range c.letters {
			s, r, role := c.status(l)
			if r.Reason != "" || s.State != members.StateRunning {
				return false
			}
			if l == c.leader() {
				if s.Role != members.StatusPrimary || role != members.RoleLeader {
					return false
				}
			} else if s.Role != members.StatusReplica || role != members.RoleReplica || !s.Synchronous || s.Replication != members.Streaming || s.Lag != members.LagInSync {
				return false
			}
		}
		return true
	})
	t.Log(c.annotations(members.SuffixLeader))
	t.Log(c.inside("b", "SHOW GRANTS FOR capstan@'%'"))
}

// gap of the writer over a step: once the writes go on again.
func gapOf(t *testing.T, c *cluster, w *writer, former string) {
	t.Helper()
	c.eventually("another member leads", time.Minute, func() bool { l := c.leader(); return l != "" && l != former })
	w.goesOn(time.Minute)
	gap, errs := w.reset()
	t.Logf("writes waited %s; %v", gap, errs)
}

func handOver(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former := c.leader()
	begun := time.Now()
	c.running(former).Terminate(true)
	t.Logf("stopped after %s", time.Since(begun).Round(time.Millisecond))
	gapOf(t, c, w, former)
	c.start(former)
	t.Logf("ready again after %s", c.eventually("it follows", 2*time.Minute, func() bool { return c.ready(former) }))
}

func switchOver(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former, next := c.leader(), c.followers()[1]
	c.annotate(members.SuffixFailover, "provider", map[string]string{
		members.AnnotationLeader: c.identify(former).Pod, members.AnnotationCandidate: c.identify(next).Pod,
	})
	gapOf(t, c, w, former)
	if l := c.leader(); l != next {
		t.Errorf("%s leads, want %s", l, next)
	}
	c.eventually("the wish is removed", 20*time.Second, func() bool {
		a := c.annotations(members.SuffixFailover)
		return a[members.AnnotationLeader] == "" && a[members.AnnotationCandidate] == ""
	})
}

func serverKilled(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former := c.leader()
	if err := syscall.Kill(c.running(former).Child("mysqld"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gapOf(t, c, w, former)
	t.Logf("ready again after %s", c.eventually("it follows", 2*time.Minute, func() bool { return c.ready(former) }))
}

// serverFrozen alone: its program sees that it does not answer.
func serverFrozen(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former := c.leader()
	pid := c.running(former).Child("mysqld")
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	gapOf(t, c, w, former)
	_ = syscall.Kill(pid, syscall.SIGCONT)
	t.Logf("ready again after %s", c.eventually("it follows", 2*time.Minute, func() bool { return c.ready(former) }))
}

// everythingFrozen: when it goes on it takes itself for the leader for a moment, and must not take the label back.
func everythingFrozen(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former := c.leader()
	c.running(former).Signal(syscall.SIGSTOP, nil)
	gapOf(t, c, w, former)
	c.running(former).Signal(syscall.SIGCONT, nil)
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if _, _, role := c.status(former); role == members.RoleLeader {
			t.Fatal("it took the label of the leader back")
		}
	}
	t.Logf("ready again after %s", c.eventually("it follows", 2*time.Minute, func() bool { return c.ready(former) }))
}

// nodeLost: the node of the leader, and the cluster's DNS with it.
func nodeLost(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former := c.leader()
	c.lose(former)
	gapOf(t, c, w, former)
	for _, l := range c.followers() {
		if l == former {
			continue
		}
		c.eventually("what is left stays a group", 30*time.Second, func() bool { return c.online(l) == "2" })
	}
	c.bring(former)
	t.Logf("ready again after %s", c.eventually("it follows", 2*time.Minute, func() bool { return c.ready(former) }))
}

// allKilled at once: the one that has all begins again.
func allKilled(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	for _, l := range c.letters {
		_ = syscall.Kill(c.running(l).Child("mysqld"), syscall.SIGKILL)
	}
	t.Logf("ready again after %s", c.eventually("all are back", 3*time.Minute, func() bool { return c.ready("a", "b", "c") }))
	w.goesOn(time.Minute)
	gap, errs := w.reset()
	t.Logf("writes waited %s; %v; %v", gap, errs, c.annotations(members.SuffixLeader))
}

// parameters that members set at run time go back to what the file of the server says, or to the server's default.
func parameters(_ *testing.T, c *cluster, _ *writer) {
	is := func(want string) func() bool {
		return func() bool {
			for _, l := range c.letters {
				if c.inside(l, "SELECT @@global.long_query_time, @@global.wait_timeout, @@global.sort_buffer_size, @@global.slow_query_log") != want {
					return false
				}
			}
			return true
		}
	}
	c.dynamic = map[string]string{"long_query_time": "0.5", "wait_timeout": "600", "sort_buffer_size": "1M", "slow_query_log": "ON"}
	c.compose()
	c.eventually("parameters are set", 15*time.Second, is("0.500000\t600\t1048576\t1"))
	c.dynamic = map[string]string{"slow_query_log": "OFF"}
	c.compose()
	c.eventually("parameters are reset", 15*time.Second, is("10.000000\t3600\t262144\t0"))
	c.file("config/"+mysqlmember.FileServer, []byte(strings.Replace(settings, "table_open_cache=400", "table_open_cache=500", 1)))
	c.eventually("one parameter waits for a restart", 30*time.Second, func() bool {
		for _, l := range c.letters {
			if s, _, _ := c.status(l); len(s.PendingRestart) != 1 || s.PendingRestart["table_open_cache"] == nil {
				return false
			}
		}
		return true
	})
	c.file("config/"+mysqlmember.FileServer, []byte(settings))
}

// certificateRenewed: new connections see the new certificate, and no connection breaks.
func certificateRenewed(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	serial := func(port int) string {
		out, _ := c.running("a").Enter("/usr/bin/mysql", "--no-defaults", "-h", c.identify("a").Pod+"."+c.podsHost(), "-P", strconv.Itoa(port),
			"-u"+mysqlmember.AccountReplication, "--ssl-ca="+mysqlmember.FileMemberCA, "--ssl-cert="+mysqlmember.FileMemberCert, "--ssl-key="+mysqlmember.FileMemberKey,
			"--ssl-mode=VERIFY_IDENTITY", "-N", "-B", "-e", "SHOW STATUS LIKE 'Ssl_server_not_after'; SELECT @@version")
		return out
	}
	before := serial(mysqlmember.PortMembers)
	if !strings.Contains(before, "9.7.4") {
		t.Fatalf("members cannot log in with their certificate: %s", before)
	}
	c.certificate()
	for _, l := range c.letters {
		c.eventually("the certificate is in use on "+l, 40*time.Second, func() bool {
			raw, _ := os.ReadFile(filepath.Join(c.logs, "log-"+l))
			return strings.Contains(string(raw), "certificates changed")
		})
	}
	if now := serial(mysqlmember.PortMembers); !strings.Contains(now, "9.7.4") {
		t.Errorf("members cannot log in with the new certificate: %s", now)
	}
	if _, errs := w.reset(); len(errs) > 0 {
		t.Errorf("clients lost their connections: %v", errs)
	}
}

// apiServerDown: who leads goes on, and takes the label that it has.
func apiServerDown(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	leader := c.leader()
	c.setAPI(false)
	time.Sleep(20 * time.Second)
	if !c.ready(c.letters...) || c.leader() != leader {
		t.Error("members are not ready without the API server")
	}
	gap, errs := w.reset()
	t.Logf("writes waited %s; %v", gap, errs)
	if gap > 3*time.Second || len(errs) > 0 {
		t.Error("writes waited for the API server")
	}
	c.setAPI(true)
}

// twoOfThreeKilled: the third one takes neither writes nor reads, and goes on when the others are back.
func twoOfThreeKilled(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	third := c.leader()
	gone := c.followers()
	for _, l := range gone {
		c.running(l).Kill()
	}
	c.eventually("the third one gives up", 40*time.Second, func() bool {
		_, r, role := c.status(third)
		return c.probe(third, "/readyz") != nil && role == "" && r.Reason != ""
	})
	// Five seconds, the ten after which it leaves, and the thirty that the server then waits for the threads of the group.
	c.eventually("it says whom it waits for", 70*time.Second, func() bool {
		_, r, _ := c.status(third)
		return r.Reason == members.ReasonWaitingForMembers && strings.Contains(r.Message, database+"-"+gone[0])
	})
	w.reset()
	n := w.count()
	for _, l := range gone {
		c.start(l)
	}
	t.Logf("ready again after %s", c.eventually("all are back", 3*time.Minute, func() bool { return c.ready("a", "b", "c") }))
	w.goesOn(time.Minute)
	gap, errs := w.reset()
	t.Logf("writes waited %s, after %d rows; %v", gap, n, errs)
}

// extraTransactions keep a member out of the group, and it says which ones.
func extraTransactions(t *testing.T, c *cluster, _ *writer) {
	t.Helper()
	odd := c.followers()[0]
	out := c.inside(odd, "STOP GROUP_REPLICATION; SET GLOBAL super_read_only = OFF; CREATE DATABASE extra; SELECT CONCAT(@@server_uuid, ':1')")
	var message string
	c.eventually("it tells of them", 30*time.Second, func() bool {
		_, r, role := c.status(odd)
		message = r.Message
		return r.Reason == mysqlmember.ReasonExtraTransactions && role == ""
	})
	t.Log(message)
	if !strings.Contains(message, out) {
		t.Errorf("it tells %q, and has %q more than the group", message, out)
	}
	// As the message says.
	c.running(odd).Kill()
	if err := os.RemoveAll(filepath.Join(c.base, "data-"+odd)); err != nil {
		t.Fatal(err)
	}
	c.start(odd)
	t.Logf("ready again after %s", c.eventually("it has the data of the group", 2*time.Minute, func() bool { return c.ready(odd) }))
}

// TestKilledAfterSwitchover: a leader is killed as soon as it is one, and another member has come back just before, several times.
func TestKilledAfterSwitchover(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w := c.write()
	for range 4 {
		c.eventually("all members are ready", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
		w.goesOn(10 * time.Second)
		handOver(t, c, w)
		switchOver(t, c, w)
		serverKilled(t, c, w)
	}
	w.check(t)
	c.oneLeader()
}
