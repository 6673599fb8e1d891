// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// session of a consumer at a member, in which statements were executed, and which is idle since.
func (c *cluster) session(letter string, statements ...string) *sql.Conn {
	c.t.Helper()
	db := c.connect(letter, consumer, "shop")
	conn, err := db.Conn(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = conn.Close() // without it its transaction would stay, and a switchover wait for it
		_ = db.Close()
	})
	for _, one := range statements {
		if _, err := conn.ExecContext(c.t.Context(), one); err != nil {
			c.t.Fatalf("%s: %v", one, err)
		}
	}
	return conn
}

// consumes is what a consumer at a member hears of statements that may take long. It comes on the channel when they end.
func (c *cluster) consumes(letter, text string) <-chan string {
	said := make(chan string, 1)
	go func() {
		out, _ := c.running(letter).Enter("/usr/bin/mysql", "--no-defaults", "-h"+c.identify(letter).IP, "-u"+consumer, "-p"+password, "--ssl-mode=REQUIRED",
			"-N", "-B", "-e", text, "shop")
		said <- out
	}()
	return said
}

// blockedElection: clients of both standbys keep a table when the leader is lost. Clients that write do not wait for them for half a minute more.
func blockedElection(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former := c.leader()
	for _, l := range c.followers() {
		c.session(l, "BEGIN", "SELECT id FROM held")
	}
	if said := c.inside(former, "ALTER TABLE shop.held ADD COLUMN again INT"); said != "" {
		t.Fatal(said)
	}
	for _, l := range c.followers() {
		c.eventually(l+" waits for its client", 10*time.Second, func() bool {
			return c.inside(l, "SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE OBJECT_NAME = 'held' AND LOCK_STATUS = 'PENDING'") == "1"
		})
	}
	w.reset()
	_ = syscall.Kill(c.running(former).Child("mysqld"), syscall.SIGKILL)
	c.eventually("another member leads", time.Minute, func() bool { l := c.leader(); return l != "" && l != former })
	w.goesOn(time.Minute)
	gap, errs := w.reset()
	t.Logf("writes waited %s; %v", gap, errs)
	if gap > 20*time.Second {
		t.Errorf("clients that write wait for clients that read")
	}
	c.eventually("it follows", 2*time.Minute, func() bool { return c.ready(former) })
}

// blocked: clients of standbys keep what the leader changes. Each standby ends their sessions after 30 s and applies what it received. It ends
// no other session: neither one with a transaction on another table, nor one that waits for the change.
func blocked(t *testing.T, c *cluster, _ *writer) {
	t.Helper()
	leader, reads, locks := c.leader(), c.followers()[0], c.followers()[1]
	if said := c.inside(leader, "CREATE TABLE shop.held (id INT PRIMARY KEY); INSERT INTO shop.held VALUES (1); CREATE TABLE shop.other LIKE shop.held"); said != "" {
		t.Fatal(said)
	}
	c.same("SELECT COUNT(*) FROM shop.other")
	idle := c.session(reads, "BEGIN", "SELECT id FROM held")
	other := c.session(reads, "BEGIN", "SELECT id FROM other")
	locked := c.session(locks, "LOCK TABLES held READ")
	long := c.consumes(reads, "SELECT SLEEP(600) FROM held")
	c.eventually("the long statement is executed", 10*time.Second, func() bool { return c.executes(reads, "SELECT SLEEP(600)") })

	begun := time.Now()
	if said := c.inside(leader, "ALTER TABLE shop.held ADD COLUMN more INT; INSERT INTO shop.held VALUES (2, 2); INSERT INTO shop.other VALUES (2)"); said != "" {
		t.Fatal(said)
	}
	c.eventually("a standby waits for its client", 10*time.Second, func() bool {
		return c.inside(reads, "SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE OBJECT_NAME = 'held' AND LOCK_STATUS = 'PENDING'") == "1"
	})
	waits := c.consumes(reads, "SELECT DISTINCT 'read' FROM held")
	for _, l := range []string{reads, locks} {
		c.eventually(l+" applies what the leader committed", 75*time.Second-time.Since(begun), func() bool {
			return c.inside(l, "SELECT COUNT(*) FROM shop.other") == "1"
		})
		took := time.Since(begun)
		t.Logf("%s applied it after %s", l, took.Round(100*time.Millisecond))
		if took < 30*time.Second {
			t.Errorf("a client of %s had less than 30 s", l)
		}
	}
	for name, conn := range map[string]*sql.Conn{"idle in a transaction": idle, "with a locked table": locked} {
		_, err := conn.ExecContext(t.Context(), "SELECT 1")
		t.Logf("the session that was %s ends with: %v", name, err)
		if err == nil {
			t.Errorf("the session that was %s is still there", name)
		}
	}
	if said := <-long; !strings.Contains(said, "ERROR 2013") {
		t.Errorf("the long statement ended with %q, want error 2013", said)
	}
	if said := <-waits; !strings.HasSuffix(said, "read\n") {
		t.Errorf("the statement that waited for the change of the table says %q", said)
	}
	// In its transaction it sees the table as it was.
	var n int
	if err := other.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM other").Scan(&n); err != nil || n != 0 {
		t.Errorf("the transaction on another table sees %d rows: %v", n, err)
	}
	for letter, want := range map[string]int{reads: 2, locks: 1, leader: 0} {
		raw, err := os.ReadFile(filepath.Join(c.logs, "log-"+letter))
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for line := range strings.Lines(string(raw)) {
			if strings.Contains(line, "ended a session that blocked") {
				said = append(said, line)
			}
		}
		t.Log(said)
		if len(said) != want || strings.Count(strings.Join(said, ""), consumer) < want || strings.Contains(strings.Join(said, ""), mysqlmember.AccountMember) {
			t.Errorf("%s ended %d sessions, want %d", letter, len(said), want)
		}
	}
}
