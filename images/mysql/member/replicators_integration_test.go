// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// reader is a login that the platform makes for a consumer of changes.
const reader = "feed"

// changes that a login reads from a member by the ids of transactions, without some that it has.
func (c *cluster) changes(letter, having string, more ...string) (string, error) {
	args := append([]string{
		"/usr/bin/timeout", "30", "/usr/bin/mysqlbinlog", "--no-defaults", "--read-from-remote-source=BINLOG-DUMP-GTIDS", "--host=" + c.identify(letter).IP,
		"--user=" + reader, "--password=" + password, "--ssl-mode=REQUIRED", "--verbose", "--base64-output=DECODE-ROWS", "--exclude-gtids=" + having,
	}, more...)
	return c.running(letter).Enter(append(args, "binlog.000001")...)
}

// A row of the ledger as mysqlbinlog writes its insert.
var insertOfLedger = regexp.MustCompile("INSERT INTO `shop`.`ledger`\n### SET\n###   @1=([0-9]+)")

// TestReplicators has a login of the platform read the binary logs, also of the next leader, each change once. A login that may no longer is
// ended where it reads, and refused.
func TestReplicators(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	c.config.Replicators = []string{reader, "feed-b"}
	c.configure()
	begin(t, c, "a", "b", "c")
	w := c.write()
	conn := c.connect(c.leader(), mysqlmember.AccountAccess, "")
	for _, statement := range []string{
		"CREATE USER feed@'%' IDENTIFIED WITH caching_sha2_password AS 0x" + hex.EncodeToString([]byte(verifier(password))) +
			" REQUIRE SSL ATTRIBUTE '{\"" + mysqlmember.LoginMarkKey + "\": \"" + mysqlmember.LoginMark + "\"}'",
		"GRANT SELECT ON shop.* TO feed@'%'",
	} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	_ = conn.Close()
	grants := func() string { return c.inside(c.leader(), "SHOW GRANTS FOR feed@'%'; SHOW GRANTS FOR api@'%'") }
	took := c.eventually("the login may read", time.Minute, func() bool {
		return strings.Contains(grants(), "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `feed`")
	})
	t.Logf("the login may read after %s", took)
	if got := grants(); strings.Contains(got, "ON *.* TO `api`@`%` WITH") || strings.Count(got, "REPLICATION SLAVE") != 1 {
		t.Errorf("another login got rights:\n%s", got)
	}
	w.goesOn(5 * time.Second)

	first := c.leader()
	has := c.inside(first, "SELECT @@GLOBAL.gtid_executed")
	seen := map[string]int{}
	read := func(letter, having string) {
		t.Helper()
		out, err := c.changes(letter, having, "--to-last-log")
		if err != nil {
			t.Fatalf("%v: %s", err, out[max(0, len(out)-2000):])
		}
		for _, m := range insertOfLedger.FindAllStringSubmatch(out, -1) {
			seen[m[1]]++
		}
	}
	out, err := c.changes(first, "", "--to-last-log")
	if err != nil {
		t.Fatalf("%v: %s", err, out[max(0, len(out)-2000):])
	}
	early := len(insertOfLedger.FindAllString(out, -1))
	c.running(first).Kill()
	c.eventually("another leads", time.Minute, func() bool { l := c.leader(); return l != "" && l != first })
	c.start(first)
	c.eventually("all are ready", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
	w.goesOn(10 * time.Second)
	w.stop()
	w.all.Wait()
	next := c.leader()
	// From the start, and as a consumer that has what the former leader had.
	read(next, "")
	all := len(seen)
	twice := 0
	for _, id := range w.acked {
		switch seen[strconv.Itoa(id)] {
		case 1:
		case 0:
			t.Errorf("row %d was acknowledged, and the next leader has no change of it", id)
		default:
			twice++
		}
	}
	clear(seen)
	read(next, has)
	t.Logf("%d rows read from %s before it was killed, %d from %s, of %d acknowledged; %d were new to a consumer of the former leader", early, first, all, next, len(w.acked), len(seen))
	if twice > 0 || len(seen) == 0 || len(seen) >= all {
		t.Errorf("%d changes come twice, and %d of %d are new", twice, len(seen), all)
	}

	// A standby is read from, too.
	standby := c.followers()[0]
	ended := make(chan string, 2)
	for _, l := range []string{next, standby} {
		go func() {
			out, err := c.running(l).Enter("/usr/bin/mysqlbinlog", "--no-defaults", "--read-from-remote-source=BINLOG-DUMP-GTIDS", "--host="+c.identify(l).IP,
				"--user="+reader, "--password="+password, "--ssl-mode=REQUIRED", "--stop-never", "--connection-server-id="+map[bool]string{true: "901", false: "902"}[l == next],
				"--raw", "--result-file=/tmp/read-", "binlog.000001")
			ended <- fmt.Sprint(err, out)
		}()
	}
	dumps := func(letter string) string {
		return c.inside(letter, "SELECT COUNT(*) FROM performance_schema.processlist WHERE USER = 'feed' AND COMMAND LIKE 'Binlog Dump%'")
	}
	c.eventually("both are read from", 30*time.Second, func() bool { return dumps(next) == "1" && dumps(standby) == "1" })
	c.config.Replicators = []string{"feed-b"}
	c.configure()
	took = c.eventually("none reads", time.Minute, func() bool { return dumps(next) == "0" && dumps(standby) == "0" })
	t.Logf("none reads %s after the change", took)
	for range 2 {
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Error("a client still reads")
		}
	}
	if got := grants(); strings.Contains(got, "REPLICATION") {
		t.Errorf("it still has rights:\n%s", got)
	}
	if out, err := c.changes(next, "", "--to-last-log"); err == nil || !strings.Contains(out, "Access denied") {
		t.Errorf("it may still read: %v: %s", err, out[max(0, len(out)-500):])
	}
	c.oneLeader()
}
