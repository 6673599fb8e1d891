// SPDX-License-Identifier: Apache-2.0

//go:build integration

package access

import (
	"context"
	"database/sql"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/mysql"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	servers "github.com/capstan-dev/capstan/test/outside"
)

// A mysqlBench is an Access to a real server of MySQL.
type mysqlBench struct {
	*rig

	server *servers.MySQLServer
}

func newMySQLBench(t *testing.T) *mysqlBench {
	t.Helper()
	server := servers.MySQL(t, host)
	return &mysqlBench{rig: newRig(t, v1alpha1.EngineMySQL, server.Port, server.Password, server.CA), server: server}
}

// as connects like a consumer.
func (b *mysqlBench) as(name, password, database string) (*sql.Conn, error) {
	b.t.Helper()
	return consumer(b.t.Context(), b.open(name, password), database)
}

func (b *mysqlBench) open(name, password string) *sql.DB {
	b.t.Helper()
	db, err := mysql.Open(b.target(name, password))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = db.Close() })
	return db
}

// consumer of a database.
func consumer(ctx context.Context, db *sql.DB, database string) (*sql.Conn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, "USE `"+database+"`"); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func (b *mysqlBench) must(name, password, database string, statements ...string) *sql.Conn {
	b.t.Helper()
	conn, err := b.as(name, password, database)
	if err != nil {
		b.t.Fatalf("cannot connect as %q: %v", name, err)
	}
	for _, s := range statements {
		if _, err := conn.ExecContext(b.t.Context(), s); err != nil {
			b.t.Fatalf("cannot run %q as %q: %v", s, name, err)
		}
	}
	return conn
}

func (b *mysqlBench) mustNot(what, want, name, password, database string, statements ...string) {
	b.t.Helper()
	conn, err := b.as(name, password, database)
	if err == nil {
		defer func() { _ = conn.Close() }()
	}
	for _, s := range statements {
		if err == nil {
			_, err = conn.ExecContext(b.t.Context(), s)
		}
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		b.t.Errorf("%s: want an error with %q, got %v", what, want, err)
	}
}

// TestMySQLLife of an Access, from nothing to shutting somebody out.
func TestMySQLLife(t *testing.T) {
	b := newMySQLBench(t)

	// A name that _ would stand for, if it stood for any character.
	b.server.SQL("CREATE DATABASE ordersxeu", "CREATE TABLE ordersxeu.secret (id INT PRIMARY KEY)")
	b.databases("orders_eu", "billing")
	b.login("api", "orders_eu", v1alpha1.AccessReadWrite, "first")
	b.login("reports", "orders_eu", v1alpha1.AccessReadOnly, "read only")
	b.settles("making everything")
	want := v1alpha1.AccessObservation{
		Databases: []v1alpha1.ObservedDatabase{{Name: "billing"}, {Name: "orders_eu"}}, Logins: []string{"api", "reports"},
	}
	if diff := cmp.Diff(want, b.cr.Status.AtProvider); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	// Everything that an owner does.
	b.must("api", "first", "orders_eu",
		"CREATE TABLE items (id BIGINT AUTO_INCREMENT PRIMARY KEY, name TEXT)", "INSERT INTO items (name) VALUES ('first')",
		"ALTER TABLE items ADD COLUMN price INT", "CREATE INDEX price ON items (price)", "CREATE TABLE audit (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
		"CREATE VIEW named AS SELECT name FROM items", "CREATE TRIGGER noted AFTER INSERT ON items FOR EACH ROW INSERT INTO audit () VALUES ()",
		"CREATE FUNCTION one() RETURNS INT DETERMINISTIC RETURN 1", "CREATE PROCEDURE tidy() DELETE FROM audit", "CALL tidy()",
		"CREATE TEMPORARY TABLE t (id INT PRIMARY KEY)", "UPDATE items SET price = 7", "DELETE FROM audit", "LOCK TABLES items READ", "UNLOCK TABLES")
	b.must("reports", "read only", "orders_eu", "SELECT id, name FROM items", "SELECT name FROM named", "SHOW CREATE VIEW named")
	for what, statement := range map[string]string{
		"A reader writes":           "INSERT INTO items (name) VALUES ('x')",
		"A reader changes":          "UPDATE items SET price = 1",
		"A reader deletes":          "DELETE FROM items",
		"A reader makes a table":    "CREATE TABLE mine (id INT PRIMARY KEY)",
		"A reader drops":            "DROP TABLE items",
		"A reader calls":            "CALL tidy()",
		"A reader makes a view":     "CREATE VIEW mine AS SELECT 1",
		"A reader drops all of it":  "DROP DATABASE orders_eu",
		"A reader makes a database": "CREATE DATABASE mine",
	} {
		b.mustNot(what, "denied", "reports", "read only", "orders_eu", statement)
	}
	for what, statement := range map[string]string{
		"A login elsewhere":                   "USE billing",
		"A login where its name is a pattern": "SELECT id FROM ordersxeu.secret",
		"A login makes logins":                "CREATE USER mine",
		"A login gives rights on":             "GRANT SELECT ON orders_eu.* TO reports",
		"A login marks itself":                `ALTER USER api@'%' ATTRIBUTE '{"capstan.dev": "x"}'`,
		"A login sees verifiers":              "SELECT authentication_string FROM mysql.user",
		"A login makes a database":            "CREATE DATABASE mine",
		"A login makes a view as another":     "CREATE DEFINER = 'capstan'@'%' VIEW theirs AS SELECT 1",
		"A login ends others":                 "SET GLOBAL offline_mode = ON",
	} {
		b.mustNot(what, "enied", "api", "first", "orders_eu", statement)
	}
	b.mustNot("Another password", "Access denied", "api", "second", "orders_eu")
	if got := b.server.SQL("SELECT authentication_string LIKE '$A$005$%' FROM mysql.user WHERE User = 'api'"); cmp.Diff([]string{"1"}, got) != "" {
		t.Errorf("The server should keep a verifier, got %v", got)
	}
	plain := b.target("api", "first")
	plain.TLS = nil
	if db, err := mysql.Open(plain); err != nil || db.PingContext(t.Context()) == nil {
		t.Errorf("A login without TLS should be refused (%v)", err)
	}

	// A rotated password.
	b.secret("orders-db-api", map[string]string{"password": "second"})
	b.settles("rotating")
	b.must("api", "second", "orders_eu")
	b.mustNot("The former password", "Access denied", "api", "first", "orders_eu")

	// Its holder changes it in the server: told when what is proven is old.
	b.must("api", "second", "orders_eu", "ALTER USER USER() IDENTIFIED BY 'own'")
	b.c.proofs.now = func() time.Time { return time.Now().Add(2 * proven) }
	b.settles("after its holder changed it")
	b.must("api", "second", "orders_eu")

	// What somebody changed is as asked again.
	b.server.SQL("REVOKE SELECT ON orders_eu.* FROM reports", "GRANT INSERT ON orders_eu.* TO reports", "GRANT SELECT ON billing.* TO reports WITH GRANT OPTION",
		"ALTER USER reports REQUIRE NONE", "ALTER USER api ACCOUNT LOCK")
	b.settles("after drift")
	b.must("reports", "read only", "orders_eu", "SELECT id FROM items")
	b.mustNot("A reader that somebody let write", "denied", "reports", "read only", "orders_eu", "INSERT INTO items (name) VALUES ('x')")
	b.mustNot("A reader that somebody let in elsewhere", "denied", "reports", "read only", "billing")
	b.must("api", "second", "orders_eu")
	if got := b.server.SQL("SELECT COUNT(*) FROM mysql.user WHERE User IN ('api', 'reports') AND ssl_type = 'ANY'"); got[0] != "2" {
		t.Errorf("All logins should need TLS, got %v", got)
	}

	// api moves to another database.
	api := b.must("api", "second", "orders_eu")
	b.login("api", "billing", v1alpha1.AccessReadWrite, "second")
	b.settles("moving")
	b.mustNot("A login where it was", "denied", "api", "second", "orders_eu")
	if err := api.PingContext(t.Context()); err == nil {
		t.Error("Its sessions with the former database should have ended")
	}

	// And back, and is no longer wanted: what it made runs on.
	b.login("api", "orders_eu", v1alpha1.AccessReadWrite, "second")
	b.settles("moving back")
	api = b.must("api", "second", "orders_eu")
	b.login("writer", "orders_eu", v1alpha1.AccessReadWrite, "third")
	b.without("api")
	b.settles("shutting out")
	b.mustNot("A login that was shut out", "Account is locked", "api", "second", "orders_eu")
	if err := api.PingContext(t.Context()); err == nil {
		t.Error("Its sessions should have ended")
	}
	b.must("reports", "read only", "orders_eu", "SELECT name FROM named")
	b.must("writer", "third", "orders_eu", "DELETE FROM audit", "INSERT INTO items (name) VALUES ('second')")
	if got := b.server.SQL("SELECT COUNT(*) FROM orders_eu.audit"); got[0] != "1" {
		t.Errorf("Its trigger should run on, got %v", got)
	}

	// And is again.
	b.login("api", "orders_eu", v1alpha1.AccessReadOnly, "fourth")
	b.settles("letting in again")
	b.must("api", "fourth", "orders_eu", "SELECT id, name FROM items")
	b.mustNot("A reader now", "denied", "api", "fourth", "orders_eu", "INSERT INTO items (name) VALUES ('x')")

	// Deleting it changes nothing, with or without a server.
	now := metav1.Now()
	b.cr.DeletionTimestamp = &now
	b.server.Stop()
	if changed, err := b.reconcile(); changed || err != nil {
		t.Errorf("Deleting an Access should need no server, got %t, %v", changed, err)
	}
}

// TestMySQLStrangers are left alone, and so is what the server and the platform have.
func TestMySQLStrangers(t *testing.T) {
	b := newMySQLBench(t)
	b.server.SQL("CREATE USER api@'%' IDENTIFIED BY 'theirs'", "CREATE USER web@'10.0.0.0/255.0.0.0' IDENTIFIED BY 'theirs'", "CREATE USER capstan_replication@'%'")
	before := b.server.SQL("SELECT CONCAT_WS(' ', User, Host, authentication_string, User_attributes) FROM mysql.user WHERE User NOT IN ('app') ORDER BY User")
	b.databases("orders", "mysql", "sys", "performance_schema", "information_schema")
	for _, login := range []string{"api", "web", "app", "root", "capstan", "capstan_replication"} {
		b.login(login, "orders", v1alpha1.AccessReadWrite, "ours")
	}
	b.login("dba", "mysql", v1alpha1.AccessReadWrite, "ours")
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	c := b.cr.GetCondition(xpv2.TypeReady)
	for _, want := range []string{
		`account 'api'@'%' exists and Capstan did not make it, nothing was changed`,
		`account 'web'@'10.0.0.0/255.0.0.0' exists and Capstan did not make it, nothing was changed`,
		`database "mysql" is the server's own`, `database "sys" is the server's own`,
		`database "performance_schema" is the server's own`, `database "information_schema" is the server's own`,
		`login "root" has the name of an account`, `login "capstan" has the name of an account`, `login "capstan_replication" has the name of an account`,
	} {
		if !strings.Contains(c.Message, want) {
			t.Errorf("want %q, got %q", want, c.Message)
		}
	}
	want := v1alpha1.AccessObservation{Databases: []v1alpha1.ObservedDatabase{{Name: "orders"}}, Logins: []string{"app"}}
	if diff := cmp.Diff(want, b.cr.Status.AtProvider); diff != "" {
		t.Errorf("What is well is told all the same: -want, +got:\n%s", diff)
	}
	after := b.server.SQL("SELECT CONCAT_WS(' ', User, Host, authentication_string, User_attributes) FROM mysql.user WHERE User NOT IN ('app') ORDER BY User")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("Nothing of others should change: -before, +after:\n%s", diff)
	}
	quiet := b.cr.DeepCopy()
	if changed, err := b.reconcile(); changed || err != nil {
		t.Errorf("There is nothing more to do, got %t, %v", changed, err)
	}
	if diff := cmp.Diff(quiet.Status, b.cr.Status); diff != "" {
		t.Errorf("want a quiet status: -before, +after:\n%s", diff)
	}
}

// TestMySQLNames that a schema lets no one write do what they say, and nothing else.
func TestMySQLNames(t *testing.T) {
	b := newMySQLBench(t)
	b.server.SQL("CREATE DATABASE victim")
	const database, login = "x`; DROP DATABASE victim; -- '\"\\", `a'; DROP USER b; -- \`
	b.databases("victim", database)
	b.login("b", "victim", v1alpha1.AccessReadWrite, "secret")
	b.login("hostile", database, v1alpha1.AccessReadOnly, `it's "\quoted\" ; -- `)
	b.cr.Spec.ForProvider.Logins[1].Name = login
	b.settles("making it")
	if got := b.server.SQL("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME IN ('victim') OR SCHEMA_NAME LIKE 'x%' ORDER BY 1"); cmp.Diff([]string{"victim", database}, got) != "" {
		t.Errorf("want both databases, got %q", got)
	}
	if got := b.server.SQL("SELECT User FROM mysql.user WHERE User IN ('b') OR User LIKE 'a%' ORDER BY 1"); cmp.Diff([]string{login, "b"}, got) != "" {
		t.Errorf("want both logins, got %q", got)
	}
	if err := b.open(login, `it's "\quoted\" ; -- `).PingContext(t.Context()); err != nil {
		t.Errorf("It should log in with its password, got %v", err)
	}
}

// TestMySQLTrouble is told, and ends with its cause.
func TestMySQLTrouble(t *testing.T) {
	b := newMySQLBench(t)
	b.databases("orders")
	b.login("api", "orders", v1alpha1.AccessReadWrite, "secret")
	b.settles("making everything")
	cases := []struct {
		name, reason string
		break_, mend func()
		connected    xpv2.ConditionReason
		want         string
	}{
		{
			name: "Password", reason: "The server has another password.",
			break_:    func() { b.secret("orders-db-access", map[string]string{"password": "wrong"}) },
			mend:      func() { b.secret("orders-db-access", map[string]string{"password": b.server.Password}) },
			connected: apis.ReasonCredentialsRefused, want: "the server does not take the password of the account: see that server.passwordSecretRef holds the one that the server has",
		},
		{
			name: "Authority", reason: "The certificate is from another authority.",
			break_:    func() { b.secret("orders-db-members", map[string]string{"ca.crt": string(servers.Authority(t))}) },
			mend:      func() { b.secret("orders-db-members", map[string]string{"ca.crt": string(b.server.CA)}) },
			connected: apis.ReasonTLSFailed, want: "signed by an unknown authority: put the certificate of its authority where server.caSecretRef points to",
		},
		{
			name: "Name", reason: "The certificate is for another name.",
			break_: func() {
				b.cr.Spec.ForProvider.Server.Host = "other-rw.shop.svc"
				b.c.lookup = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
			},
			mend:      func() { b.cr.Spec.ForProvider.Server.Host = host },
			connected: apis.ReasonTLSFailed, want: "the server's certificate is not for server.host",
		},
		{
			name: "Down", reason: "Nobody is there.",
			break_: func() { b.server.Stop() }, mend: func() { b.server.Start() },
			connected: apis.ReasonUnreachable, want: "nothing answers at the address of the service",
		},
		{
			name: "Follower", reason: "A member that does not lead takes no writes, and is waited for.",
			break_: func() { b.server.SQL("SET GLOBAL super_read_only = ON") }, mend: func() { b.server.SQL("SET GLOBAL read_only = OFF") },
			connected: apis.ReasonUnreachable, want: "follows another one and takes no writes",
		},
		{
			name: "Offline", reason: "A member that is fenced lets nobody in.",
			break_: func() { b.server.SQL("SET GLOBAL offline_mode = ON") }, mend: func() { b.server.SQL("SET GLOBAL offline_mode = OFF") },
			connected: apis.ReasonUnreachable, want: "takes no writes",
		},
		{
			name: "Rights", reason: "The account may not make logins.",
			break_:    func() { b.server.SQL("REVOKE CREATE USER ON *.* FROM capstan") },
			mend:      func() { b.server.SQL("GRANT CREATE USER ON *.* TO capstan") },
			connected: apis.ReasonForbidden, want: `account "capstan" lacks the rights CREATE USER`,
		},
		{
			name: "Sight", reason: "The account may not see which logins there are.",
			break_:    func() { b.server.SQL("REVOKE SELECT ON mysql.db FROM capstan") },
			mend:      func() { b.server.SQL("GRANT SELECT ON mysql.db TO capstan") },
			connected: apis.ReasonForbidden, want: "the server does not let the account do this (SELECT command denied to user 'capstan'",
		},
		{
			name: "Wildcards", reason: "Names would stand for others.",
			break_:    func() { b.partialRevokes(false) },
			mend:      func() { b.partialRevokes(true) },
			connected: apis.ReasonInvalidConfig, want: "partial_revokes is off",
		},
		{
			name: "Locked", reason: "Somebody locked the account.",
			break_:    func() { b.server.SQL("ALTER USER capstan ACCOUNT LOCK") },
			mend:      func() { b.server.SQL("ALTER USER capstan ACCOUNT UNLOCK") },
			connected: apis.ReasonForbidden, want: "the server does not let the account in",
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			tc.break_()
			was := b.cr.Status.AtProvider.DeepCopy()
			_, err := b.reconcile()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("\n%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
			if c := b.cr.GetCondition(apis.TypeConnected); c.Reason != tc.connected || strings.Contains(c.Message, b.server.Password) {
				t.Errorf("\n%s\nwant reason %s, got %+v", tc.reason, tc.connected, c)
			}
			if diff := cmp.Diff(*was, b.cr.Status.AtProvider); diff != "" {
				t.Errorf("\n%s\nWhat is known should stay: -want, +got:\n%s", tc.reason, diff)
			}
			tc.mend()
			b.settles("after " + tc.name)
		})
	}

	// A login that is in use to its last connection is not given another password on a guess.
	b.server.SQL("ALTER USER api WITH MAX_USER_CONNECTIONS 1")
	b.must("api", "secret", "orders")
	b.c.proofs = newProofs(time.Now)
	verifier := b.server.SQL("SELECT HEX(authentication_string) FROM mysql.user WHERE User = 'api'")
	b.settles("with a login that is full")
	if diff := cmp.Diff(verifier, b.server.SQL("SELECT HEX(authentication_string) FROM mysql.user WHERE User = 'api'")); diff != "" {
		t.Errorf("Its verifier should stay: -before, +after:\n%s", diff)
	}

	// Nor is an address that no tenant must reach connected with.
	b.c.guard = &outside.Guard{APIServer: func(context.Context) ([]netip.Addr, error) { return nil, nil }}
	if _, err := b.reconcile(); err == nil || !strings.Contains(err.Error(), "a loopback address") {
		t.Errorf("want loopback to be refused, got %v", err)
	}
}

// partialRevokes can be switched off only while no account lacks anything.
func (b *mysqlBench) partialRevokes(on bool) {
	b.t.Helper()
	if on {
		b.server.SQL(append([]string{"SET GLOBAL partial_revokes = ON"}, mysqlmember.AccessRights()...)...)
		return
	}
	b.server.SQL("GRANT ALL ON *.* TO capstan WITH GRANT OPTION", "SET GLOBAL partial_revokes = OFF")
}

// TestMySQLTurns rotates the login of clients that connect all the time, and of one that stays: none of the former ever fails, and the
// one that stays is ended only when its time is over.
func TestMySQLTurns(t *testing.T) {
	b := newMySQLBench(t)
	s := newTurnstile(b.rig)
	s.settles("the first login")
	s.wants("the first login", "api", "", "")
	b.must("api", "password-of-turn-1", "orders", "CREATE TABLE work (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
		"CREATE VIEW done AS SELECT id FROM work")
	clients, stop := s.clerks(3, 200*time.Millisecond, func(ctx context.Context, user, password string) error {
		db, err := mysql.Open(b.target(user, password))
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		conn, err := consumer(ctx, db, "orders")
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if _, err = conn.ExecContext(ctx, "INSERT INTO work () VALUES ()"); err == nil {
			_, err = conn.ExecContext(ctx, "SELECT id FROM done LIMIT 1")
		}
		return err
	})
	stays := b.must("api", "password-of-turn-1", "orders")

	// The other login is made, and nobody is told to use it yet.
	s.stage()
	s.settles("the next login is made")
	s.wants("the next login is made", "api", "2-3f2a9c1b", "")
	next := b.must("api-b", "password-of-turn-2", "orders", "INSERT INTO work () VALUES ()")
	_ = next.Close()
	s.flip(24 * time.Hour)
	time.Sleep(time.Second) // clients read it
	s.settles("the flip")
	s.wants("the flip", "api-b", "", "api")

	// One session is enough.
	s.looks(15 * time.Minute)
	s.wants("a session stays", "api-b", "", "api")
	if _, err := stays.ExecContext(t.Context(), "INSERT INTO work () VALUES ()"); err != nil {
		t.Errorf("a session of the login before should go on: %v", err)
	}

	// To the end of the overlap.
	s.pass(24 * time.Hour)
	s.looks(time.Minute)
	s.wants("after the end of the overlap", "api-b", "", "")
	b.mustNot("the login before", "Account is locked", "api", "password-of-turn-1", "orders")
	if err := stays.PingContext(t.Context()); err == nil {
		t.Error("at the end of the overlap its sessions should be ended")
	}

	// Once more: the first login is made again, and has its rights still.
	s.stage()
	s.looks(time.Minute)
	s.wants("the first one is made again", "api-b", "3-3f2a9c1b", "")
	b.mustNot("the password before", "Access denied", "api", "password-of-turn-1", "orders")
	s.flip(time.Hour)
	time.Sleep(time.Second)
	s.looks(2 * time.Hour)
	s.wants("after the second turn", "api", "", "")
	stop()
	if clients.failed.Load() > 0 || clients.done.Load() < 20 {
		t.Errorf("%d connections failed, and %d did not: %q", clients.failed.Load(), clients.done.Load(), clients.why[:min(3, len(clients.why))])
	}
	t.Logf("%d connections, %d failed", clients.done.Load(), clients.failed.Load())
}

// TestMySQLTurnsCutOff takes turns with connections of the provider that end. MySQL has no transaction around the statements of a step.
func TestMySQLTurnsCutOff(t *testing.T) {
	b := newMySQLBench(t)
	s := newTurnstile(b.rig)
	s.settles("the first login")
	s.cutOff(func(user, password string) error {
		conn, err := b.as(user, password, "orders")
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// TestMySQLSecretIsGone takes the Secret away: both logins stay until it is back.
func TestMySQLSecretIsGone(t *testing.T) {
	b := newMySQLBench(t)
	s := newTurnstile(b.rig)
	s.settles("the first login")
	_ = s.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: consumerSecret}})
	if _, err := s.reconcile(); err != nil {
		t.Fatal(err)
	}
	b.must("api", "password-of-turn-1", "orders")

	// The Credential makes it again, of the other login, because clients have this one.
	s.secret(consumerSecret, map[string]string{"username": "api-b", "password": "password-of-turn-2"})
	s.write(func(o *corev1.Secret) {
		o.Annotations[credentialsv1alpha1.AnnotationOverlapUntil] = s.clock().Add(time.Hour).UTC().Format(time.RFC3339)
	})
	s.settles("the Secret is back")
	b.must("api-b", "password-of-turn-2", "orders")
	b.must("api", "password-of-turn-1", "orders")
	s.wants("the Secret is back", "api-b", "", "api")
}
