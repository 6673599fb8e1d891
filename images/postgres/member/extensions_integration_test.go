// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members/catalogue"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/engine/postgres"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// beside are extensions of other projects in the image. 15 has none: it is there for upgrades from it.
var beside = []string{"pg_cron", "pg_partman", "pg_repack", "pgaudit", "vector"}

// TestExtensions: a real server of each major version makes every extension that the image lists, with the libraries that the function loads
// for them. What comes from other projects also works: a table is rewritten, statements are audited, a job runs, and wal2json writes a change.
func TestExtensions(t *testing.T) {
	images, err := catalogue.Postgres()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range images.Majors {
		t.Run(m.Major, func(t *testing.T) {
			major, err := strconv.Atoi(m.Major)
			if err != nil {
				t.Fatal(err)
			}
			all := compose.SortedKeys(m.Extensions)
			if major >= 17 && slices.ContainsFunc(beside, func(e string) bool { return !slices.Contains(all, e) }) {
				t.Errorf("the image lacks one of %v", beside)
			}
			c := newClusterWith(t, []string{"a"}, func(c *cluster) {
				logical(c)
				c.server.Major, c.server.Extensions = major, all
				c.server.Preload = postgres.New().Libraries(engine.Server{Extensions: all, Image: preloads(t, m.Major)})
				if slices.Contains(all, "pg_cron") {
					c.server.CronDatabase = "shop"
				}
				if slices.Contains(all, "pgaudit") {
					c.server.Config["pgaudit.log"] = "ddl"
				}
			})
			begin(t, c, "a")
			c.file("config/member.json", fmt.Appendf(nil, `{"databases": ["shop"], "extensions": ["%s"]}`, strings.Join(all, `", "`)))
			missing := fmt.Sprintf("select coalesce(string_agg(e.name, ' '), '') from pg_available_extensions e join pg_available_extension_versions v on v.name = e.name "+
				"and v.version = e.default_version where e.installed_version is null and not v.trusted and e.name = any('{%s}')", strings.Join(all, ","))
			c.eventually("the member makes what only a superuser makes", 2*time.Minute, func() bool { return c.inShop("a", missing) == "" })
			for _, e := range all { // what the provider makes as the owner
				c.inShop("a", `create extension if not exists "`+e+`" cascade`)
			}
			if got := c.inShop("a", "select count(*) from pg_extension"); got != strconv.Itoa(len(all)) {
				t.Errorf("%s extensions are made, want %d", got, len(all))
			}
			// The image has no compiler for JIT. A client that asks for JIT gets its answer without.
			if got := c.inShop("a", "set jit = on; set jit_above_cost = 0; select count(*) > 0 from pg_class"); got != "t" {
				t.Errorf("a query with JIT: %s", got)
			}
			if major >= 17 {
				c.works(t)
			}
		})
	}
}

// preloads are what the function knows of a version of our image.
func preloads(t *testing.T, major string) inputv1alpha1.DatabaseVersion {
	t.Helper()
	versions, err := postgres.New().Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		if v.Version == major {
			return v
		}
	}
	t.Fatalf("the image has no version %s", major)
	return inputv1alpha1.DatabaseVersion{}
}

// inShop is the answer of the server of a member in the database of the test, as superuser.
func (c *cluster) inShop(letter, statement string) string {
	c.t.Helper()
	out, err := c.running(letter).Enter(pgmember.Programs(c.identify(letter).Version)+"/psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", "shop", "-qAtc", statement)
	if err != nil {
		c.t.Fatalf("%s: %v: %s", statement, err, out)
	}
	return strings.TrimSpace(out)
}

// works: what comes from other projects does what it is for.
func (c *cluster) works(t *testing.T) {
	t.Helper()
	programs := pgmember.Programs(c.identify("a").Version)
	c.inShop("a", "create table public.events (id bigint primary key, name text, at extensions.vector(2))")
	if got := c.inShop("a", "select current_setting('pgaudit.log')"); got != "ddl" {
		t.Errorf("pgaudit.log is %q", got)
	}
	c.inShop("a", "select cron.schedule('hourly', '0 * * * *', 'select 1')")
	c.inShop("a", "select pg_create_logical_replication_slot('cdc', 'wal2json')")
	c.inShop("a", "insert into public.events values (7, 'a row', '[1,2]')")
	out, err := c.running("a").Enter("timeout", "20", programs+"/pg_recvlogical", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", "shop", "--slot=cdc", "--start", "--no-loop",
		"--file=-", "--endpos="+c.inShop("a", "select pg_current_wal_lsn()"), "--option=format-version=2", "--option=add-tables=public.events")
	if err != nil || !regexp.MustCompile(`"action":"I".*"table":"events".*"value":7.*"a row"`).MatchString(out) {
		t.Errorf("wal2json writes %q: %v", out, err)
	}
	c.inShop("a", "insert into public.events select g, repeat('x', 500) from generate_series(100, 2000) g")
	c.inShop("a", "delete from public.events where id < 1900")
	before := c.inShop("a", "select pg_relation_size('public.events')")
	if out, err := c.running("a").Enter(programs+"/pg_repack", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", "shop", "-t", "public.events"); err != nil {
		t.Errorf("pg_repack: %v: %s", err, out)
	}
	after := c.inShop("a", "select pg_relation_size('public.events')")
	if b, _ := strconv.Atoi(before); b == 0 || c.inShop("a", "select count(*) from public.events") != "101" {
		t.Errorf("the table had %s bytes, and has %s", before, after)
	} else if a, _ := strconv.Atoi(after); a*2 > b {
		t.Errorf("the table was not rewritten: %s bytes before, %s after", before, after)
	}
}
