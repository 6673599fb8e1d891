// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/engine/postgres"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

const (
	kernelPages = "/proc/sys/vm/nr_hugepages"
	smallPage   = int64(2) << 20
)

// reserve so many huge pages of the kernel for the test, and report whether it has them.
func reserve(t *testing.T, n int) bool {
	t.Helper()
	former, err := os.ReadFile(kernelPages)
	if err != nil {
		return false
	}
	t.Cleanup(func() { _ = os.WriteFile(kernelPages, former, 0o600) })
	return setPages(n) == n
}

// setPages of the kernel, and return how many there are.
func setPages(n int) int {
	_ = os.WriteFile(kernelPages, []byte(strconv.Itoa(n)), 0o600)
	raw, _ := os.ReadFile(kernelPages)
	got, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
	return got
}

// parametersOf a member with huge pages, as its pod has them.
func parametersOf(t *testing.T, s engine.Server) string {
	t.Helper()
	raw, err := json.Marshal(postgres.New().OwnParameters(s))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestHugePages: a member whose pod has huge pages runs its server in them, beside one whose pod has yet to get them. Without pages the server
// does not start, and says why, instead of taking ordinary memory. On a kernel that reserves none, only the latter is left to see.
func TestHugePages(t *testing.T) {
	there := reserve(t, 150)
	t.Logf("the kernel reserves huge pages: %t", there)
	c := newClusterWith(t, []string{"a", "b"}, func(c *cluster) {
		c.server.Version, c.server.Connections = "17", c.server.MaxConnections
		c.server.HugePages = engine.HugePages{Page: smallPage, Amount: 256 << 20}
	})
	with := map[string]string{"b": parametersOf(t, c.server.Server)}
	begin(t, c, c.letters...)
	// What initdb runs gets none: a pod may be on a node that has some, and may not use them.
	base, err := os.ReadFile(filepath.Join(c.base, "data-a", "pgdata", "postgresql.base.conf"))
	if err != nil || !strings.Contains(string(base), "\nhuge_pages = off") {
		t.Errorf("initdb ran a server that tries huge pages (%v)", err)
	}
	settings := func(letter string) map[string]string {
		got := map[string]string{}
		for _, name := range []string{"huge_pages", "huge_pages_status", "huge_page_size", "shared_buffers"} {
			got[name] = c.asSuperuser(letter, "select current_setting('"+name+"')")
		}
		return got
	}
	ordinary := map[string]string{"huge_pages": "off", "huge_pages_status": "off", "huge_page_size": "0", "shared_buffers": "64MB"}
	if diff := cmp.Diff(ordinary, settings("b")); diff != "" {
		t.Errorf("a member whose pod has no huge pages: -want, +got:\n%s", diff)
	}
	b := "b"
	if c.leader() == b { // The change begins with a standby.
		b = "a"
		with = map[string]string{"a": with["b"]}
	}
	again := func() {
		c.running(b).Terminate(true)
		c.start(b)
	}
	c.own = with
	if there {
		again()
		c.eventually("both are ready", time.Minute, func() bool { return c.ready(c.letters...) })
		want := map[string]string{"huge_pages": "on", "huge_pages_status": "on", "huge_page_size": "2MB", "shared_buffers": "191MB"}
		if diff := cmp.Diff(want, settings(b)); diff != "" {
			t.Errorf("a member whose pod has huge pages: -want, +got:\n%s", diff)
		}
		if diff := cmp.Diff(ordinary, settings(c.leader())); diff != "" {
			t.Errorf("the other one: -want, +got:\n%s", diff)
		}
		for _, letter := range c.letters {
			if pending := c.asSuperuser(letter, "select coalesce(string_agg(name, ' '), '') from pg_settings where pending_restart"); pending != "" {
				t.Errorf("%s waits for another restart: %s", letter, pending)
			}
			if status := c.pods()[letter].Annotations["status"]; strings.Contains(status, "pending_restart") {
				t.Errorf("%s waits for another restart: %s", letter, status)
			}
		}
		c.asSuperuser(c.leader(), "create table filled as select repeat('x', 1000) as x from generate_series(1, 100000)")
		c.eventually("the standby has it", time.Minute, func() bool { return c.asSuperuser(b, "select to_regclass('filled') is not null") == "t" })
		if n := c.asSuperuser(b, "select count(*) from filled"); n != "100000" {
			t.Errorf("the standby has %s rows", n)
		}
	}

	c.running(b).Terminate(true)
	if got := setPages(0); got != 0 {
		t.Fatalf("the kernel has %d huge pages that others use", got)
	}
	log := filepath.Join(c.logs, "log-"+b)
	before, _ := os.ReadFile(log)
	c.start(b)
	c.eventually("the server says that there are no pages", time.Minute, func() bool {
		raw, _ := os.ReadFile(log)
		return strings.Contains(strings.TrimPrefix(string(raw), string(before)), "could not map anonymous shared memory")
	})
	if c.ready(b) {
		t.Errorf("%s runs without the pages that it was given", b)
	}
	c.running(b).Terminate(true)
	c.own = nil
	c.start(b)
	c.eventually("without them it follows as before", time.Minute, func() bool { return c.ready(c.letters...) })
	if diff := cmp.Diff(ordinary, settings(b)); diff != "" {
		t.Errorf("a member whose pod has no huge pages any more: -want, +got:\n%s", diff)
	}
}

// TestSharedMemory: what the servers of our image share fits the huge pages that the function computes buffers for, and most of the pages are used.
func TestSharedMemory(t *testing.T) {
	c := newCluster(t, "a")
	begin(t, c, "a")
	const mebibyte, gibibyte = int64(1) << 20, int64(1) << 30
	cases := map[string]struct {
		amount int64
		config map[string]string
	}{
		"Least": {amount: 256 * mebibyte}, "Small": {amount: 512 * mebibyte}, "Medium": {amount: gibibyte}, "Five": {amount: 5 * gibibyte}, "Eight": {amount: 8 * gibibyte},
		"Odd": {amount: 9*gibibyte + 2*mebibyte}, "Large": {amount: 66 * gibibyte}, "Largest": {amount: 512 * gibibyte},
		"Connections":  {8 * gibibyte, map[string]string{"max_connections": "10000"}},
		"Few":          {gibibyte, map[string]string{"max_connections": "20", "max_locks_per_transaction": "10", "max_pred_locks_per_transaction": "10"}},
		"Locks":        {8 * gibibyte, map[string]string{"max_locks_per_transaction": "5000"}},
		"Predicates":   {8 * gibibyte, map[string]string{"max_pred_locks_per_transaction": "5000"}},
		"Prepared":     {2 * gibibyte, map[string]string{"max_prepared_transactions": "1000"}},
		"WAL":          {2 * gibibyte, map[string]string{"wal_buffers": "256MB"}},
		"Activity":     {2 * gibibyte, map[string]string{"track_activity_query_size": "1MB"}},
		"Processes":    {2 * gibibyte, map[string]string{"max_wal_senders": "1000", "max_worker_processes": "1024", "max_replication_slots": "1000"}},
		"Statements":   {2 * gibibyte, map[string]string{"pg_stat_statements.max": "1000000"}},
		"Timestamps":   {gibibyte, map[string]string{"track_commit_timestamp": "on", "wal_level": "logical"}},
		"VacuumBefore": {gibibyte, map[string]string{"autovacuum_max_workers": "100"}},
	}
	for _, version := range []string{"15", "17", "18"} {
		libraries := []string{"auto_explain", "pg_stat_statements"}
		if version != "15" { // The image has them from 17 on.
			libraries = append(libraries, "pg_cron", "pgaudit")
		}
		programs, data := pgmember.Programs(version), "/data/shared-"+version
		if out, err := c.running("a").Enter("sh", "-c", fmt.Sprintf("%s/initdb -D %s -U postgres --no-sync >/tmp/initdb 2>&1 || { cat /tmp/initdb; exit 1; }", programs, data)); err != nil {
			t.Fatalf("cannot make data: %v: %s", err, out)
		}
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			tc := cases[name]
			t.Run(version+name, func(t *testing.T) {
				s := engine.Server{
					Version: version, Image: inputv1alpha1.DatabaseVersion{Version: version, Preload: libraries}, Extensions: libraries, Databases: []string{"shop"},
					Memory: gibibyte, Connections: 100, Config: tc.config, HugePages: engine.HugePages{Page: smallPage, Amount: tc.amount}, Archives: true,
				}
				all := postgres.New().Restarting(s)
				own := postgres.New().OwnParameters(s)
				maps.Copy(all, own)
				script := []string{programs + "/postgres -D " + data + " -C shared_memory_size_in_huge_pages"}
				for _, name := range slices.Sorted(maps.Keys(all)) {
					script = append(script, "-c '"+name+"="+all[name]+"'")
				}
				out, err := c.running("a").Enter("sh", "-c", strings.Join(script, " ")+" 2>/tmp/said || { cat /tmp/said; exit 1; }")
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				needs, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
				if err != nil {
					t.Fatalf("cannot understand %q: %v", out, err)
				}
				has := tc.amount / smallPage
				t.Logf("shared_buffers %s: %d of %d pages", own["shared_buffers"], needs, has)
				if needs > has {
					t.Errorf("a server with %v shares %d pages, and has %d", own, needs, has)
				}
				if needs*10 < has*7 {
					t.Errorf("a server with %v shares only %d pages of %d", own, needs, has)
				}
			})
		}
	}
}
