// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/upgrade"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/upgrader"
)

// The second generation of the Database of a test.
const (
	secondPrefix   = "g2-"
	secondDatabase = database + ".g2"
	secondScope    = secondDatabase + "-3f2a9c1b"
)

// configOf is the folder of the configuration that a member mounts.
func configOf(letter string) string {
	if strings.HasPrefix(letter, secondPrefix) {
		return "config-g2"
	}
	return "config"
}

// upgradeTo a major version: the objects and files of a second generation, with no member started yet.
func (c *cluster) upgradeTo(major int, id string) {
	c.t.Helper()
	// The fence of an earlier try is over for the function that begins another one, and was never one of the second generation.
	c.upgrade, c.server.Followed, c.server.Fence = id, true, engine.Fence{}
	c.compose()
	c.second = c.server
	c.second.Followed, c.second.Database, c.second.Scope, c.second.Major = false, secondDatabase, secondScope, major
	file, err := c.second.Patroni()
	if err != nil {
		c.t.Fatal(err)
	}
	wal, err := c.second.PatroniWAL()
	if err != nil {
		c.t.Fatal(err)
	}
	c.file("config-g2/patroni.yaml", []byte(file))
	c.file("config-g2/patroni-wal.yaml", []byte(wal))
	c.file("config-g2/member.json", fmt.Appendf(nil,
		`{"databases": ["shop"], "extensions": ["pg_stat_statements", "hstore"], "volumes": [], "upgrade": {"id": %q, "from": "%d", "database": %q, "scope": %q, "member": %q}}`,
		id, c.server.Major, database, scope, database+"-g2-a"))
	config, err := c.second.Dynamic()
	if err != nil {
		c.t.Fatal(err)
	}
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{%q:%q,%q:%q},"annotations":{"config":%q}}}`,
		secondScope+"-config", v1alpha1.LabelDatabase, secondDatabase, v1alpha1.LabelScope, secondScope, config)
	if _, err := c.client.CoreV1().ConfigMaps(c.ns).Patch(c.t.Context(), secondScope+"-config", types.ApplyPatchType, []byte(body),
		metav1.PatchOptions{FieldManager: "composition", Force: new(true)}); err != nil {
		c.t.Fatal(err)
	}
}

// join a member of the second generation.
func (c *cluster) join(letter string) {
	c.letters = append(c.letters, letter)
	c.pod(letter)
	c.start(letter)
}

// fence the first generation as an earlier function does, or let it go on with "".
func (c *cluster) fence(id string) {
	c.t.Helper()
	c.server.Fence = engine.Fence{ID: id}
	c.compose()
}

// fenceFor the first generation for some seconds at most, or less if the second leads. Nothing of Capstan does anything afterwards.
func (c *cluster) fenceFor(id string, seconds int64) {
	c.t.Helper()
	c.server.Fence = engine.Fence{ID: id, To: secondDatabase, Seconds: seconds}
	c.compose()
}

// record of the fence, and whether there is one in force.
func (c *cluster) record() (r members.FenceRecord, fenced bool) {
	c.t.Helper()
	cm, err := c.client.CoreV1().ConfigMaps(c.ns).Get(c.t.Context(), scope+"-config", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	if text := cm.Annotations[members.AnnotationFence]; text != "" {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			c.t.Fatal(err)
		}
	}
	return r, strings.Contains(cm.Annotations["config"], "capstan_fence") && strings.Contains(cm.Annotations["config"], `"pause":true`)
}

// upgrading is how far the upgrade is.
func (c *cluster) upgrading() members.UpgradeReport {
	var r members.UpgradeReport
	_ = json.Unmarshal([]byte(c.pods()["g2-a"].Annotations[members.AnnotationUpgrade]), &r)
	return r
}

// phase waits for one.
func (c *cluster) phase(want string, within time.Duration) time.Duration {
	c.t.Helper()
	return c.eventually("the upgrade is in the phase "+want, within, func() bool {
		r := c.upgrading()
		if r.ID != c.upgrade {
			return false // of the one before
		}
		if r.Phase == members.UpgradeFailed && want != r.Phase {
			c.t.Fatalf("the upgrade failed: %s", r.Message)
		}
		return r.Phase == want
	})
}

// run statements in the database of the test.
func (c *cluster) run(t *testing.T, statements ...string) {
	t.Helper()
	conn, err := c.connect(t.Context(), c.leader(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// superuser's statement on the leader.
func (c *cluster) superuser(t *testing.T, statement string) {
	t.Helper()
	leader := c.leader()
	out, err := c.running(leader).Enter(pgmember.Programs(c.identify(leader).Version)+"/psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", "shop", "-Atc", statement)
	if err != nil {
		t.Fatalf("%s: %v: %s", statement, err, out)
	}
}

// answer of a query on the leader.
func (c *cluster) answer(t *testing.T, query string) string {
	t.Helper()
	conn, err := c.connect(t.Context(), c.leader(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var out string
	if err := conn.QueryRow(t.Context(), query).Scan(&out); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out
}

// aged cluster of a major version, with members, data and a writer.
func aged(t *testing.T, major int, letters ...string) (*cluster, *writer) {
	t.Helper()
	c := newClusterWith(t, letters, func(c *cluster) { c.server.Major = major })
	begin(t, c, letters...)
	c.run(t, "create extension citext schema public", "create extension hstore schema public",
		"create table public.item (id int primary key, name public.citext, more public.hstore, filler text)",
		"insert into public.item select g, 'item ' || g, 'a=>1', repeat('x', 200) from generate_series(1, 100000) g",
		"create index on public.item (name)", "create view public.cheap as select id, name from public.item where id < 100",
		"create sequence public.counter start 5", "select nextval('public.counter')")
	w := c.write()
	w.goesOn(10 * time.Second)
	return c, w
}

// upgraded checks what came over.
func upgraded(t *testing.T, c *cluster, major string) {
	t.Helper()
	for query, want := range map[string]string{
		"select split_part(current_setting('server_version'), '.', 1)":                major,
		"select count(*)::text from public.item where more operator(public.=) 'a=>1'": "100000",
		"select count(*)::text from public.cheap":                                     "99",
		"select nextval('public.counter')::text":                                      "6",
		"select name::text from public.item where name operator(public.=) 'ITEM 7'":   "item 7",
		"select current_setting('data_checksums')":                                    "on",
	} {
		if got := c.answer(t, query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

// TestMajorUpgrade of a Database that is written to: data that cannot be upgraded stops before anything happens, then nothing
// that was acknowledged is lost, and writes wait for about as long as pg_upgrade alone takes.
func TestMajorUpgrade(t *testing.T) {
	c, w := aged(t, 15, "a", "b")
	c.superuser(t, "create extension adminpack schema pg_catalog") // 17 has none
	c.eventually("commits wait for another member", time.Minute, c.synchronous)
	w.reset()
	c.upgradeTo(17, "u1")
	c.join("g2-a")
	t.Logf("checked after %s", c.phase(members.UpgradeIncompatible, 2*time.Minute))
	if r := c.upgrading(); !strings.Contains(r.Findings, "adminpack") {
		t.Errorf("findings do not name the extension: %s", r.Findings)
	} else {
		t.Logf("findings: %s", r.Findings)
	}
	c.superuser(t, "drop extension adminpack")
	t.Logf("ready after %s", c.phase(members.UpgradeReady, 2*time.Minute))
	r := c.upgrading()
	why := w.failures() // which a reset forgets
	gap, failed := w.reset()
	t.Logf("expected gap %d s; while it was prepared, the longest gap was %s and %d tries failed", r.GapSeconds, gap, failed)
	if failed > 0 {
		t.Errorf("%d writes failed before the fence, want none: %v", failed, why)
	}
	former := c.leader()
	c.fence("u1")
	took := c.eventually("the second generation leads", 2*time.Minute, func() bool { return c.leader() == "g2-a" })
	w.goesOn(30 * time.Second)
	gap, _ = w.reset()
	t.Logf("leads %s after the fence; writes stood still for %s", took, gap)
	upgraded(t, c, "17")
	plain := c.plainUpgrade(t, former)
	t.Logf("pg_upgrade --link alone takes %s for the same data", plain)
	t.Logf("settled after %s", c.phase(members.UpgradeDone, 2*time.Minute))
	if got := c.answer(t, "select (count(*) > 0)::text from pg_stats where tablename = 'item'"); got != "true" {
		t.Error("the table has no statistics")
	}
	if got := c.answer(t, "select count(*)::text from pg_available_extensions where installed_version <> default_version"); got != "0" {
		t.Errorf("%s extensions are not in the version of the server", got)
	}
	if _, err := os.Stat(filepath.Join(c.base, "data-g2-a", "upgrade")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left of the upgrade: %v", err)
	}
	c.join("g2-b")
	c.eventually("another member follows", 90*time.Second, func() bool { return c.probe("g2-b", "/readyz") == nil })

	// The former leader stays where it is, also after a restart, and its replica serves what was there.
	c.running(former).Kill()
	c.start(former)
	c.eventually("the former leader is held", 30*time.Second, func() bool { return c.reason(former) == members.ReasonFenced })
	w.check(t)
	c.oneLeader()
}

// TestUpgradeWaits: no commit of a client is acknowledged before a standby has it, if the spec asks for that. What the upgrade itself has to do
// does not wait, and reads are served.
func TestUpgradeWaits(t *testing.T) {
	c, w := aged(t, 15, "a", "b")
	c.eventually("commits wait for another member", time.Minute, c.synchronous)
	c.server.Strict = true // as the function does for spec.upgrade.wait
	c.upgradeTo(17, "u1")
	c.join("g2-a")
	c.phase(members.UpgradeReady, 3*time.Minute)
	c.fenceFor("u1", 180)
	c.eventually("the second generation leads", 2*time.Minute, func() bool { return c.leader() == "g2-a" })
	t.Logf("settled after %s", c.phase(members.UpgradeDone, 3*time.Minute))
	before := w.count()
	time.Sleep(10 * time.Second)
	if n := w.count() - before; n > 0 {
		t.Errorf("%d rows were acknowledged while one member had them", n)
	}
	if got := c.answer(t, "select count(*)::text from public.item"); got != "100000" {
		t.Errorf("reads are not served: %s", got)
	}
	c.join("g2-b")
	w.goesOn(2 * time.Minute)
	w.check(t)
	upgraded(t, c, "17")
}

// TestFrozenFormerLeader: a PostgreSQL of which a process is frozen never stops for the fence. It is ended, the upgrade fails,
// and the generation before leads again once the fence is gone, with all that was acknowledged.
func TestFrozenFormerLeader(t *testing.T) {
	c, w := aged(t, 15, "a", "b")
	c.eventually("commits wait for another member", time.Minute, c.synchronous)
	c.upgradeTo(17, "u1")
	c.join("g2-a")
	c.phase(members.UpgradeReady, 3*time.Minute)
	former := c.leader()
	conn, err := c.connect(t.Context(), former, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	frozen := c.running(former).Signal(syscall.SIGSTOP, func(p process.Process) bool {
		return strings.Contains(process.Title(p.PID), ": capstan postgres ")
	})
	if frozen == 0 {
		t.Fatal("the session has no process")
	}
	c.fence("u1")
	c.phase(members.UpgradeFailed, upgrader.StopLimit+time.Minute)
	t.Logf("the upgrade failed: %s", c.upgrading().Message)
	if r, fenced := c.record(); fenced || r.State != members.FenceWithdrawn {
		t.Errorf("in force %t, with the record %+v", fenced, r)
	}
	c.eventually("the first generation leads again", time.Minute, func() bool { return c.leader() != "" })
	w.goesOn(30 * time.Second)
	c.eventually("all of it is well", time.Minute, func() bool { return c.reason(former) != members.ReasonFenced && c.ready("a", "b") })
	w.check(t)
	c.oneLeader()
}

// TestUpgradeWithoutCapstan: from the fence on, members alone decide. When the member that upgrades is lost, the generation before goes on
// within the limit, also when its former leader is lost as well, and a fence that is written once more by what did not know has no effect.
// The lost member never begins. When it is there, it takes over.
func TestUpgradeWithoutCapstan(t *testing.T) {
	c, w := aged(t, 15, "a", "b")
	c.eventually("commits wait for another member", time.Minute, c.synchronous)
	c.upgradeTo(17, "u1")
	c.join("g2-a")
	c.phase(members.UpgradeReady, 3*time.Minute)
	if r, _ := c.record(); r.State != members.FenceOffered || r.To != secondDatabase {
		t.Fatalf("the record is %+v", r)
	}
	w.reset()

	const limit = 40
	former := c.leader()
	c.fenceFor("u1", limit)
	c.eventually("the former leader has stopped", 30*time.Second, func() bool { return c.reason(former) == members.ReasonFenced })
	c.running("g2-a").Kill()
	c.running(former).Kill()
	took := c.eventually("the other member leads", (limit+30)*time.Second, func() bool { l := c.leader(); return l != "" && l != former })
	w.goesOn(30 * time.Second)
	gap, _ := w.reset()
	r, fenced := c.record()
	t.Logf("%s leads %s after both were lost; writes stood still for %s; %+v", c.leader(), took, gap, r)
	if fenced || r.State != members.FenceWithdrawn {
		t.Errorf("in force %t, with the record %+v", fenced, r)
	}
	c.start(former)
	c.compose() // as before: it does not know of the end yet
	c.eventually("the fence is removed again", time.Minute, func() bool { _, fenced := c.record(); return !fenced })
	c.start("g2-a")
	c.phase(members.UpgradeFailed, time.Minute)
	t.Log(c.upgrading().Message)
	c.eventually("all of it is well", time.Minute, func() bool { return c.leader() != "" && c.ready("a", "b") })

	c.running("g2-a").Kill()
	c.upgradeTo(17, "u2")
	c.start("g2-a")
	c.phase(members.UpgradeReady, 3*time.Minute)
	c.eventually("commits wait for another member", time.Minute, c.synchronous)
	if r, _ := c.record(); r.State != members.FenceOffered || r.ID != "u2" {
		t.Fatalf("the record is %+v", r)
	}
	w.reset()
	c.fenceFor("u2", 120)
	c.eventually("the second generation leads", 2*time.Minute, func() bool { return c.leader() == "g2-a" })
	w.goesOn(30 * time.Second)
	gap, _ = w.reset()
	if r, fenced := c.record(); !fenced || r.State != members.FenceCommitted {
		t.Errorf("in force %t, with the record %+v", fenced, r)
	}
	t.Logf("the second generation leads; writes stood still for %s", gap)
	if v := c.answer(t, "show server_version_num"); !strings.HasPrefix(v, "17") {
		t.Errorf("version %s serves", v)
	}
	w.check(t)
	c.oneLeader()
}

// TestUpgradeFrom17: what pg_upgrade only finds out while it upgrades is found before anything happens, as a view of a column that the later
// version lacks. Versions that 17.12 notes with columns, and that 18.6 does not know, are no obstacle. What owners set for a column stays.
func TestUpgradeFrom17(t *testing.T) {
	c, w := aged(t, 17, "a", "b")
	c.run(t, "create view public.gone as select wal_write from pg_stat_wal", "alter table public.item alter column name set (n_distinct = 5)",
		"create type public.pair as (x int, y text)", "create table public.parted (id int, p public.pair) partition by range (id)",
		"create table public.part partition of public.parted for values from (0) to (100)", "insert into public.parted values (1, (2, 'two'))")
	c.eventually("commits wait for another member", time.Minute, c.synchronous)
	w.reset()
	c.upgradeTo(18, "u1")
	c.join("g2-a")
	c.phase(members.UpgradeIncompatible, 2*time.Minute)
	r := c.upgrading()
	if !strings.Contains(r.Findings, `the definitions of database "shop" cannot be loaded into version 18`) || !strings.Contains(r.Findings, "wal_write") {
		t.Errorf("findings do not tell what does not work: %s", r.Findings)
	}
	t.Logf("findings: %s", r.Findings)
	c.run(t, "drop view public.gone")
	c.phase(members.UpgradeReady, 2*time.Minute)
	why := w.failures() // which a reset forgets
	if _, failed := w.reset(); failed > 0 {
		t.Errorf("%d writes failed, want none: %v", failed, why)
	}
	c.fence("u1")
	took := c.eventually("the second generation leads", 2*time.Minute, func() bool { return c.leader() == "g2-a" })
	w.goesOn(30 * time.Second)
	gap, _ := w.reset()
	t.Logf("expected gap %d s; leads %s after the fence; writes stood still for %s", r.GapSeconds, took, gap)
	upgraded(t, c, "18")
	if got := c.answer(t, "select (p).y from public.parted where id = 1"); got != "two" {
		t.Errorf("a column of a composite type has %q", got)
	}
	c.phase(members.UpgradeDone, 2*time.Minute)
	if got := c.answer(t, "select string_agg(a.attname || array_to_string(a.attoptions, ','), ' ') from pg_attribute a where attoptions is not null"); got != "namen_distinct=5" {
		t.Errorf("options of columns are %q", got)
	}
	c.join("g2-b")
	c.eventually("another member follows", 90*time.Second, func() bool { return c.probe("g2-b", "/readyz") == nil })
	w.check(t)
	c.oneLeader()
}

// reason that a member tells.
func (c *cluster) reason(letter string) string {
	var r v1alpha1.MemberReport
	_ = json.Unmarshal([]byte(c.pods()[letter].Annotations[v1alpha1.AnnotationMember]), &r)
	return r.Reason
}

// plainUpgrade is how long pg_upgrade alone takes for the data of a leader that stopped, with the start of the server after it.
func (c *cluster) plainUpgrade(t *testing.T, letter string) time.Duration {
	t.Helper()
	from, to := pgmember.Programs(strconv.Itoa(c.server.Major)), pgmember.Programs(strconv.Itoa(c.second.Major))
	script := fmt.Sprintf(`set -e; mkdir /data/plain; cd /data/plain; cp -a /data/pgdata old; rm -f old/postmaster.pid
%[2]s/initdb -D new -U postgres -k -E UTF8 --locale=C.UTF-8 --auth=peer >/dev/null
echo "archive_mode = off" >> old/postgresql.auto.conf; echo "synchronous_standby_names = ''" >> old/postgresql.auto.conf
cut -d. -f1 /proc/uptime >/dev/null; read begun rest </proc/uptime
%[2]s/pg_upgrade --link -b %[1]s -B %[2]s -d old -D new -U postgres --new-options="-c shared_preload_libraries=pg_stat_statements" >said 2>&1 || { cat said; exit 1; }
%[2]s/pg_ctl -D new -w -l log -o "-c listen_addresses='' -k /data/plain" start >/dev/null
read ended rest </proc/uptime; echo "$begun $ended"
%[2]s/pg_ctl -D new -w -m fast stop >/dev/null; cd /; rm -rf /data/plain`, from, to)
	out, err := c.running(letter).Enter("sh", "-c", script)
	if err != nil {
		t.Fatalf("cannot upgrade plainly: %v: %s", err, out)
	}
	var begun, ended float64
	if _, err := fmt.Sscan(out, &begun, &ended); err != nil {
		t.Fatalf("cannot understand %q: %v", out, err)
	}
	return time.Duration((ended - begun) * float64(time.Second)).Round(10 * time.Millisecond)
}

// TestInterruptedUpgrade: whenever the member that upgrades is killed, it goes on, or the generation before does. Nothing is
// lost.
func TestInterruptedUpgrade(t *testing.T) {
	c, w := aged(t, 15, "a", "b")
	c.upgradeTo(17, "u1")
	c.join("g2-a")
	again := func() {
		c.running("g2-a").Kill()
		c.start("g2-a")
	}
	state := func() upgrade.State {
		var s upgrade.State
		raw, _ := os.ReadFile(filepath.Join(c.base, "data-g2-a", "upgrade", "state.json"))
		_ = json.Unmarshal(raw, &s)
		return s
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(c.base, "data-g2-a", name))
		return err == nil
	}
	// A first try may come before the slot of the copy is there, and the next one a minute later.
	c.eventually("it copies", 90*time.Second, func() bool { return exists("upgrade/copy/base") })
	again()
	c.eventually("it checks", 30*time.Second, func() bool { return exists("upgrade/trial/PG_VERSION") })
	again()
	c.phase(members.UpgradeReady, 2*time.Minute)
	again()
	c.phase(members.UpgradeReady, 2*time.Minute)
	c.eventually("commits wait for another member", time.Minute, c.synchronous)
	why := w.failures() // which a reset forgets
	if _, failed := w.reset(); failed > 0 {
		t.Errorf("%d writes failed before the fence, want none: %v", failed, why)
	}

	// Killed when the files of the copy have been handed over: nobody can tell what that left.
	former := c.leader()
	c.fence("u1")
	c.eventually("files are linked", time.Minute, func() bool { return exists("upgrade/copy/global/pg_control.old") })
	again()
	c.phase(members.UpgradeFailed, time.Minute)
	t.Log(c.upgrading().Message)
	c.eventually("the first generation leads again", time.Minute, func() bool { return c.leader() != "" })
	w.goesOn(30 * time.Second)
	gap, _ := w.reset()
	t.Logf("%s led before, and %s leads again after %s without writes", former, c.leader(), gap)
	c.eventually("the former leader is held no longer", 30*time.Second, func() bool { return c.reason(former) != members.ReasonFenced && c.ready("a", "b") })

	// The next one copies again, and is killed again and again while nobody can write. The former leader may stop just then, without the copy
	// getting the rest: that try fails as well.
	for try := 2; ; try++ {
		id := fmt.Sprintf("u%d", try)
		c.running("g2-a").Kill()
		c.upgradeTo(17, id)
		c.start("g2-a")
		c.phase(members.UpgradeReady, 2*time.Minute)
		c.eventually("commits wait for another member", time.Minute, c.synchronous)
		c.fence(id)
		c.phase(members.UpgradeCatchingUp, time.Minute)
		again()
		stage := upgrade.Following
		c.eventually("it converts, or fails", time.Minute, func() bool {
			stage = state().Stage
			return stage == upgrade.Converting || stage == upgrade.Failed
		})
		if stage == upgrade.Converting {
			break
		}
		c.phase(members.UpgradeFailed, time.Minute)
		if why := c.upgrading().Message; try == 4 || !strings.Contains(why, "the copy ends at ") {
			t.Fatalf("the try %s failed: %s", id, why)
		}
		c.eventually("the first generation leads again", time.Minute, func() bool { return c.leader() != "" && c.ready("a", "b") })
	}
	again()
	c.eventually("the second generation leads", 2*time.Minute, func() bool {
		if r := c.upgrading(); r.Phase == members.UpgradeFailed {
			t.Fatalf("the upgrade failed: %s", r.Message)
		}
		return c.leader() == "g2-a"
	})
	again()
	c.phase(members.UpgradeDone, 2*time.Minute)
	w.goesOn(30 * time.Second)
	upgraded(t, c, "17")
	w.check(t)
	c.oneLeader()
}

// TestRoomOfUpgrade: a volume that is too small is told, and stops nothing.
func TestRoomOfUpgrade(t *testing.T) {
	c, w := aged(t, 15, "a", "b")
	volume := filepath.Join(c.base, "data-g2-a")
	if err := os.MkdirAll(volume, 0o770); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", volume, "tmpfs", 0, "size=40m,mode=0770,uid=999,gid=999"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(volume, unix.MNT_DETACH) })
	grow := func(size string) {
		if err := unix.Mount("tmpfs", volume, "tmpfs", unix.MS_REMOUNT, "size="+size); err != nil {
			t.Fatal(err)
		}
	}
	c.upgradeTo(17, "u1")
	c.join("g2-a")
	c.eventually("the copy does not fit", time.Minute, func() bool { return strings.Contains(c.upgrading().Message, "No space left on device") })
	grow("185m")
	c.phase(members.UpgradeIncompatible, 2*time.Minute)
	if r := c.upgrading(); !strings.Contains(r.Findings, "spec.storage") {
		t.Errorf("findings do not tell what helps: %s", r.Findings)
	}
	t.Log(c.upgrading().Findings)
	grow("1g")
	c.phase(members.UpgradeReady, 2*time.Minute)
	why := w.failures() // which a reset forgets
	if _, failed := w.reset(); failed > 0 {
		t.Errorf("%d writes failed, want none: %v", failed, why)
	}
	w.check(t)
}
