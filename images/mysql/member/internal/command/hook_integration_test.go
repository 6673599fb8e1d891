// SPDX-License-Identifier: Apache-2.0

//go:build integration

package command

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/member/hook"
	"github.com/capstan-dev/capstan/test/outside"
)

func TestMain(m *testing.M) { os.Exit(outside.Main(m)) }

// TestHook runs SQL as a consumer of a real server.
func TestHook(t *testing.T) {
	const password = `it's "\quoted\" @/:%?&`
	server := outside.MySQL(t, "orders-db-rw.demo.svc")
	server.SQL("CREATE DATABASE shop", "CREATE TABLE shop.jobs (id INT PRIMARY KEY, paused BOOL NOT NULL)", "INSERT INTO shop.jobs VALUES (1, FALSE), (2, FALSE)",
		"CREATE TABLE shop.keys_ (id INT PRIMARY KEY)",
		"CREATE USER app@'%' IDENTIFIED WITH caching_sha2_password BY '"+strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(password)+"' REQUIRE SSL", "GRANT ALL ON shop.* TO app")
	secret := func(t *testing.T, host string, ca []byte) string {
		t.Helper()
		dir := t.TempDir()
		uri := url.URL{Scheme: "mysql", User: url.UserPassword("app", password), Host: fmt.Sprintf("%s:%d", host, server.Port), Path: "/shop", RawQuery: "ssl-mode=VERIFY_IDENTITY"}
		for file, content := range map[string][]byte{"uri": []byte(uri.String()), "ca.crt": ca} {
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	good := secret(t, "127.0.0.1", server.CA)
	jobs := func() string {
		return strings.Join(server.SQL("SELECT CONCAT(id, paused) FROM shop.jobs ORDER BY id"), " ")
	}
	for _, tc := range []struct {
		name, reason, sql, connection string
		timeout                       time.Duration
		want, jobs                    string
	}{
		{"Good", "All statements are run, in one transaction.", "UPDATE jobs SET paused = TRUE WHERE id = 1; UPDATE jobs SET paused = TRUE WHERE id = 2;\n", good, time.Minute, "", "11 21"},
		{"Comment", "One at the end does not take the commit away.", "UPDATE jobs SET paused = FALSE -- all of them", good, time.Minute, "", "10 20"},
		{
			"Refused", "What is refused undoes the statements before it.", "UPDATE jobs SET paused = TRUE; SELECT missing FROM jobs", good, time.Minute,
			"MySQL refuses the statements: Unknown column 'missing' in 'field list' (1054)", "10 20",
		},
		{"Later", "So does a statement in the middle.", "UPDATE jobs SET paused = TRUE; INSERT INTO jobs VALUES (1, TRUE); SELECT 1", good, time.Minute, "(1062)", "10 20"},
		{"Forbidden", "It has the rights of its consumer only.", "SELECT 1 FROM mysql.user", good, time.Minute, "denied", "10 20"},
		{"Hangs", "It ends, also in the server.", "UPDATE jobs SET paused = TRUE; DO BENCHMARK(1000000000, SHA2('a', 512))", good, 2 * time.Second, "did not end within 2s", "10 20"},
		{"Authority", "A server that another authority vouches for is not told the password.", "SELECT 1", secret(t, "127.0.0.1", outside.Authority(t)), 3 * time.Second, "unknown authority", "10 20"},
		{"Name", "Nor is one whose certificate is for another host.", "SELECT 1", secret(t, "localhost", server.CA), 3 * time.Second, "x509", "10 20"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := Hook{hook.Hook{SQL: tc.sql, Connection: tc.connection, Timeout: tc.timeout}}
			err := h.Run(t.Context(), slog.New(slog.DiscardHandler))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
			if err != nil && strings.Contains(err.Error(), password) {
				t.Errorf("It says the password: %v", err)
			}
			if diff := cmp.Diff(tc.jobs, jobs()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			// A session ends a moment after its connection.
			const running = "SELECT COUNT(*) FROM performance_schema.processlist WHERE user = 'app' AND command = 'Query'"
			got := server.SQL(running)[0]
			for until := time.Now().Add(10 * time.Second); got != "0" && time.Now().Before(until); got = server.SQL(running)[0] {
				time.Sleep(100 * time.Millisecond)
			}
			if got != "0" {
				t.Errorf("Nothing of it should run on, got %s sessions", got)
			}
		})
	}
}

// TestHookWaits for a server that does not answer yet.
func TestHookWaits(t *testing.T) {
	server := outside.MySQL(t, "orders-db-rw.demo.svc")
	server.SQL("CREATE DATABASE shop", "CREATE TABLE shop.done (id INT PRIMARY KEY)", "CREATE USER app@'%' IDENTIFIED BY 'secret' REQUIRE SSL", "GRANT ALL ON shop.* TO app")
	dir := t.TempDir()
	for file, content := range map[string]string{"uri": fmt.Sprintf("mysql://app:secret@127.0.0.1:%d/shop", server.Port), "ca.crt": string(server.CA)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server.Stop()
	ended := make(chan error, 1)
	go func() {
		h := Hook{hook.Hook{SQL: "INSERT INTO done VALUES (1)", Connection: dir, Timeout: 2 * time.Minute}}
		ended <- h.Run(t.Context(), slog.New(slog.DiscardHandler))
	}()
	time.Sleep(time.Second)
	server.Start()
	if err := <-ended; err != nil {
		t.Errorf("want it to be run once the server is there, got %v", err)
	}
	if got := server.SQL("SELECT COUNT(*) FROM shop.done"); got[0] != "1" {
		t.Errorf("want it once, got %s rows", got[0])
	}
}

// TestHookSecret that is of no use.
func TestHookSecret(t *testing.T) {
	for name, uri := range map[string]string{
		"Other":  "postgresql://app:secret@localhost:5432/shop",
		"Broken": "mysql://app:secret%@localhost:3306/shop",
		"Port":   "mysql://app:secret@localhost/shop",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "uri"), []byte(uri), 0o600); err != nil {
				t.Fatal(err)
			}
			h := Hook{hook.Hook{SQL: "SELECT 1", Connection: dir, Timeout: time.Second}}
			if err := h.Run(t.Context(), slog.New(slog.DiscardHandler)); err == nil || err.Error() != "the Secret of the consumer has no uri of MySQL" {
				t.Errorf("want it to say so, without the password, got %v", err)
			}
		})
	}
}
