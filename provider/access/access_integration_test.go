// SPDX-License-Identifier: Apache-2.0

//go:build integration

package access

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/postgres"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	servers "github.com/capstan-dev/capstan/test/outside"
)

// A bench is an Access to a real server of PostgreSQL.
type bench struct {
	*rig

	server *servers.PostgresServer
}

func newBench(t *testing.T, version string) *bench {
	t.Helper()
	server := servers.Postgres(t, version, host)
	return &bench{rig: newRig(t, v1alpha1.EnginePostgres, server.Port, server.Password, server.CA), server: server}
}

// as connects like a consumer.
func (b *bench) as(name, password, database string) (*pgx.Conn, error) {
	b.t.Helper()
	cfg, err := postgres.Config(b.target(name, password))
	if err != nil {
		b.t.Fatal(err)
	}
	cfg.Database = database
	delete(cfg.RuntimeParams, "search_path")
	conn, err := pgx.ConnectConfig(b.t.Context(), cfg)
	if err == nil {
		b.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

func (b *bench) must(name, password, database string, statements ...string) *pgx.Conn {
	b.t.Helper()
	conn, err := b.as(name, password, database)
	if err != nil {
		b.t.Fatalf("cannot connect as %q: %v", name, err)
	}
	for _, s := range statements {
		if _, err := conn.Exec(b.t.Context(), s); err != nil {
			b.t.Fatalf("cannot run %q as %q: %v", s, name, err)
		}
	}
	return conn
}

func (b *bench) mustNot(what, want, name, password, database string, statements ...string) {
	b.t.Helper()
	conn, err := b.as(name, password, database)
	for _, s := range statements {
		if err == nil {
			_, err = conn.Exec(b.t.Context(), s)
		}
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		b.t.Errorf("%s: want an error with %q, got %v", what, want, err)
	}
}

func versions(t *testing.T, test func(*testing.T, *bench)) {
	t.Helper()
	for _, v := range []string{"15", "17", "18"} {
		t.Run(v, func(t *testing.T) { test(t, newBench(t, v)) })
	}
}

// TestLife of an Access, from nothing to shutting somebody out.
func TestLife(t *testing.T) {
	versions(t, func(t *testing.T, b *bench) { //nolint:thelper // It is the test.
		b.databases("orders", "billing")
		b.login("api", "orders", v1alpha1.AccessReadWrite, "first")
		b.login("reports", "orders", v1alpha1.AccessReadOnly, "read only")
		b.cr.Spec.ForProvider.Extensions = []string{"pg_trgm", "citext"}
		b.settles("making everything")
		want := v1alpha1.AccessObservation{
			Databases: []v1alpha1.ObservedDatabase{
				{Name: "billing", Extensions: []string{"citext", "pg_trgm"}},
				{Name: "orders", Extensions: []string{"citext", "pg_trgm"}},
			},
			Logins: []string{"api", "reports"},
		}
		if diff := cmp.Diff(want, b.cr.Status.AtProvider); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}

		// What one makes belongs to the owner, and others read it.
		api := b.must("api", "first", "orders",
			"CREATE TABLE public.items (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)",
			"INSERT INTO items (name) VALUES ('first')",
			"CREATE SCHEMA stock", "CREATE TABLE stock.places (id bigserial)", "CREATE VIEW stock.named AS SELECT name FROM public.items")
		if got := b.server.SQL("orders", "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname IN ('public', 'stock')"); cmp.Diff([]string{"orders_owner"}, got) != "" {
			t.Errorf("What api makes should belong to orders_owner, got %v", got)
		}
		b.must("reports", "read only", "orders", "SELECT id, name FROM items", "SELECT id FROM stock.places", "SELECT name FROM stock.named",
			"SELECT last_value FROM stock.places_id_seq")
		b.mustNot("A reader writes", "permission denied", "reports", "read only", "orders", "INSERT INTO items (name) VALUES ('x')")
		b.mustNot("A reader makes", "permission denied", "reports", "read only", "orders", "CREATE TABLE public.mine ()")
		b.mustNot("A reader becomes the owner", "permission denied", "reports", "read only", "orders", "SET ROLE orders_owner")
		b.mustNot("A login elsewhere", "permission denied for database", "api", "first", "billing")
		b.mustNot("A login becomes the provider", "permission denied", "api", "first", "orders", "SET ROLE capstan")
		b.mustNot("A login makes roles", "permission denied", "api", "first", "orders", "CREATE ROLE mine")
		b.mustNot("Another password", "password authentication failed", "api", "second", "orders")
		if got := b.server.SQL("postgres", "SELECT rolpassword LIKE 'SCRAM-SHA-256$4096:%' FROM pg_authid WHERE rolname = 'api'"); got[0] != "true" {
			t.Errorf("The server should keep a verifier, got %v", got)
		}

		// A rotated password.
		b.secret("orders-db-api", map[string]string{"password": "second"})
		b.settles("rotating")
		b.must("api", "second", "orders")
		b.mustNot("The former password", "password authentication failed", "api", "first", "orders")

		// Its holder changes it in the server: told when what is proven is old.
		b.must("api", "second", "orders", "SET ROLE NONE", "ALTER ROLE api PASSWORD 'own'")
		b.c.proofs.now = func() time.Time { return time.Now().Add(2 * proven) }
		b.settles("after its holder changed it")
		b.must("api", "second", "orders")

		// What was made before a reader could see it.
		b.server.SQL("orders", "ALTER DEFAULT PRIVILEGES FOR ROLE orders_owner REVOKE SELECT ON TABLES FROM orders_reader",
			"SET ROLE orders_owner", "CREATE TABLE public.unseen ()", "CREATE SCHEMA hidden", "REVOKE ALL ON SCHEMA hidden FROM orders_reader", "CREATE SEQUENCE hidden.n")
		b.settles("after drift")
		b.must("reports", "read only", "orders", "SELECT count(1) FROM unseen", "SELECT last_value FROM hidden.n")

		// api moves to another database, and back.
		b.login("api", "billing", v1alpha1.AccessReadWrite, "second")
		b.settles("moving")
		b.mustNot("A login where it was", "permission denied for database", "api", "second", "orders")
		if err := api.Ping(t.Context()); err == nil {
			t.Error("Its sessions with the former database should have ended")
		}
		b.must("api", "second", "billing", "CREATE TABLE public.bills ()")

		// It is no longer wanted.
		api = b.must("api", "second", "billing")
		b.without("api")
		b.settles("shutting out")
		b.mustNot("A login that was shut out", "not permitted to log in", "api", "second", "billing")
		if err := api.Ping(t.Context()); err == nil {
			t.Error("Its sessions should have ended")
		}
		if got := b.server.SQL("billing", "SELECT count(*) FROM public.bills"); got[0] != "0" {
			t.Errorf("What it made should stay, got %v", got)
		}
		if got := b.server.SQL("postgres", "SELECT count(*) FROM pg_auth_members WHERE member = 'api'::regrole OR roleid = 'api'::regrole AND NOT admin_option"); got[0] != "0" {
			t.Errorf("It should be in no role, and nobody in it, got %v", got)
		}

		// And is again.
		b.login("api", "orders", v1alpha1.AccessReadOnly, "third")
		b.settles("letting in again")
		b.must("api", "third", "orders", "SELECT id, name FROM items")
		b.mustNot("A reader now", "permission denied", "api", "third", "orders", "INSERT INTO items (name) VALUES ('x')")

		// Deleting it changes nothing, with or without a server.
		now := metav1.Now()
		b.cr.DeletionTimestamp = &now
		b.server.Stop()
		if changed, err := b.reconcile(); changed || err != nil {
			t.Errorf("Deleting an Access should need no server, got %t, %v", changed, err)
		}
	})
}

// TestStrangers are left alone.
func TestStrangers(t *testing.T) {
	versions(t, func(t *testing.T, b *bench) { //nolint:thelper // It is the test.
		b.server.SQL("postgres", "CREATE ROLE api LOGIN PASSWORD 'theirs'", "CREATE ROLE dba", "CREATE DATABASE archive OWNER dba",
			"CREATE ROLE stock_owner NOLOGIN")
		b.databases("orders", "archive", "stock")
		b.login("api", "orders", v1alpha1.AccessReadWrite, "ours")
		b.login("app", "orders", v1alpha1.AccessReadWrite, "secret")
		b.login("orders_reader", "orders", v1alpha1.AccessReadWrite, "secret")
		b.cr.Spec.ForProvider.Extensions = []string{"no_such", "pg_stat_statements", "citext"}
		if _, err := b.reconcile(); err != nil {
			t.Fatal(err)
		}
		c := b.cr.GetCondition(xpv2.TypeReady)
		for _, want := range []string{
			`role "api" exists and Capstan did not make it, nothing was changed`,
			`database "archive" exists and belongs to role "dba", nothing was changed`,
			`database "stock" needs a role "stock_owner"`,
			`login "orders_reader" has the name of a role`,
			`extension "no_such" is not in the image`,
		} {
			if !strings.Contains(c.Message, want) {
				t.Errorf("want %q, got %q", want, c.Message)
			}
		}
		want := v1alpha1.AccessObservation{
			Databases: []v1alpha1.ObservedDatabase{{
				Name: "orders", Extensions: []string{"citext"}, Missing: []string{"no_such", "pg_stat_statements"},
			}},
			Logins: []string{"app"},
		}
		if diff := cmp.Diff(want, b.cr.Status.AtProvider); diff != "" {
			t.Errorf("What is well is told all the same: -want, +got:\n%s", diff)
		}
		if got := b.server.SQL("postgres", "SELECT coalesce(shobj_description('api'::regrole, 'pg_authid'), 'none')"); got[0] != "none" {
			t.Errorf("api is not ours, got %v", got)
		}
		before := b.cr.DeepCopy()
		if changed, err := b.reconcile(); changed || err != nil {
			t.Errorf("There is nothing more to do, got %t, %v", changed, err)
		}
		if diff := cmp.Diff(before.Status, b.cr.Status); diff != "" {
			t.Errorf("want a quiet status: -before, +after:\n%s", diff)
		}
	})
}

// TestHostile owners of a database do what they may in it, and gain nothing.
func TestHostile(t *testing.T) {
	versions(t, func(t *testing.T, b *bench) { //nolint:thelper // It is the test.
		b.databases("orders")
		b.login("api", "orders", v1alpha1.AccessReadWrite, "secret")
		b.settles("making everything")
		b.must("api", "secret", "orders",
			// Whatever the provider calls unqualified, with better fitting arguments.
			`CREATE FUNCTION public.has_table_privilege(name, oid, text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'ALTER ROLE api CREATEDB'; RETURN true; END $$`,
			`CREATE FUNCTION public.pg_get_userbyid(oid) RETURNS name LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'ALTER ROLE api CREATEDB'; RETURN 'x'; END $$`,
			`CREATE FUNCTION public.eq(name, text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'ALTER ROLE api CREATEDB'; RETURN true; END $$`,
			`CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = text, FUNCTION = public.eq)`,
			`CREATE TABLE public.pg_roles ()`,
			`CREATE TABLE public."a""; DROP TABLE public.pg_roles; --" ()`,
			`CREATE SCHEMA "s'; x"`, `CREATE TABLE "s'; x"."t\" ()`,
			`REVOKE ALL ON ALL TABLES IN SCHEMA public FROM orders_reader`, `REVOKE ALL ON SCHEMA "s'; x" FROM orders_reader`,
			`REVOKE ALL ON "s'; x"."t\" FROM orders_reader`,
			`ALTER DATABASE orders SET search_path = public, pg_catalog`,
			`ALTER DATABASE orders SET role = 'orders_owner'`,
			`ALTER DATABASE orders SET statement_timeout = '1ms'`,
			`ALTER DATABASE orders SET default_transaction_read_only = on`,
			`ALTER DATABASE orders SET standard_conforming_strings = off`,
			`ALTER DATABASE orders SET quote_all_identifiers = on`,
			`ALTER DATABASE orders SET idle_session_timeout = '1ms'`)
		if b.server.SQL("postgres", "SHOW server_version_num")[0] >= "170000" {
			b.must("api", "secret", "orders", `ALTER DATABASE orders SET transaction_timeout = '1ms'`)
		}
		b.settles("in a hostile database")
		if got := b.server.SQL("postgres", "SELECT rolcreatedb FROM pg_roles WHERE rolname = 'api'"); got[0] != "false" {
			t.Errorf("api has made the provider work for it, got %v", got)
		}
		b.server.SQL("postgres", "ALTER DATABASE orders RESET ALL")
		if got := b.server.SQL("orders", `SELECT has_table_privilege('orders_reader', '"s''; x"."t\"', 'SELECT')`); got[0] != "true" {
			t.Errorf("A table of an odd name should be readable, got %v", got)
		}
	})
}

// TestFaults of a server, and what people are told.
func TestFaults(t *testing.T) {
	b := newBench(t, "17")
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
			name: "Password", reason: "The provider's own password is another one.",
			break_:    func() { b.secret("orders-db-access", map[string]string{"password": "wrong"}) },
			mend:      func() { b.secret("orders-db-access", map[string]string{"password": b.server.Password}) },
			connected: apis.ReasonCredentialsRefused, want: "does not take the password of the role: see that server.passwordSecretRef",
		},
		{
			name: "NoSecret", reason: "A Secret is not there yet.",
			break_:    func() { b.cr.Spec.ForProvider.Server.PasswordSecretRef.Name = "none" },
			mend:      func() { b.cr.Spec.ForProvider.Server.PasswordSecretRef.Name = "orders-db-access" },
			connected: apis.ReasonCredentialsMissing, want: `server.passwordSecretRef: there is no Secret "none": make it`,
		},
		{
			name: "Authority", reason: "Another authority.",
			break_:    func() { b.secret("orders-db-members", map[string]string{"ca.crt": string(servers.Authority(t))}) },
			mend:      func() { b.secret("orders-db-members", map[string]string{"ca.crt": string(b.server.CA)}) },
			connected: apis.ReasonTLSFailed, want: "signed by an unknown authority: put the certificate of its authority where server.caSecretRef points to",
		},
		{
			name: "NoAuthority", reason: "No certificate at all.",
			break_:    func() { b.secret("orders-db-members", map[string]string{"ca.crt": "none"}) },
			mend:      func() { b.secret("orders-db-members", map[string]string{"ca.crt": string(b.server.CA)}) },
			connected: apis.ReasonInvalidConfig, want: `key "ca.crt" of Secret "orders-db-members" holds no certificate`,
		},
		{
			name: "Elsewhere", reason: "A host of another namespace is not connected with.",
			break_:    func() { b.cr.Spec.ForProvider.Server.Host = "orders-db-rw.bank.svc" },
			mend:      func() { b.cr.Spec.ForProvider.Server.Host = host },
			connected: apis.ReasonAddressRefused, want: `server.host "orders-db-rw.bank.svc" is not a Service of namespace "shop": name one as <Service>.shop.svc`,
		},
		{
			name: "Down", reason: "Nobody is there.",
			break_: func() { b.server.Stop() }, mend: func() { b.server.Start() },
			connected: apis.ReasonUnreachable, want: "nothing answers at the address of the service",
		},
		{
			name: "Follower", reason: "A server that takes no writes is not the leader.",
			break_: func() { b.server.Standby(true) }, mend: func() { b.server.Standby(false) },
			connected: apis.ReasonUnreachable, want: "follows another one and takes no writes",
		},
		{
			name: "Rights", reason: "The role may not make roles.",
			break_:    func() { b.server.SQL("postgres", "ALTER ROLE capstan NOCREATEROLE") },
			mend:      func() { b.server.SQL("postgres", "ALTER ROLE capstan CREATEROLE") },
			connected: apis.ReasonForbidden, want: `role "capstan" may not make roles and databases: give it CREATEROLE and CREATEDB`,
		},
		{
			name: "Full", reason: "There is no connection left.",
			break_:    func() { b.server.SQL("postgres", "ALTER ROLE capstan CONNECTION LIMIT 0") },
			mend:      func() { b.server.SQL("postgres", "ALTER ROLE capstan CONNECTION LIMIT -1") },
			connected: apis.ReasonThrottled, want: "no connection left: raise max_connections",
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
}

// TestGuard keeps connections away from addresses that no tenant must reach.
func TestGuard(t *testing.T) {
	b := newBench(t, "17")
	b.databases("orders")
	b.c.guard = &outside.Guard{APIServer: func(context.Context) ([]netip.Addr, error) { return nil, nil }}
	if _, err := b.reconcile(); err == nil || !strings.Contains(err.Error(), "a loopback address") {
		t.Errorf("want loopback to be refused, got %v", err)
	}
}
