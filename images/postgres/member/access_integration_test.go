// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const someVerifier = "SCRAM-SHA-256$4096:c2FsdHNhbHRzYWx0c2E=$" + someKey + ":" + someKey

const someKey = "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXphYmNkZWY="

// TestVerifiersAreNotLogged: whatever the server logs of others, it logs no statement of the platform's login, and keeps none.
func TestVerifiersAreNotLogged(t *testing.T) {
	c := newCluster(t, "a")
	begin(t, c, "a")
	for name, value := range map[string]string{
		"log_statement": "all", "log_min_duration_statement": "0", "log_min_error_statement": "info", "log_min_duration_sample": "0",
		"log_statement_sample_rate": "1", "log_transaction_sample_rate": "1", "log_duration": "on", "pg_stat_statements.track_utility": "on",
	} {
		c.asSuperuser("a", "alter system set "+name+" = '"+value+"'")
	}
	c.asSuperuser("a", "select pg_reload_conf()")
	c.asSuperuser("a", "create extension if not exists pg_stat_statements")
	log := func() string {
		raw, err := os.ReadFile(filepath.Join(c.logs, "log-a"))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	c.eventually("the server logs statements", 20*time.Second, func() bool {
		c.asSuperuser("a", "select 'heard'")
		return strings.Contains(log(), "select 'heard'")
	})
	conn, err := c.connect(t.Context(), "a", "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, statement := range []string{"create role api login", "alter role api password '" + someVerifier + "'"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), "alter role nobody_has_this password '"+someVerifier+"'"); err == nil {
		t.Error("a role that does not exist has a password")
	}
	c.asSuperuser("a", "select 'last of all'")
	c.eventually("the log has all", 20*time.Second, func() bool { return strings.Contains(log(), "last of all") })
	for line := range strings.SplitSeq(log(), "\n") {
		if strings.Contains(line, "c2FsdHNhbHRzYWx0c2E") {
			t.Errorf("a verifier is in the log: %s", line)
		}
	}
	if got := c.asSuperuser("a", "select count(*) from pg_stat_statements where query like '%SCRAM-SHA-256$%'"); got != "0" {
		t.Errorf("%s statements with a verifier are in pg_stat_statements", got)
	}
}

// TestAccessRunsNoPrograms: in version 15 a role that may make roles can give itself any role but a superuser's. The platform's login,
// whose password the namespace can read, must not act as the user of the server outside of the database.
func TestAccessRunsNoPrograms(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(c *cluster) { c.server.Major = 15 })
	begin(t, c, "a")
	c.eventually("the platform can log in", time.Minute, func() bool {
		conn, err := c.connect(t.Context(), "a", "shop")
		if err == nil {
			_ = conn.Close(t.Context())
		}
		return err == nil
	})
	conn, err := c.connect(t.Context(), "a", "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, role := range []string{"pg_execute_server_program", "pg_write_server_files", "pg_read_server_files"} {
		if _, err := conn.Exec(t.Context(), "grant "+role+" to capstan"); err == nil {
			t.Errorf("it gives itself the role %s", role)
		}
	}
	for _, statement := range []string{
		"copy (select 1) to program 'id > /tmp/here'", "copy (select 1) to '/tmp/here'", "select pg_catalog.pg_read_file('/etc/passwd')",
	} {
		if _, err := conn.Exec(t.Context(), statement); err == nil {
			t.Errorf("it runs %s", statement)
		}
	}
	// An earlier image let it: what it took is taken back, in sessions that are open as well.
	c.asSuperuser("a", "update pg_authid set rolsuper = false where rolname = 'pg_execute_server_program'")
	for _, statement := range []string{"grant pg_execute_server_program to capstan", "copy (select 1) to program 'cat > /dev/null'"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	c.file("config/member.json", []byte(`{"databases": ["shop"], "extensions": ["pg_stat_statements"]}`))
	c.eventually("it is taken back", time.Minute, func() bool {
		return c.asSuperuser("a", "select rolsuper from pg_authid where rolname = 'pg_execute_server_program'") == "t"
	})
	if _, err := conn.Exec(t.Context(), "copy (select 1) to program 'cat > /dev/null'"); err == nil {
		t.Error("it still runs programs")
	}
	// What the platform needs it may.
	for _, statement := range []string{"create role api login", "grant pg_read_all_data to api", "drop role api"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}
