// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/function/database/engine/postgres"
	"github.com/capstan-dev/capstan/test/container"
)

// exporter of a member, in the same container but as its own user, with queries beside it.
func (c *cluster) exporter(letter string) (address string) {
	c.t.Helper()
	m, traits := c.identify(letter), postgres.New().Traits().Exporter
	r := c.running(letter)
	args := append([]string{
		"--target", strconv.Itoa(r.PID()), "--mount", "--pid", "--ipc", "--uts", "--root", "--wd", "--setgid", strconv.Itoa(container.User),
		"--setuid", strconv.FormatInt(traits.User, 10), "--", "/usr/local/bin/capstan-member", "exporter",
	}, append(append([]string{}, traits.Command...), traits.Args...)...)
	cmd := exec.Command("nsenter", args...)
	address = m.Address(pgmember.PortMetrics)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin", "CAPSTAN_METRICS_ADDRESS=" + address, "CAPSTAN_BEHIND_ADDRESS=" + m.Address(9188)}
	for name, value := range traits.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	log, err := os.Create(filepath.Join(c.logs, "log-exporter"))
	if err != nil {
		c.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if raw, _ := os.ReadFile(log.Name()); c.t.Failed() {
			c.t.Logf("log of the exporter:\n%s", raw[max(0, len(raw)-6000):])
		}
	})
	return address
}

// TestQueries: results are metrics beside the exporter's own, each query has bounds, and one that fails takes nothing else away.
func TestQueries(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(*cluster) {})
	begin(t, c, "a")
	query := func(name, sql string, labels ...string) members.Query {
		return members.Query{Name: name, Help: "Of a test.", Database: "shop", SQL: sql, Values: []string{"n"}, Labels: labels, IntervalSeconds: 10}
	}
	good := query("sessions", "select datname as db, count(*) as n from pg_stat_activity where datname = 'shop' group by datname", "db")
	table := query("ledger", "select count(*) as n from ledger")
	c.want(pgmember.Config{Databases: []string{"shop"}, Extensions: []string{}, Queries: []members.Query{
		query("slow", "select 1 as n from pg_sleep(60)"),
		query("many", "select i as n, i::text as l from generate_series(1, 1000) i", "l"),
		query("large", "select 1 as n, repeat('x', 100000000) as l", "l"),
		query("twice", "select 1 as n, 'x' as l from generate_series(1, 2)", "l"),
		query("text", "select 'secret' as n"),
		query("writes", "create table public.mine (n int)"),
		query("more", "select 1 as n; select 2 as n"),
		query("other", "select 1 as m"),
		table, good,
	}})
	address := c.exporter("a")
	scrape := func() string {
		client := http.Client{Timeout: 30 * time.Second}
		resp, err := client.Get("http://" + address + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer func() { _ = resp.Body.Close() }()
		raw, _ := io.ReadAll(resp.Body)
		return string(raw)
	}
	text := ""
	c.eventually("queries run and the exporter works", 2*time.Minute, func() bool {
		text = scrape()
		return strings.Contains(text, "\npg_up 1\n") && strings.Contains(text, `capstan_query_sessions_n{db="shop"} `) && strings.Contains(text, `capstan_queries_up{query="ledger"} 0`)
	})
	for _, name := range []string{"slow", "many", "large", "twice", "text", "writes", "more", "other", "ledger"} {
		if !strings.Contains(text, `capstan_queries_up{query="`+name+`"} 0`) || strings.Contains(text, "capstan_query_"+name+"_") {
			t.Errorf("%s did not fail, or has a value", name)
		}
	}
	failing := func() map[string]string {
		r := c.report("a").Queries
		if r == nil {
			return nil
		}
		out := map[string]string{}
		for _, q := range r.Failing {
			out[q.Name] = q.Message
		}
		return out
	}
	c.eventually("the member reports them", 2*time.Minute, func() bool { return len(failing()) == 9 })
	for name, want := range map[string]string{
		"slow": "canceling statement due to statement timeout", "many": "more than 200 rows", "large": "a row has more than 65536 bytes",
		"twice": "two rows have the same labels", "text": "is no number", "writes": "read-only transaction", "more": "multiple commands",
		"other": `no column "n"`, "ledger": "permission denied for table ledger",
	} {
		if got := failing()[name]; !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}

	conn, err := c.connect(t.Context(), "a", "shop")
	if err != nil {
		t.Fatal(err)
	}
	// The provider takes the database from everybody, too.
	for _, statement := range []string{"grant select on public.ledger to exporter", "revoke connect on database shop from public"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.Close(t.Context())
	c.want(pgmember.Config{Databases: []string{"shop"}, Extensions: []string{}, Queries: []members.Query{table, good}})
	c.eventually("all queries are well", 2*time.Minute, func() bool {
		r := c.report("a").Queries
		return r != nil && len(r.Failing) == 0 && strings.Contains(scrape(), "capstan_query_ledger_n ")
	})
	c.want(pgmember.Config{Databases: []string{"shop"}, Extensions: []string{}})
	c.eventually("the exporter may not connect any more", 3*time.Minute, func() bool {
		return c.query("a", "select has_database_privilege('exporter', 'shop', 'connect')::text") == "false" && c.report("a").Queries == nil
	})
}
