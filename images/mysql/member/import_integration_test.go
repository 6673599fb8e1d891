// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/test/outside"
)

// A legacy server is imported.
type legacy struct {
	*outside.MySQLServer

	c *cluster
}

const legacyPassword = `of'a:test\`

// legacy server, which members reach by its name.
func (c *cluster) legacy() *legacy {
	c.t.Helper()
	l := &legacy{outside.MySQL(c.t, "legacy.example"), c}
	for _, letter := range c.letters {
		c.offer(letter, net.JoinHostPort("127.0.0.1", strconv.Itoa(int(l.Port))))
	}
	c.hosts = append(c.hosts, "127.0.0.1 legacy.example")
	c.file("import/host", []byte("legacy.example"))
	c.file("import/username", []byte("mover"))
	c.file("import/password", []byte(legacyPassword))
	c.file("import/ca.crt", l.CA)
	return l
}

// open the server as root, for a client with a session of its own.
func (l *legacy) open() *sql.DB {
	cfg := driver.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.Logger = "root", "unix", l.Socket(), &driver.NopLogger{}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		l.c.t.Fatal(err)
	}
	return sql.OpenDB(connector)
}

// importFrom is the member's file of an import.
func (l *legacy) importFrom(cut *members.CutOver, skip ...string) {
	l.c.t.Helper()
	l.c.config.Import = &members.Import{
		Host: "legacy.example", Port: l.Port, TLS: mysqlmember.ImportVerifyFull, Databases: []members.ImportDatabase{{Name: "old_shop", Source: "old_shop"}, {Name: "past", Source: "past"}},
		Object: "uid-1", CutOver: cut, Skip: skip,
	}
	l.c.configure()
}

// imports is the report of the leader.
func (c *cluster) imports() members.ImportReport {
	if l := c.leader(); l != "" {
		if _, r, _ := c.status(l); r.Import != nil {
			return *r.Import
		}
	}
	return members.ImportReport{}
}

// comes to a state.
func (c *cluster) comes(state string, within time.Duration) time.Duration {
	c.t.Helper()
	return c.eventually("the import is "+state, within, func() bool { return c.imports().State == state })
}

// makes the databases, as the platform does.
func (c *cluster) makes(letters ...string) {
	c.t.Helper()
	for _, l := range letters {
		c.start(l)
	}
	c.eventually("all members are ready", 4*time.Minute, func() bool { return c.ready(letters...) })
	c.eventually("the databases are made", 30*time.Second, func() bool {
		conn := c.connect(c.leader(), mysqlmember.AccountAccess, "")
		defer func() { _ = conn.Close() }()
		_, err1 := conn.ExecContext(c.t.Context(), "CREATE DATABASE IF NOT EXISTS old_shop")
		_, err2 := conn.ExecContext(c.t.Context(), "CREATE DATABASE IF NOT EXISTS past")
		return err1 == nil && err2 == nil
	})
}

var legacySchema = []string{
	"CREATE USER mover@'%' IDENTIFIED WITH caching_sha2_password BY 'of''a:test\\\\' REQUIRE SSL",
	"CREATE DATABASE old_shop CHARACTER SET latin1", "CREATE DATABASE past", "CREATE DATABASE oldxshop", "CREATE TABLE oldxshop.secret (id INT PRIMARY KEY)",
	"CREATE TABLE old_shop.ledger (id BIGINT PRIMARY KEY, at TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6))",
	"CREATE TABLE old_shop.items (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(100) NOT NULL, twice INT GENERATED ALWAYS AS (LENGTH(name) * 2) STORED, UNIQUE KEY (name))",
	"SET SESSION cte_max_recursion_depth = 1000000", "USE past",
	"INSERT INTO old_shop.items (name) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT CONCAT('item ', i) FROM n",
	"CREATE TABLE past.orders (id BIGINT AUTO_INCREMENT, at DATE NOT NULL, item INT, note TEXT, PRIMARY KEY (id, at)) PARTITION BY RANGE COLUMNS (at) " +
		"(PARTITION p25 VALUES LESS THAN ('2026-01-01'), PARTITION p26 VALUES LESS THAN (MAXVALUE))",
	"INSERT INTO past.orders (at, item, note) SELECT DATE_ADD('2025-12-01', INTERVAL id % 60 DAY), id, SHA2(id, 256) FROM old_shop.items",
	"CREATE TABLE past.lines (id INT PRIMARY KEY, item INT, FOREIGN KEY (item) REFERENCES old_shop.items (id) ON DELETE CASCADE)",
	"INSERT INTO past.lines VALUES (1, 7), (2, 8)",
	"CREATE TABLE past.kinds (id INT PRIMARY KEY, f FLOAT, d DOUBLE, n DECIMAL(30, 10), big BIGINT UNSIGNED, b BIT(10), y YEAR, t TIME(3), dt DATETIME(6), ts TIMESTAMP NULL, " +
		"e ENUM('a', 'ö'), s SET('x', 'y'), j JSON, g GEOMETRY SRID 4326, raw VARBINARY(300), blob1 LONGBLOB, latin VARCHAR(20) CHARACTER SET latin1, wide VARCHAR(20) CHARACTER SET utf16, " +
		"c CHAR(5), zero DATE, fixed BINARY(16))",
	"SET SESSION sql_mode = ''",
	"INSERT INTO past.kinds VALUES (0, 1e0/3, 1e0/3, 12345678901234567890.0123456789, 18446744073709551615, b'1000000001', 2026, '-838:59:59', '9999-12-31 23:59:59.999999', '2026-03-29 01:30:00', " +
		"'ö', 'x,y', JSON_OBJECT('a', 1.5, 'ü', NULL), ST_GeomFromText('POINT(52.5 13.4)', 4326), UNHEX(REPEAT('00FF0A5C27', 50)), REPEAT(UNHEX('FE00'), 700000), 'grün', CONVERT(UNHEX('E6BCA2E5AD97F09F8E89') USING utf8mb4), 'ab', '0000-00-00', UNHEX('FF')), " +
		"(2, -0.0, 5e-324, -0.1, 0, b'0', 1901, '00:00:00.001', '1000-01-01', NULL, '', '', 'null', NULL, '', '', '', '', '', NULL, '')",
	"SET SESSION sql_mode = DEFAULT",
	"SET SESSION sql_require_primary_key = OFF", "CREATE TABLE past.nokey (a INT)", "CREATE TABLE past.old (a INT PRIMARY KEY) ENGINE = MyISAM",
	"CREATE VIEW past.totals AS SELECT COUNT(*) n FROM past.orders", "CREATE TRIGGER old_shop.stamp BEFORE INSERT ON old_shop.items FOR EACH ROW SET NEW.name = CONCAT(NEW.name, '!')",
}

// granted to the user of the import.
var granted = []string{
	"GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.* TO mover@'%'",
	"GRANT SELECT, LOCK TABLES, SHOW VIEW, TRIGGER, EVENT, EXECUTE ON old_shop.* TO mover@'%'",
	"GRANT SELECT, LOCK TABLES, SHOW VIEW, TRIGGER, EVENT, EXECUTE ON past.* TO mover@'%'",
}

// A legacyWriter is a client of the source: it adds rows, changes others, and knows which it was told to be there.
type legacyWriter struct {
	l    *legacy
	stop context.CancelFunc
	all  sync.WaitGroup

	mu    sync.Mutex
	acked []int
	err   error
}

func (l *legacy) write() *legacyWriter {
	ctx, stop := context.WithCancel(l.c.t.Context())
	w := &legacyWriter{l: l, stop: stop}
	db := l.open()
	w.all.Go(func() {
		defer func() { _ = db.Close() }()
		for id := 1; ctx.Err() == nil; id++ {
			_, err := db.Exec("INSERT INTO old_shop.ledger (id) VALUES (?)", id)
			w.mu.Lock()
			if err == nil {
				w.acked = append(w.acked, id)
			} else {
				w.err = err
			}
			w.mu.Unlock()
			if err == nil {
				_, _ = db.Exec("UPDATE past.orders SET note = CONCAT(note, '.') WHERE id = ?", id%60000+1)
				_, _ = db.Exec("DELETE FROM old_shop.items WHERE id = ?", 60000-id)
				_, _ = db.Exec("INSERT INTO old_shop.items (name) VALUES (?)", fmt.Sprint("new ", id))
			}
			time.Sleep(30 * time.Millisecond) // A busy machine with three members applies less than one alone commits.
		}
	})
	return w
}

func (w *legacyWriter) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

func (w *legacyWriter) end() {
	w.stop()
	w.all.Wait()
}

// tables that are imported.
var tables = []string{"old_shop.ledger", "old_shop.items", "past.orders", "past.lines", "past.kinds"}

// sameAs the source is every table, on every member, and every row that a client was told to be there.
func (c *cluster) sameAs(l *legacy, w *legacyWriter) {
	c.t.Helper()
	for _, table := range tables {
		want := c.checksum(l, table)
		for _, letter := range c.letters {
			c.eventually("table "+table+" of "+letter+" is the one of the source", 30*time.Second, func() bool { return c.inside(letter, "CHECKSUM TABLE "+table) == want })
		}
	}
	rows := strings.Fields(c.inside(c.leader(), "SELECT id FROM old_shop.ledger"))
	lost := 0
	for _, id := range w.acked {
		if !slices.Contains(rows, strconv.Itoa(id)) {
			lost++
		}
	}
	if lost > 0 || len(rows) < len(w.acked) {
		c.t.Errorf("%d of %d acknowledged rows are lost", lost, len(w.acked))
	}
}

// checksum of a table of the source, as a member would print it.
func (c *cluster) checksum(l *legacy, table string) string {
	c.t.Helper()
	db := l.open()
	defer func() { _ = db.Close() }()
	var name, sum string
	if err := db.QueryRow("CHECKSUM TABLE "+table).Scan(&name, &sum); err != nil {
		c.t.Fatal(err)
	}
	return name + "\t" + sum
}

// TestImport: a server is imported under writes. What stands in the way is reported first, the import survives the loss of a leader while it
// copies and of one while it follows, a switchover and a copy of a member, and after the cut-over every row is there once.
func TestImport(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	l := c.legacy()
	l.SQL(legacySchema...)
	l.SQL("SET GLOBAL gtid_mode = ON_PERMISSIVE")
	l.importFrom(nil)
	c.makes("a", "b", "c")

	t.Logf("incompatible after %s", c.comes(members.ImportIncompatible, time.Minute))
	finds := func(want ...string) {
		t.Helper()
		for _, one := range want {
			c.eventually("a finding says "+one, time.Minute, func() bool { return strings.Contains(strings.Join(c.imports().Findings, "\n"), one) })
		}
	}
	finds(`gtid_mode of the source is "ON_PERMISSIVE"`, `user "mover" lacks rights: run grant REPLICATION SLAVE, REPLICATION CLIENT, PROCESS on *.*`, `no database "old_shop"`)
	l.SQL(append([]string{"SET GLOBAL gtid_mode = ON"}, granted...)...)
	finds("tables without primary key: nokey", "tables of InnoDB only: old", "view totals", "trigger stamp")
	l.SQL("DROP TABLE past.nokey, past.old")
	if got := c.inside(c.leader(), "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema IN ('old_shop', 'past')"); got != "0" {
		t.Errorf("something was copied: %s", got)
	}
	w := l.write()
	l.importFrom(nil, mysqlmember.SkipStoredObjects)

	t.Logf("copying after %s", c.comes(members.ImportCopying, time.Minute))
	first := c.leader()
	c.running(first).Kill()
	t.Logf("leader %s is killed while it copies", first)
	c.eventually("another leads", 90*time.Second, func() bool { l := c.leader(); return l != "" && l != first })
	t.Logf("following after %s", c.comes(members.ImportFollowing, 3*time.Minute))
	if err := os.RemoveAll(filepath.Join(c.base, "data-"+first)); err != nil {
		t.Fatal(err)
	}
	c.start(first) // without data: it copies another member
	c.eventually("it is back", 8*time.Minute, func() bool { return c.ready("a", "b", "c") })

	// What is not copied is passed over, and what is not imported is not followed. A schema is.
	l.SQL("CREATE USER late IDENTIFIED BY 'secret'", "GRANT SELECT ON past.* TO late", "CREATE DEFINER = late PROCEDURE past.p() SELECT 1", "INSERT INTO oldxshop.secret VALUES (1)",
		"ALTER TABLE past.lines ADD COLUMN note VARCHAR(10) DEFAULT 'é'", "UPDATE past.lines SET note = 'ü' WHERE id = 1", "DROP USER late", "DELETE FROM old_shop.items WHERE id = 7")
	c.eventually("the schema has changed here", time.Minute, func() bool {
		return c.inside(c.leader(), "SELECT HEX(CONVERT(note USING utf8mb4)) FROM past.lines") == "C3A9"
	})

	second := c.leader()
	c.running(second).Kill()
	t.Logf("leader %s is killed while it follows", second)
	c.eventually("another leads", 90*time.Second, func() bool { l := c.leader(); return l != "" && l != second })
	c.start(second)
	c.eventually("it is back", 8*time.Minute, func() bool { return c.ready("a", "b", "c") })
	t.Logf("following again after %s", c.comes(members.ImportFollowing, time.Minute))
	third, next := c.leader(), c.followers()[0]
	c.annotate(members.SuffixFailover, "provider", map[string]string{
		members.AnnotationLeader: c.identify(third).Pod, members.AnnotationCandidate: c.identify(next).Pod,
	})
	t.Logf("another leads on request after %s", c.eventually("it leads", time.Minute, func() bool { return c.leader() == next }))
	n := w.count()
	c.eventually("changes are applied", 2*time.Minute, func() bool {
		return c.inside(c.leader(), fmt.Sprintf("SELECT COUNT(*) FROM old_shop.ledger WHERE id = %d", n)) == "1"
	})

	l.importFrom(&members.CutOver{ID: "go"}, mysqlmember.SkipStoredObjects)
	c.eventually("the writer is in the way", time.Minute, func() bool {
		m := c.imports().Message
		return strings.Contains(m, "takes writes") || strings.Contains(m, "open at the source")
	})
	w.end()
	stopped := time.Now()
	c.comes(members.ImportCutOver, time.Minute)
	r := c.imports()
	t.Logf("cut over %s after the last write, of which the report has %d s: %+v", time.Since(stopped).Round(10*time.Millisecond), r.GapSeconds, r)
	if r.CutOver != "go" || r.Message != "" {
		t.Errorf("got %+v", r)
	}
	c.sameAs(l, w)
	t.Logf("%d acknowledged rows", len(w.acked))
	for _, letter := range c.letters {
		if got := c.inside(letter, "SELECT (SELECT COUNT(*) FROM mysql.user WHERE user IN ('capstan_import', 'late')), (SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'oldxshop')"); got != "0\t0" {
			t.Errorf("%s has accounts or databases that were not imported, or the account of the import: %s", letter, got)
		}
		if got := c.inside(letter, "SELECT COUNT(*) FROM performance_schema.replication_connection_configuration WHERE channel_name = 'capstan_import'"); got != "0" {
			t.Errorf("%s still has the channel", letter)
		}
	}

	// Data that was imported is not imported again, for an object of the same name either.
	c.config.Import.Object, c.config.Import.CutOver = "uid-2", nil
	c.configure()
	c.running(c.leader()).Terminate(true)
	c.eventually("the next leader reports the end as well", 2*time.Minute, func() bool { r := c.imports(); return r.State == members.ImportCutOver && r.CutOver == "go" })
	c.oneLeader()
}

// TestImportStopsWrites: the source is made read-only while its clients write, and what they were told is here. The id that the Database was created
// with ends nothing, and a cut-over that is withdrawn lets the source take writes again.
func TestImportStopsWrites(t *testing.T) {
	c := newCluster(t, "a")
	l := c.legacy()
	l.SQL(legacySchema...)
	l.SQL("DROP TABLE past.nokey, past.old")
	l.SQL(granted...)
	l.importFrom(&members.CutOver{ID: "copied", StopWrites: true}, mysqlmember.SkipStoredObjects)
	w := l.write()
	c.makes("a")
	t.Logf("following after %s", c.comes(members.ImportFollowing, 3*time.Minute))
	if r := c.imports(); r.Skipped != "copied" {
		t.Errorf("got %+v", r)
	}
	// The only member is killed, and continues where it was.
	c.running("a").Kill()
	c.start("a")
	c.eventually("it is back", 2*time.Minute, func() bool { return c.ready("a") })
	n := w.count()
	c.eventually("changes are applied again", time.Minute, func() bool {
		return c.inside("a", fmt.Sprintf("SELECT COUNT(*) FROM old_shop.ledger WHERE id = %d", n)) == "1"
	})
	l.importFrom(&members.CutOver{ID: "first", StopWrites: true}, mysqlmember.SkipStoredObjects)
	c.eventually("the right is missing", time.Minute, func() bool { return strings.Contains(c.imports().Message, "grant system_variables_admin") })
	// A table that differs is found at the end, when the source is read-only already.
	l.SQL("SET SESSION sql_log_bin = OFF", "ALTER TABLE past.lines ADD COLUMN hidden INT")
	l.SQL("GRANT SYSTEM_VARIABLES_ADMIN, CONNECTION_ADMIN ON *.* TO mover@'%'")
	c.eventually("the difference is in the way", time.Minute, func() bool { return strings.Contains(c.imports().Message, "past.lines") })
	if got := l.SQL("SELECT @@GLOBAL.super_read_only"); got[0] != "1" {
		t.Errorf("the source takes writes: %s", got)
	}
	l.importFrom(nil, mysqlmember.SkipStoredObjects)
	c.eventually("the source takes writes again", time.Minute, func() bool { return l.SQL("SELECT @@GLOBAL.read_only + @@GLOBAL.super_read_only")[0] == "0" })
	l.SQL("SET SESSION sql_log_bin = OFF", "ALTER TABLE past.lines DROP COLUMN hidden")
	n = w.count()
	c.eventually("the client writes again", time.Minute, func() bool { return w.count() > n })

	l.importFrom(&members.CutOver{ID: "second", StopWrites: true}, mysqlmember.SkipStoredObjects)
	c.comes(members.ImportCutOver, time.Minute)
	w.end()
	if w.err == nil || !strings.Contains(w.err.Error(), "read-only") {
		t.Errorf("a client of the source had the error %v", w.err)
	}
	t.Logf("cut over: %+v", c.imports())
	c.sameAs(l, w)
	t.Logf("%d acknowledged rows", len(w.acked))
}
