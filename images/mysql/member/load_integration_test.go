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
)

// What users do while members fail, and what it costs: transactions near the limit, and changes of tables.

// statements of a client that waits as long as they take, on the member's own machine. What they print comes on the channel when they end.
func (c *cluster) statements(letter, text string) <-chan string {
	said := make(chan string, 1)
	go func() { said <- c.inside(letter, text) }()
	return said
}

// executes reports whether a statement that begins with these words is executed on a member.
func (c *cluster) executes(letter, words string) bool {
	return c.inside(letter, "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO LIKE '"+words+"%'") == "1"
}

// same waits until all members have executed the same, and returns what a query says on each of them. They must agree.
func (c *cluster) same(query string) string {
	c.t.Helper()
	c.eventually("members have executed the same", 2*time.Minute, func() bool {
		sets := map[string]bool{}
		for _, l := range c.letters {
			// What is written meanwhile is the writer's, and comes at all of them.
			sets[c.inside(l, query)] = true
		}
		return len(sets) == 1
	})
	return c.inside(c.letters[0], query)
}

// rowsOf 1 KiB fill a table in one transaction.
func rowsOf(table, number string) string {
	return "USE shop; SET SESSION cte_max_recursion_depth = 1000000; INSERT INTO shop." + table + " WITH RECURSIVE s (n) AS " +
		"(SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < " + number + ") SELECT n, RANDOM_BYTES(1024) FROM s"
}

// TestUnderLoad: large transactions and changes of tables, alone and while the leader fails.
func TestUnderLoad(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	for _, l := range c.letters {
		c.volume(l, 2500)
	}
	begin(t, c, "a", "b", "c")
	w, p := c.write(), c.askAll()
	w.goesOn(10 * time.Second)
	for _, step := range []struct {
		name string
		do   func(*testing.T, *cluster, *writer)
	}{
		{"TooLarge", tooLarge},
		{"LargeDuringFailover", largeDuringFailover},
		{"DDLDuringFailover", ddlDuringFailover},
		{"DDLBeforeFailover", ddlBeforeFailover},
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

// tooLarge: a transaction over the limit is refused, the log of the leader says by how much, and nobody else notices.
func tooLarge(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	leader := c.leader()
	if said := c.inside(leader, "CREATE TABLE shop.large (id INT PRIMARY KEY, data LONGBLOB)"); said != "" {
		t.Fatal(said)
	}
	begun := time.Now()
	said := c.inside(leader, rowsOf("large", "160000")+"; SELECT 'committed'")
	t.Logf("after %s: %s", time.Since(begun).Round(100*time.Millisecond), said)
	if !strings.Contains(said, "ERROR 3100") {
		t.Errorf("a transaction of 160 MB ended with %q, want error 3100", said)
	}
	raw, err := os.ReadFile(filepath.Join(c.logs, "log-"+leader))
	if err != nil || !strings.Contains(string(raw), "exceeds specified limit 150000000") {
		t.Errorf("the log of the leader does not say that it was too large: %v", err)
	}
	if n := c.same("SELECT COUNT(*) FROM shop.large"); n != "0" {
		t.Errorf("%s rows of it are there", n)
	}
	gap, errs := w.reset()
	t.Logf("writes waited %s; %v", gap, errs)
	if l := c.leader(); l != leader || len(errs) > 0 {
		t.Errorf("%s was the leader, and %s is; %v", leader, l, errs)
	}
}

// largeDuringFailover: the leader is killed while it commits a transaction near the limit. All of it is there, or nothing, on every member.
func largeDuringFailover(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former := c.leader()
	said := c.statements(former, rowsOf("large", "140000")+"; SELECT 'committed'")
	c.eventually("it is executed", 10*time.Second, func() bool { return c.executes(former, "INSERT INTO shop.large") })
	// When its rows are in the table it is on its way to the group.
	c.eventually("it commits", 2*time.Minute, func() bool {
		return c.inside(former, "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO LIKE 'INSERT INTO shop.large%' AND STATE LIKE 'waiting for handler commit%'") == "1" ||
			!c.executes(former, "INSERT INTO shop.large")
	})
	_ = syscall.Kill(c.running(former).Child("mysqld"), syscall.SIGKILL)
	answer := <-said
	gapOf(t, c, w, former)
	c.eventually("it follows", 3*time.Minute, func() bool { return c.ready(c.letters...) })
	n := c.same("SELECT COUNT(*) FROM shop.large")
	t.Logf("the client heard %q, and %s rows are there", answer, n)
	if n != "140000" && (n != "0" || answer == "committed") {
		t.Errorf("%s of 140000 rows are there, and the client heard %q", n, answer)
	}
}

// ddlDuringFailover: the leader is killed while it changes a table. Members have one definition of it afterwards.
func ddlDuringFailover(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former := c.leader()
	if said := c.inside(former, "CREATE TABLE shop.wide (id INT PRIMARY KEY, data LONGBLOB); "+rowsOf("wide", "60000")); said != "" {
		t.Fatal(said)
	}
	w.reset()
	said := c.statements(former, "ALTER TABLE shop.wide ADD COLUMN more INT, ALGORITHM=COPY; SELECT 'altered'")
	c.eventually("it is executed", 10*time.Second, func() bool { return c.executes(former, "ALTER TABLE shop.wide") })
	time.Sleep(500 * time.Millisecond)
	_ = syscall.Kill(c.running(former).Child("mysqld"), syscall.SIGKILL)
	answer := <-said
	gapOf(t, c, w, former)
	c.eventually("it follows", 3*time.Minute, func() bool { return c.ready(c.letters...) })
	n := c.same("SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'wide'")
	t.Logf("the client heard %q, and the table has %s columns", answer, n)
	if n != "3" && (n != "2" || answer == "altered") {
		t.Errorf("the table has %s columns, and the client heard %q", n, answer)
	}
	if sum := c.same("CHECKSUM TABLE shop.wide"); sum == "" || strings.Contains(sum, "NULL") {
		t.Errorf("its checksum is %q", sum)
	}
}

// ddlBeforeFailover: the others still change a table, as the leader did, when it is killed. The next leader takes writes once it has changed it.
func ddlBeforeFailover(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former := c.leader()
	begun := time.Now()
	if said := c.inside(former, "ALTER TABLE shop.wide ADD COLUMN yet INT, ALGORITHM=COPY; SELECT 'altered'"); said != "altered" {
		t.Fatal(said)
	}
	t.Logf("altered after %s", time.Since(begun).Round(10*time.Millisecond))
	_ = syscall.Kill(c.running(former).Child("mysqld"), syscall.SIGKILL)
	gapOf(t, c, w, former)
	c.eventually("it follows", 3*time.Minute, func() bool { return c.ready(c.letters...) })
	if n := c.same("SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'wide' AND column_name = 'yet'"); n != "1" {
		t.Errorf("what was acknowledged is lost: %s columns", n)
	}
	if sum := c.same("CHECKSUM TABLE shop.wide"); sum == "" || strings.Contains(sum, "NULL") {
		t.Errorf("its checksum is %q", sum)
	}
}
