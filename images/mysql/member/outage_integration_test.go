// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
)

// killAll members at once: their servers first, and with them all that runs beside them.
func (c *cluster) killAll() {
	for _, l := range c.letters {
		_ = syscall.Kill(c.running(l).Child("mysqld"), syscall.SIGKILL)
	}
	for _, l := range c.letters {
		c.running(l).Kill()
	}
}

// data is the folder of a member's volume.
func (c *cluster) data(letter string) string { return filepath.Join(c.base, "data-"+letter) }

// empty the volume of a member that does not run.
func (c *cluster) empty(letter string) {
	c.t.Helper()
	if err := os.RemoveAll(c.data(letter)); err != nil {
		c.t.Fatal(err)
	}
}

// shuffled starts all members in a random order. Each waits for the others before the next one starts.
func (c *cluster) shuffled() {
	c.t.Helper()
	order := slices.Clone(c.letters)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	c.t.Logf("members start in the order %v", order)
	for i, l := range order {
		c.start(l)
		if i < len(order)-1 {
			c.waits(l, members.ReasonWaitingForMembers)
		}
	}
}

// waits until a member says for which reason it is in no group, and returns how it explains that. All words have to be in there.
func (c *cluster) waits(letter, reason string, words ...string) string {
	c.t.Helper()
	var message string
	c.eventually(letter+" waits: "+reason, 2*time.Minute, func() bool {
		_, r, role := c.status(letter)
		message = r.Message
		lacks := func(word string) bool { return !strings.Contains(message, word) }
		return r.Reason == reason && role == "" && c.probe(letter, "/readyz") != nil && !slices.ContainsFunc(words, lacks)
	})
	return message
}

// notes is how often a word is in the log of a member.
func (c *cluster) notes(letter, word string) int {
	raw, _ := os.ReadFile(filepath.Join(c.logs, "log-"+letter))
	return strings.Count(string(raw), word)
}

// epochIn the message of a member: the number of the outage.
var epochIn = regexp.MustCompile(`<member>@(\d+)`)

// better in the message of a member: the member that has all that others have, when that is not the last leader.
var better = regexp.MustCompile(`So has (\S+), with`)

// quiet waits until all members have executed the same, and clients wait. Who is killed then has all that the others have.
func (c *cluster) quiet() {
	c.t.Helper()
	leader := c.leader()
	c.statements(leader, "FLUSH TABLES WITH READ LOCK; DO SLEEP(600)")
	c.eventually("writes wait", time.Minute, func() bool { return c.executes(leader, "DO SLEEP(600)") })
	c.same("SELECT @@global.gtid_executed")
}

// decide as a person with which member the group begins, as a message says.
func (c *cluster) decide(letter, message string) {
	c.t.Helper()
	found := epochIn.FindStringSubmatch(message)
	if found == nil {
		c.t.Fatalf("a person cannot read how to decide: %s", message)
	}
	c.decideFor(c.identify(letter).Name + "@" + found[1])
}

func (c *cluster) decideFor(value string) {
	c.t.Helper()
	c.annotate(members.SuffixConfig, "person", map[string]string{decision.AnnotationBeginFrom: value})
}

// A step is a part of a test that begins with a whole group and clients that write, and leaves it so.
type step struct {
	name string
	do   func(*testing.T, *cluster, *writer)
}

// through all steps until one fails. At the end no acknowledged row is lost, and there never were two leaders.
func (c *cluster) through(t *testing.T, w *writer, p *prober, steps []step) {
	t.Helper()
	whole := func() {
		c.eventually("all members are ready", 2*time.Minute, func() bool { return c.ready(c.letters...) })
	}
	for _, s := range steps {
		if !t.Run(s.name, func(t *testing.T) {
			c.t = t
			whole()
			w.goesOn(10 * time.Second)
			w.reset()
			s.do(t, c, w)
		}) {
			break
		}
	}
	c.t = t
	whole()
	w.check(t)
	p.check(t)
	c.oneLeader()
}

// TestOutages: all members are down at once, and more is wrong when they are back.
func TestOutages(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w, p := c.write(), c.askAll()
	w.goesOn(10 * time.Second)
	c.through(t, w, p, []step{
		{"VolumeLost", volumeLost},
		{"VolumeBroughtBack", volumeBroughtBack},
		{"ExtraTransactions", extraTransactionsInOutage},
		{"Divided", divided},
		{"UnderLoad", outageUnderLoad},
	})
}

// volumeLost of a standby, and all start in a random order. They begin once a person decides, and not by a decision of another outage.
func volumeLost(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former, emptied := c.leader(), c.followers()[rand.IntN(2)]
	c.killAll()
	c.empty(emptied)
	c.shuffled()
	var message string
	for _, l := range c.letters {
		message = c.waits(l, mysqlmember.ReasonRecoveryNeedsDecision, "the data of "+c.identify(emptied).Name+" is gone",
			c.identify(former).Name+" is the last leader that was recorded")
	}
	t.Log(message)

	// A program that starts now reads a decision of another outage, and waits on.
	c.decideFor(c.identify(former).Name + "@0")
	before := c.notes(former, mysqlmember.ReasonRecoveryNeedsDecision)
	c.running(former).Kill()
	c.start(former)
	c.eventually("it waits on", time.Minute, func() bool { return c.notes(former, mysqlmember.ReasonRecoveryNeedsDecision) > before })
	for _, l := range c.letters {
		c.waits(l, mysqlmember.ReasonRecoveryNeedsDecision)
	}

	// One that received more than the last leader is better: it could not join a group without that.
	from := former
	if found := better.FindStringSubmatch(message); found != nil {
		from = strings.TrimPrefix(found[1], database+"-")
	}
	c.decide(from, message)
	t.Logf("ready again after %s", c.eventually("all are back", 3*time.Minute, func() bool { return c.ready(c.letters...) }))
	c.eventually("the decision is removed", 30*time.Second, func() bool { return c.annotations(members.SuffixConfig)[decision.AnnotationBeginFrom] == "" })
	w.goesOn(time.Minute)
}

// volumeBroughtBack: the volume of the leader is missing, an empty one is in its place, and then it is back. They begin without a person.
func volumeBroughtBack(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	former := c.leader()
	aside := c.data(former) + "-aside"
	c.killAll()
	if err := os.Rename(c.data(former), aside); err != nil {
		t.Fatal(err)
	}
	c.shuffled()
	for _, l := range c.letters {
		c.waits(l, mysqlmember.ReasonRecoveryNeedsDecision, "the data of "+c.identify(former).Name+" is gone", "bring the volume back")
	}
	c.running(former).Kill()
	c.empty(former)
	if err := os.Rename(aside, c.data(former)); err != nil {
		t.Fatal(err)
	}
	c.start(former)
	t.Logf("ready again after %s", c.eventually("all are back", 3*time.Minute, func() bool { return c.ready(c.letters...) }))
	w.goesOn(time.Minute)
}

// extra transaction that a member makes outside of its group. It returns what identifies it.
func (c *cluster) extra(letter, table string) string {
	c.t.Helper()
	out := c.inside(letter, "SET GLOBAL super_read_only = OFF; CREATE DATABASE "+table+"; SET GLOBAL super_read_only = ON; SELECT CONCAT(@@server_uuid, ':1')")
	if !strings.HasSuffix(out, ":1") {
		c.t.Fatal(out)
	}
	return out
}

// copyAgain a member from its group, as a person requests.
func (c *cluster) copyAgain(id, letter string) {
	c.t.Helper()
	c.request(id, letter)
	c.becomes(id, letter, members.ReinitializeDone)
	c.config.Reinitialize = nil
	c.configure()
}

// extraTransactionsInOutage: a standby that the group had left out for its own transactions is there after an outage, in any order. The others
// begin without it, and it stays out.
func extraTransactionsInOutage(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	odd := c.followers()[0]
	if out := c.inside(odd, "STOP GROUP_REPLICATION"); out != "" {
		t.Fatal(out)
	}
	id := c.extra(odd, "extra")
	c.waits(odd, mysqlmember.ReasonExtraTransactions, id)
	c.eventually("it has no seat", time.Minute, func() bool {
		return strings.Count(c.annotations(members.SuffixLeader)["capstan.dev/view"], `"name"`) == 2
	})
	c.killAll()
	order := slices.Clone(c.letters)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	t.Logf("%s is odd, members start in the order %v", odd, order)
	for _, l := range order {
		c.start(l)
	}
	rest := slices.DeleteFunc(slices.Clone(c.letters), func(l string) bool { return l == odd })
	t.Logf("ready again after %s", c.eventually("the others are ready", 2*time.Minute, func() bool { return c.ready(rest...) }))
	w.goesOn(time.Minute)
	t.Log(c.waits(odd, mysqlmember.ReasonExtraTransactions, id))
	if out := c.inside(c.leader(), "SHOW DATABASES LIKE 'extra'"); out != "" {
		t.Errorf("the group has what the odd member did: %s", out)
	}
	c.copyAgain("odd", odd)
	c.eventually("all are back", 2*time.Minute, func() bool { return c.ready(c.letters...) })
	if out := c.inside(odd, "SHOW DATABASES LIKE 'extra'"); out != "" {
		t.Errorf("it still has what it did: %s", out)
	}
}

// divided: two members each got a transaction in an outage that the other lacks. A person reads which, decides, and the other one stays out.
func divided(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	one, two, third := c.leader(), c.followers()[0], c.followers()[1]
	c.quiet()
	c.killAll()
	ids := map[string]string{}
	for _, l := range []string{one, two} {
		c.start(l)
		c.waits(l, members.ReasonWaitingForMembers)
		ids[l] = c.extra(l, "only_"+l)
		c.running(l).Kill()
	}
	c.shuffled()
	var message string
	for _, l := range c.letters {
		message = c.waits(l, mysqlmember.ReasonRecoveryNeedsDecision, ids[one], ids[two])
	}
	c.decide(one, message)
	t.Logf("ready again after %s", c.eventually("what is decided begins", 2*time.Minute, func() bool { return c.ready(one, third) }))
	w.goesOn(time.Minute)
	kept := c.waits(two, mysqlmember.ReasonExtraTransactions, ids[two])
	t.Log(kept)
	if strings.Contains(kept, ids[one]) {
		t.Errorf("it names what it does not have: %s", kept)
	}
	if out := c.inside(third, "SHOW DATABASES LIKE 'only\\_%'"); out != "only_"+one {
		t.Errorf("the group has %q", out)
	}
	c.copyAgain("divided", two)
	c.eventually("all are back", 2*time.Minute, func() bool { return c.ready(c.letters...) })
}

// outageUnderLoad: all members end while one client commits a transaction near the limit and another one changes a table. Each is there on all
// members, or on none.
func outageUnderLoad(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	leader := c.leader()
	for _, statement := range []string{
		"CREATE TABLE shop.large (id INT PRIMARY KEY, data LONGBLOB); CREATE TABLE shop.wide (id INT PRIMARY KEY, data LONGBLOB)",
		rowsOf("wide", "60000"),
	} {
		if said := c.inside(leader, statement); said != "" {
			t.Fatal(said)
		}
	}
	inserted := c.statements(leader, rowsOf("large", "100000")+"; SELECT 'committed'")
	c.eventually("it is executed", 10*time.Second, func() bool { return c.executes(leader, "INSERT INTO shop.large") })
	altered := c.statements(leader, "ALTER TABLE shop.wide ADD COLUMN more INT, ALGORITHM=COPY; SELECT 'altered'")
	c.eventually("it commits", 2*time.Minute, func() bool {
		return c.inside(leader, "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO LIKE 'INSERT INTO shop.large%' AND STATE LIKE 'waiting for handler commit%'") == "1" ||
			!c.executes(leader, "INSERT INTO shop.large")
	})
	c.killAll()
	first, second := <-inserted, <-altered
	for _, l := range c.letters {
		c.start(l)
	}
	t.Logf("ready again after %s", c.eventually("all are back", 4*time.Minute, func() bool { return c.ready(c.letters...) }))
	w.goesOn(time.Minute)
	n := c.same("SELECT COUNT(*) FROM shop.large")
	t.Logf("the client heard %q, and %s rows are there", first, n)
	if n != "100000" && (n != "0" || first == "committed") {
		t.Errorf("%s of 100000 rows are there, and the client heard %q", n, first)
	}
	n = c.same("SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'wide'")
	t.Logf("the client heard %q, and the table has %s columns", second, n)
	if n != "3" && (n != "2" || second == "altered") {
		t.Errorf("the table has %s columns, and the client heard %q", n, second)
	}
	if sum := c.same("CHECKSUM TABLE shop.wide"); sum == "" || strings.Contains(sum, "NULL") {
		t.Errorf("its checksum is %q", sum)
	}
}

// insert a row into the ledger through a member, as a consumer.
func (c *cluster) insert(letter string, id int) error {
	conn := c.connect(letter, consumer, "shop")
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(c.t.Context(), "INSERT INTO ledger (id) VALUES (?)", id); err != nil {
		return fmt.Errorf("cannot insert %d: %w", id, err)
	}
	return nil
}

// ledger of a member: its rows, with commas between them.
func (c *cluster) ledger(letter string) string {
	return c.inside(letter, "SELECT GROUP_CONCAT(id ORDER BY id) FROM shop.ledger")
}

// TestLossDecided: one member of three is left after an outage, and lacks what was acknowledged without it. It stays closed until a person
// decides for it. What that loses stays where it is: the others are kept out with it, until a person discards it.
func TestLossDecided(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	leader, left, other := c.leader(), c.followers()[0], c.followers()[1]
	if err := c.insert(leader, 1); err != nil {
		t.Fatal(err)
	}
	c.eventually("all have the first row", 10*time.Second, func() bool { return c.ledger(left) == "1" && c.ledger(other) == "1" })

	// Without the API server nothing records that the group goes on without this member.
	c.setAPI(false)
	c.running(left).Kill()
	c.eventually("the group goes on without it", time.Minute, func() bool { return c.online(leader) == "2" })
	c.eventually("a row is acknowledged", time.Minute, func() bool { return c.insert(leader, 2) == nil })
	c.eventually("both have it", 10*time.Second, func() bool { return c.ledger(other) == "1,2" })
	executed := strings.ReplaceAll(c.inside(leader, "SELECT @@global.gtid_executed"), "\n", "")
	c.running(leader).Kill()
	c.running(other).Kill()
	c.setAPI(true)

	c.start(left)
	message := c.waits(left, members.ReasonWaitingForMembers, c.identify(leader).Name, c.identify(other).Name, c.identify(left).Name+" has ")
	t.Log(message)
	if err := c.insert(left, 3); err == nil {
		t.Error("it takes a write")
	}
	c.decide(left, message)
	t.Logf("ready again after %s", c.eventually("what is decided begins", 2*time.Minute, func() bool { return c.ready(left) && c.leader() == left }))
	c.eventually("it takes writes", time.Minute, func() bool { return c.insert(left, 4) == nil })
	if got := c.ledger(left); got != "1,4" {
		t.Errorf("it has the rows %s, want 1,4", got)
	}

	for _, l := range []string{leader, other} {
		c.start(l)
	}
	for _, l := range []string{leader, other} {
		message := c.waits(l, mysqlmember.ReasonExtraTransactions)
		t.Logf("%s, of %s", message, executed)
		// The transaction that was lost is one of those that this member names, and its row can be saved.
		_, sets, _ := strings.Cut(message, "stays out of it: ")
		sets, _, _ = strings.Cut(sets, ". ")
		if out := c.inside(l, fmt.Sprintf("SELECT GTID_SUBSET('%s', '%s'), GTID_SUBSET('%[1]s', @@global.gtid_executed)", sets, executed)); out != "1\t1" {
			t.Errorf("it names %s, and the group had %s: %s", sets, executed, out)
		}
		if got := c.ledger(l); got != "1,2" {
			t.Errorf("%s has the rows %s, want 1,2", l, got)
		}
	}
	// An outage of the new group does not take the former one for it.
	c.killAll()
	for _, l := range c.letters {
		c.start(l)
	}
	c.eventually("the new group begins again", 2*time.Minute, func() bool { return c.ready(left) && c.leader() == left })
	for _, l := range []string{leader, other} {
		c.waits(l, mysqlmember.ReasonExtraTransactions)
		c.copyAgain("lost-"+l, l)
	}
	c.eventually("all are back", 2*time.Minute, func() bool { return c.ready(c.letters...) })
	for _, l := range c.letters {
		c.eventually("all have the rows of the new group", 30*time.Second, func() bool { return c.ledger(l) == "1,4" })
	}
	c.oneLeader()
}

// TestReceivedOnly: the leader's volume is lost in an outage, and the standby that a person begins with had received all, and executed some.
func TestReceivedOnly(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	leader := c.leader()
	behind := c.followers()
	if err := c.insert(leader, 1); err != nil {
		t.Fatal(err)
	}
	for _, l := range behind {
		c.eventually("it has the first row", 10*time.Second, func() bool { return c.ledger(l) == "1" })
		c.statements(l, "LOCK TABLES shop.ledger READ; DO SLEEP(600)")
		c.eventually("its table is locked", 10*time.Second, func() bool { return c.executes(l, "DO SLEEP(600)") })
	}
	rows := []string{"1"}
	for id := 2; id <= 200; id++ {
		if err := c.insert(leader, id); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, strconv.Itoa(id))
	}
	want := strings.Join(rows, ",")
	executed := strings.ReplaceAll(c.inside(leader, "SELECT @@global.gtid_executed"), "\n", "")
	for _, l := range behind {
		c.eventually("it received all", 30*time.Second, func() bool {
			return c.inside(l, "SELECT GTID_SUBSET('"+executed+"', CONCAT(@@global.gtid_executed, ',', RECEIVED_TRANSACTION_SET)) "+
				"FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = 'group_replication_applier'") == "1"
		})
		if got := c.ledger(l); got != "1" {
			t.Fatalf("it executed %s", got)
		}
	}
	c.killAll()
	c.empty(leader)
	c.shuffled()
	var message string
	for _, l := range c.letters {
		message = c.waits(l, mysqlmember.ReasonRecoveryNeedsDecision, "the data of "+c.identify(leader).Name+" is gone")
	}
	t.Log(message)
	c.decide(behind[1], message)
	t.Logf("ready again after %s", c.eventually("all are back", 3*time.Minute, func() bool { return c.ready(c.letters...) }))
	for _, l := range c.letters {
		c.eventually("all have what was received", 30*time.Second, func() bool { return c.ledger(l) == want })
	}
	if err := c.insert(c.leader(), 1000); err != nil {
		t.Error(err)
	}
	c.oneLeader()
}
