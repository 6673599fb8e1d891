// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
)

// suitable is a source that nothing is wrong with.
func suitable() server {
	return server{
		Version: 160004, Level: "logical", User: "mover", Slots: 10, Senders: 10, TargetWorkers: 4, TargetMajor: 17, Bytes: 1 << 30, Free: 10 << 30, ToBegin: 1,
		Databases: []database{{Name: "app", Source: "app_prod", Encoding: "UTF8", MayCreate: true, Tables: []table{
			{Schema: "public", Name: "orders", Kind: "r", Identity: true, Readable: true, Owned: true, Columns: "id integer"},
		}}},
	}
}

// TestFindings: each names what is wrong, where, and the remedy.
func TestFindings(t *testing.T) {
	first := func(change func(*table)) func(*server) {
		return func(s *server) { change(&s.Databases[0].Tables[0]) }
	}
	for name, c := range map[string]struct {
		reason string
		change func(*server)
		skip   []string
		want   []string
	}{
		"Nothing": {reason: "A suitable source has none.", change: func(*server) {}},
		"Old": {
			"Before version 13 tables with partitions are not published, and before 11 TRUNCATE is not.", func(s *server) { s.Version = 120022 }, nil,
			[]string{"the source has version 12: changes can be followed from version 13 on: upgrade the source first"},
		},
		"Newer":        {"Dumps and changes of a later version are not understood.", func(s *server) { s.Version = 180001 }, nil, []string{"make a Database with spec.version 18 or later"}},
		"Standby":      {"A standby makes no publication.", func(s *server) { s.Recovery = true }, nil, []string{"make another Database with the host of its primary"}},
		"Level":        {"Changes are not decoded.", func(s *server) { s.Level = "replica" }, nil, []string{"set wal_level = logical"}},
		"NoRight":      {"The user has no right to replicate.", func(s *server) { s.ReplicationRefused = "must be superuser" }, nil, []string{`run alter role "mover" replication`}},
		"Slots":        {"All slots are in use.", func(s *server) { s.SlotsUsed = 8 }, nil, []string{"has 2 free replication slots, and this needs 3: raise max_replication_slots there by 1"}},
		"Senders":      {"All senders are in use.", func(s *server) { s.SendersUsed = 10 }, nil, []string{"raise max_wal_senders there by 3"}},
		"Workers":      {"This server has too few workers.", func(s *server) { s.TargetWorkers = 1 }, nil, []string{"set spec.config.max_logical_replication_workers to 2 or more"}},
		"Room":         {"The volume would fill.", func(s *server) { s.Bytes = 10 << 30 }, nil, []string{"raise spec.storage by 3 GiB"}},
		"Missing":      {"A database has another name.", func(s *server) { s.MissingDatabases = []string{"app_old"} }, nil, []string{`no database "app_old"`}},
		"Occupied":     {"Tables would be mixed.", func(s *server) { s.Databases[0].OccupiedBy = "public.x" }, nil, []string{`database "app" of this Database is not empty (public.x)`}},
		"Encoding":     {"Text of no encoding.", func(s *server) { s.Databases[0].Encoding = "SQL_ASCII" }, nil, []string{"SQL_ASCII"}},
		"Extension":    {"The image lacks it.", func(s *server) { s.Databases[0].Extensions = []string{"timescaledb"} }, nil, []string{"this image has no extensions timescaledb"}},
		"Untrusted":    {"The owner cannot make it.", func(s *server) { s.Databases[0].Uncreated = []string{"postgis"} }, nil, []string{"postgis: list them in spec.extensions"}},
		"Objects":      {"Large objects are not followed.", func(s *server) { s.Databases[0].LargeObjects = true }, nil, []string{"make another Database with LargeObjects in spec.from.server.skip"}},
		"ObjectsSkip":  {"Left behind on request.", func(s *server) { s.Databases[0].LargeObjects = true }, []string{pgmember.SkipLargeObjects}, nil},
		"Unlogged":     {"Unlogged tables are not followed.", first(func(t *table) { t.Unlogged, t.Identity = true, false }), nil, []string{"set logged, or make another Database with UnloggedTables"}},
		"UnloggedSkip": {"Left behind on request.", first(func(t *table) { t.Unlogged, t.Identity = true, false }), []string{pgmember.SkipUnloggedTables}, nil},
		"NoKey":        {"Rows cannot be found again.", first(func(t *table) { t.Identity = false }), nil, []string{"or with a deferrable one, or whose replica identity has no index: public.orders"}},
		"Parent":       {"Partitions have the identity, not their parent.", first(func(t *table) { t.Kind, t.Identity = "p", false }), nil, nil},
		"Unreadable":   {"The user may not read.", first(func(t *table) { t.Readable = false }), nil, []string{`grant select on all tables in schema ... to "mover"`}},
		"Sequence":     {"Nor its sequences.", func(s *server) { s.Databases[0].Sequences = []string{"public.orders_id_seq"} }, nil, []string{"grant select on all sequences"}},
		"NotOwner":     {"Only an owner publishes.", first(func(t *table) { t.Owned = false }), nil, []string{"only an owner publishes tables"}},
		"Superuser": {"A superuser may.", func(s *server) {
			s.Super, s.Databases[0].Tables[0].Owned, s.Databases[0].MayCreate = true, false, false
		}, nil, nil},
		"Published": {"An administrator has published the tables.", func(s *server) {
			s.Databases[0].Published, s.Databases[0].Tables[0].Owned, s.Databases[0].MayCreate = true, false, false
			s.Databases[0].Tables[0].Published = true
		}, nil, nil},
		"PublishedLess": {"Rows of the others would be missing without a word.", func(s *server) {
			s.Databases[0].Published, s.Databases[0].Publication = true, "capstan_x"
		}, nil, []string{`publication "capstan_x" lacks tables: public.orders`}},
		"MayNotCreate": {"A publication is an object of the database.", func(s *server) { s.Databases[0].MayCreate = false }, nil, []string{`grant create on database "app_prod" to "mover"`}},
		"Always":       {"A trigger would fire twice.", first(func(t *table) { t.Always = true }), nil, []string{"triggers of public.orders are set to fire always"}},
		"Elsewhere":    {"Names of the schema would not be found.", func(s *server) { s.Databases[0].Elsewhere = []string{"postgis"} }, nil, []string{"extensions are in another schema here: postgis"}},
		"Roles":        {"They are not copied.", func(s *server) { s.Databases[0].Roles = []string{"policy own on orders"} }, nil, []string{"policy own on orders: drop them there, and make them again"}},
		"Partial":      {"Changes would be missing without a word.", func(s *server) { s.Databases[0].Partial = "lacks some operations" }, nil, []string{"lacks some operations: drop it"}},
		"Mighty":       {"The source would have its rights.", func(s *server) { s.Databases[0].Mighty = "role x may do more" }, nil, []string{"role x may do more"}},
		"Filtered":     {"Rows would be missing without a word.", first(func(t *table) { t.Filtered = true }), nil, []string{"bypassrls"}},
		"Forced":       {"Changes could not be applied.", first(func(t *table) { t.Filtered, t.Forced = true, true }), nil, []string{"no force row level security"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := suitable()
			c.change(&s)
			got := s.findings(c.skip)
			if len(got) != len(c.want) {
				t.Fatalf("%s got %q, want %q", c.reason, got, c.want)
			}
			for i := range got {
				if !strings.Contains(got[i], c.want[i]) {
					t.Errorf("%s got %q, want %q", c.reason, got[i], c.want[i])
				}
			}
		})
	}
}

// fixed are fields that cannot change.
var fixed = regexp.MustCompile(`spec\.from\.`)

// TestFindingsHaveARemedy: spec.from cannot change, so no finding asks for that.
func TestFindingsHaveARemedy(t *testing.T) {
	s := suitable()
	s.Recovery, s.MissingDatabases, s.Databases[0].LargeObjects, s.Databases[0].Tables[0].Unlogged = true, []string{"x"}, true, true
	found := s.findings(nil)
	if len(found) != 4 {
		t.Fatalf("got %q", found)
	}
	for _, f := range found {
		if fixed.MatchString(f) && !strings.Contains(f, "make another Database with") {
			t.Errorf("a finding names a field that cannot change: %s", f)
		}
	}
}

// TestFindingsAreBounded: a thousand tables are not a thousand names.
func TestFindingsAreBounded(t *testing.T) {
	s := suitable()
	for range 1000 {
		s.Databases[0].Tables = append(s.Databases[0].Tables, table{Schema: "public", Name: "t", Kind: "r", Readable: true, Owned: true})
	}
	if got := s.findings(nil); len(got) != 1 || !strings.Contains(got[0], "and 995 more") {
		t.Errorf("got %q", got)
	}
}

// TestFollowedOf: each partition is published by its own name, and what has no rows or is left behind is not.
func TestFollowedOf(t *testing.T) {
	got := followedOf([]table{
		{Name: "plain", Kind: "r"}, {Name: "parent", Kind: "p"}, {Name: "part", Kind: "r", Inherits: "9 700"}, {Name: "far", Kind: "f"}, {Name: "cache", Kind: "r", Unlogged: true},
	})
	if diff := cmp.Diff([]object{{Name: "plain"}, {Name: "part"}}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestRestorable leaves out what is there, and what only a superuser makes.
func TestRestorable(t *testing.T) {
	list := strings.Join([]string{
		"; Archive created at 2026-11-26 03:00:00 UTC", ";", "5; 2615 2200 SCHEMA - public pg_database_owner", "3450; 0 0 COMMENT - SCHEMA public pg_database_owner",
		"2; 3079 16390 EXTENSION - hstore ", "3451; 0 0 COMMENT - EXTENSION hstore ", "3; 3079 16391 EXTENSION - postgis ", "6; 2615 16500 SCHEMA - past legacy",
		"217; 1259 16501 TABLE past orders legacy", "3400; 3466 16600 EVENT TRIGGER - audit postgres", "3452; 0 0 COMMENT - EVENT TRIGGER audit postgres",
		"3453; 0 0 COMMENT past TABLE orders legacy", "3454; 6104 16700 PUBLICATION - old postgres", "3455; 2620 16710 TRIGGER past orders stamp legacy", "",
	}, "\n")
	want := strings.Join([]string{
		"; Archive created at 2026-11-26 03:00:00 UTC", ";", "2; 3079 16390 EXTENSION - hstore ", "6; 2615 16500 SCHEMA - past legacy",
		"217; 1259 16501 TABLE past orders legacy", "3453; 0 0 COMMENT past TABLE orders legacy", "3455; 2620 16710 TRIGGER past orders stamp legacy", "",
	}, "\n")
	if diff := cmp.Diff(want, restorable(list, []string{"plpgsql", "postgis"})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestChanged names what is another table than the one that was copied, also when it has the same name or is again what it was.
func TestChanged(t *testing.T) {
	of := func(oid uint32, change func(*table)) table {
		out := table{Schema: "public", Name: "t" + strconv.Itoa(int(oid)), OID: oid, Columns: "1 id integer 700", Inherits: "9 700"}
		if change != nil {
			change(&out)
		}
		return out
	}
	before := make([]string, 0, 8)
	for oid := range uint32(8) {
		before = append(before, of(oid, nil).fingerprint())
	}
	now := []table{
		of(0, nil),
		of(1, func(t *table) { t.Columns = "1 id bigint 800" }),
		// 2 is gone, and 3 was made again.
		of(3, func(t *table) { t.OID = 103 }),
		of(4, func(t *table) { t.Columns = "2 id integer 800" }), // dropped and added again
		of(5, func(t *table) { t.Columns = "1 id integer 801" }), // altered, and altered back
		of(6, func(t *table) { t.Inherits = "9 800" }),           // detached, and attached again
		of(7, func(t *table) { t.Unlogged = true }),
		of(8, nil),
	}
	lost, added := changed(before, now)
	if diff := cmp.Diff([]string{"public.t1", "public.t2", "public.t3", "public.t4", "public.t5", "public.t6", "public.t7"}, lost); diff != "" {
		t.Errorf("lost: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"public.t3", "public.t8"}, added); diff != "" {
		t.Errorf("added: -want, +got:\n%s", diff)
	}
	if lost, added := changed(before[:1], now[:1]); len(lost)+len(added) > 0 {
		t.Errorf("nothing changed, and it says %q and %q", lost, added)
	}
}

// TestPace is what a leader reports, look by look.
func TestPace(t *testing.T) {
	var p pace
	at := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		reason string
		after  time.Duration
		at     position
		state  string
		want   members.ImportReport
	}{
		{"Tables are copied.", 0, position{Tables: 40, Copied: 13}, members.ImportCopying, members.ImportReport{Copied: 30}},
		{"All are, and changes wait.", 10 * time.Second, position{Tables: 40, Copied: 40, Behind: 300 << 20, Moved: 1 << 20}, members.ImportFollowing, members.ImportReport{Copied: 100, LagBytes: 512 << 20, GapSeconds: 300}},
		{"They are applied quickly.", 20 * time.Second, position{Tables: 40, Copied: 40, Behind: 100 << 20, Moved: 1000 << 20}, members.ImportFollowing, members.ImportReport{Copied: 100, LagBytes: 128 << 20, GapSeconds: 15}},
		{"Nothing waits.", 30 * time.Second, position{Tables: 40, Copied: 40, Moved: 1100 << 20}, members.ImportFollowing, members.ImportReport{Copied: 100, GapSeconds: 15}},
		{"A worker failed.", 40 * time.Second, position{Tables: 40, Copied: 40, Errors: 1, Moved: 1100 << 20}, members.ImportFailing, members.ImportReport{Copied: 100, GapSeconds: 15}},
		{"It has not again.", 2 * time.Minute, position{Tables: 40, Copied: 40, Errors: 1, Moved: 1100 << 20}, members.ImportFollowing, members.ImportReport{Copied: 100, GapSeconds: 15}},
		{"A table came.", 3 * time.Minute, position{Tables: 40, Copied: 40, Errors: 1, Moved: 1100 << 20, Added: []string{"public.late"}}, members.ImportFailing, members.ImportReport{Copied: 100, GapSeconds: 15}},
		{"A publication was another one.", 185 * time.Second, position{Tables: 40, Copied: 40, Errors: 1, Moved: 1100 << 20, Changed: []string{"public.t (no longer published)"}}, members.ImportFailing, members.ImportReport{Copied: 100, GapSeconds: 15}},
		{"Nobody reads the slot, for a moment.", 190 * time.Second, position{Tables: 40, Copied: 40, Errors: 1, Moved: 1200 << 20, Idle: "capstan_x"}, members.ImportFollowing, members.ImportReport{Copied: 100, GapSeconds: 15}},
		{"Nobody has for a minute.", 251 * time.Second, position{Tables: 40, Copied: 40, Errors: 1, Moved: 1200 << 20, Idle: "capstan_x"}, members.ImportFailing, members.ImportReport{Copied: 100, GapSeconds: 15}},
		{"It is read again, and changes wait.", 260 * time.Second, position{Tables: 40, Copied: 40, Errors: 1, Moved: 1300 << 20, Behind: 3 << 20}, members.ImportFollowing, members.ImportReport{Copied: 100, LagBytes: 4 << 20, GapSeconds: 15}},
		{"Nothing has come for ten minutes.", 861 * time.Second, position{Tables: 40, Copied: 40, Errors: 1, Moved: 1300 << 20, Behind: 3 << 20}, members.ImportFailing, members.ImportReport{Copied: 100, LagBytes: 4 << 20, GapSeconds: 15}},
		{"The slot is lost.", 15 * time.Minute, position{Tables: 40, Copied: 40, Errors: 1, Moved: 1100 << 20, Lost: "capstan_x"}, members.ImportFailing, members.ImportReport{Copied: 100, GapSeconds: 15}},
	} {
		got := p.next(step.at, at.Add(step.after))
		if got.State != step.state {
			t.Errorf("%s The state is %s (%s), want %s", step.reason, got.State, got.Message, step.state)
		}
		got.State, got.Message = "", ""
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s -want, +got:\n%s", step.reason, diff)
		}
	}
}

// TestUnwanted: a fence is undone when no request wants it, and only what was done.
func TestUnwanted(t *testing.T) {
	value := func(s string) *string { return &s }
	since := time.Now()
	altered := fenced{database: "app", source: "app_prod", cut: "one", since: &since}
	had := altered
	had.was = value("off")
	own := altered
	own.was = value("on")
	for _, c := range []struct {
		reason  string
		fence   fenced
		request *members.CutOver
		other   bool // another database is imported
		is      *string
		want    string
	}{
		{"The request is as it was.", altered, &members.CutOver{ID: "one", StopWrites: true}, false, value("on"), "wanted"},
		{"It was withdrawn.", altered, nil, false, value("on"), `alter database "app_prod" reset default_transaction_read_only`},
		{"It stops writes no more.", altered, &members.CutOver{ID: "one"}, false, value("on"), `alter database "app_prod" reset default_transaction_read_only`},
		{"It is another one.", altered, &members.CutOver{ID: "two", StopWrites: true}, false, value("on"), `alter database "app_prod" reset default_transaction_read_only`},
		{"The database is imported no more.", altered, &members.CutOver{ID: "one", StopWrites: true}, true, value("on"), `alter database "app_prod" reset default_transaction_read_only`},
		{"An administrator had set it.", had, nil, false, value("on"), `alter database "app_prod" set default_transaction_read_only = 'off'`},
		{"It was read-only before.", own, nil, false, value("on"), ""},
		{"It could not be altered.", fenced{database: "app", source: "app_prod", cut: "one"}, nil, false, nil, ""},
		{"It could not, and has another value.", had, nil, false, value("off"), ""},
	} {
		i := members.Import{Databases: []members.ImportDatabase{{Name: "app", Source: "app_prod"}}, CutOver: c.request}
		if c.other {
			i.Databases[0].Name = "other"
		}
		got := "wanted"
		if out := unwanted([]fenced{c.fence}, i); len(out) == 1 {
			got = out[0].lowering(c.is)
		}
		if got != c.want {
			t.Errorf("%s got %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestReadsSequences: many are read by few queries, each once, and a name is no statement.
func TestReadsSequences(t *testing.T) {
	all := []object{{"public", `a" union select 1`}}
	for i := range 1200 {
		all = append(all, object{"public", "s" + strconv.Itoa(i)})
	}
	queries := readsSequences(all)
	if len(queries) != 3 || !strings.HasPrefix(queries[0], `select 0, last_value, is_called from "public"."a"" union select 1" union all select 1, `) {
		t.Errorf("%d queries: %.200s", len(queries), queries[0])
	}
	if n := strings.Count(strings.Join(queries, " "), "is_called"); n != len(all) || !strings.HasSuffix(queries[2], `select 1200, last_value, is_called from "public"."s1199"`) {
		t.Errorf("%d of %d are read", n, len(all))
	}
	if got := readsSequences(nil); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// TestHidden: what would not be copied, or applied twice, is named.
func TestHidden(t *testing.T) {
	all := []table{
		{Schema: "public", Name: "plain", Kind: "r"},
		{Schema: "public", Name: "secured", Kind: "r", Filtered: true},
		{Schema: "public", Name: "cache", Kind: "r", Unlogged: true, Filtered: true},
		{Schema: "public", Name: "parent", Kind: "p", Filtered: true},
		{Schema: "public", Name: "forced", Kind: "r", Forced: true},
		{Schema: "public", Name: "always", Kind: "r", Always: true},
	}
	if diff := cmp.Diff([]string{"public.secured (row security hides rows from the user of the import)"}, hidden(all)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if err := twice(all); err == nil || !strings.Contains(err.Error(), "public.forced, public.always") {
		t.Errorf("got %v", err)
	}
	if err := twice(all[:4]); err != nil {
		t.Error(err)
	}
}

// TestUnlisted: databases that are not imported any more are left, also when a try before could not.
func TestUnlisted(t *testing.T) {
	p := progress{sources: map[string]string{"app": "app_prod", "old": "old_prod"}, left: map[string]string{"gone": "gone_prod", "back": "back_prod"}}
	got := p.unlisted([]members.ImportDatabase{{Name: "app", Source: "app_prod"}, {Name: "back", Source: "back_prod"}})
	if diff := cmp.Diff([]members.ImportDatabase{{Name: "gone", Source: "gone_prod"}, {Name: "old", Source: "old_prod"}}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestAnother: a server that withholds its identifier is not another one.
func TestAnother(t *testing.T) {
	for _, c := range []struct {
		was, is string
		want    bool
	}{{"7", "7", false}, {"7", "8", true}, {"", "8", false}, {"7", "", false}} {
		if got := another(c.was, c.is); got != c.want {
			t.Errorf("%q and %q: got %t", c.was, c.is, got)
		}
	}
}

// TestNamed: names are of a Database's own, and PostgreSQL takes them.
func TestNamed(t *testing.T) {
	a, b := named("orders-db", "id-1", "app"), named("orders-db", "id-2", "app")
	if a == b || !strings.HasPrefix(a, "capstan_orders_db_") {
		t.Errorf("got %q and %q", a, b)
	}
	if long := named(strings.Repeat("a", 63), "id", "app"); len(long) > 63 {
		t.Errorf("%q has %d bytes", long, len(long))
	}
}

// TestOpenSource reads the Secret, and says what is missing in it.
func TestOpenSource(t *testing.T) {
	for _, c := range []struct {
		reason string
		keys   map[string]string
		tls    string
		want   string
		ca     string
	}{
		{"There is no Secret.", nil, "verify-full", `no key "host"`, ""},
		{"It is for another server: who names a host must not get a password that is for another one.", map[string]string{"host": "other", "username": "u", "password": "p"}, "verify-full", `the key "host" of the Secret of the source is not "h"`, ""},
		{"It is for another port, where somebody else may listen.", map[string]string{"host": "h", "port": "5433", "username": "u", "password": "p"}, "verify-full", `the key "port" of the Secret of the source is not 5432`, ""},
		{"It is for this port.", map[string]string{"host": "h", "port": "5432", "username": "u", "password": "p"}, "verify-full", "", "system"},
		{"It asks for a check, and there is none.", map[string]string{"host": "h", "username": "u", "password": "p", "ca.crt": "x"}, "disable", "spec.from.server.tls is Disable", ""},
		{"It has no password.", map[string]string{"host": "h", "username": "u"}, "verify-full", `no key "password"`, ""},
		{"An empty password is none.", map[string]string{"host": "h", "username": "u", "password": "\n"}, "verify-full", "is empty", ""},
		{"Well known authorities check names.", map[string]string{"host": "h", "username": "u", "password": "p\n"}, "verify-full", "", "system"},
		{"They cannot be had without names.", map[string]string{"host": "h", "username": "u", "password": "p"}, "verify-ca", `no key "ca.crt"`, ""},
		{"Without a check there is no authority.", map[string]string{"host": "h", "username": "u", "password": "p"}, "require", "", ""},
	} {
		dir := t.TempDir()
		for k, v := range c.keys {
			if err := os.WriteFile(filepath.Join(dir, k), []byte(v), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := openSource(members.Import{Host: "h", Port: 5432, TLS: c.tls}, dir, filepath.Join(dir, "pgpass"))
		if c.want == "" && (err != nil || got.ca != c.ca) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s got %+v, %v", c.reason, got, err)
		}
	}
}

// FuzzConninfo: with any text in the Secret and in names, a connection goes where the spec says, as the user that the Secret names.
func FuzzConninfo(f *testing.F) {
	f.Add("mover", "of'a:test\\", "orders")
	f.Add("a' host='/run/postgresql", `\`, "x' sslmode='disable")
	f.Fuzz(func(t *testing.T, user, password, database string) {
		dir := t.TempDir()
		for k, v := range map[string]string{"host": "legacy.example", "username": user, "password": password, "ca.crt": ""} {
			if err := os.WriteFile(filepath.Join(dir, k), []byte(v), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := openSource(members.Import{Host: "legacy.example", Port: 5433, TLS: "require"}, dir, filepath.Join(dir, "pgpass"))
		if err != nil || strings.ContainsAny(user+database, "\x00\r") || database == "" {
			return
		}
		s.ca = ""
		got, err := pgconn.ParseConfig(s.conninfo(database))
		if err != nil {
			t.Fatalf("%q: %v", s.conninfo(database), err)
		}
		if got.Host != "legacy.example" || got.Port != 5433 || got.User != s.user || got.Database != database || len(got.Fallbacks) > 0 || got.TLSConfig == nil {
			t.Errorf("%q goes to %s:%d/%s as %q", s.conninfo(database), got.Host, got.Port, got.Database, got.User)
		}
		raw, err := os.ReadFile(s.passwords)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.TrimRight(password, "\r\n"); s.password != want || unescaped(t, string(raw)) != want {
			t.Errorf("the password is %q, and %q in the file, want %q", s.password, raw, want)
		}
	})
}

// TestScramOnly: a password goes to a server in no other form than SCRAM, and without a proof that the server knows it no session begins.
func TestScramOnly(t *testing.T) {
	request := func(code uint32, more string) string {
		return "R" + string(binary.BigEndian.AppendUint32(nil, uint32(8+len(more)))) + string(binary.BigEndian.AppendUint32(nil, code)) + more
	}
	for _, c := range []struct{ reason, says string }{
		{"It asks for the password as it is.", request(3, "")},
		{"It asks for its MD5 sum, which can be guessed from.", request(5, "salt")},
		{"It lets everybody in.", request(loggedIn, "") + "Z\x00\x00\x00\x05I"},
		{"It begins with SCRAM, and asks for the password then.", request(saslBegins, "SCRAM-SHA-256\x00\x00") + request(3, "")},
		{"It lets the proof take for ever.", request(saslBegins, "SCRAM-SHA-256\x00\x00") + request(saslContinue, "r=x,s=c2FsdA==,i=2147483647")},
		{"It does not say how long.", request(saslBegins, "SCRAM-SHA-256\x00\x00") + request(saslContinue, "r=x,s=c2FsdA==")},
		{"It speaks another protocol.", "HTTP/1.1 400 Bad Request\r\n\r\n"},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		heard := make(chan string, 1)
		go func() {
			defer close(heard)
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = conn.Write([]byte(c.says))
			raw, _ := io.ReadAll(conn)
			heard <- string(raw)
		}()
		s := source{host: "127.0.0.1", port: int32(listener.Addr().(*net.TCPAddr).Port), mode: "disable", user: "mover", password: "a secret", limit: 10 * time.Second}
		err = s.visit(t.Context(), "app", func(context.Context, *pgx.Conn) error { return nil })
		if said := <-heard; strings.Contains(said, "a secret") || strings.Contains(said, "md5") {
			t.Errorf("%s It gets %q", c.reason, said)
		}
		if err == nil || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s The error is %v", c.reason, err)
		}
		_ = listener.Close()
	}
	if info := (source{}).libpq("app"); !strings.Contains(info, "require_auth='scram-sha-256'") {
		t.Errorf("PostgreSQL itself sends a password in any form: %s", info)
	}
}

// TestScramIterations: PostgreSQL's default passes, also when it comes byte by byte, and what would keep this program busy does not.
func TestScramIterations(t *testing.T) {
	for says, want := range map[string]bool{
		"r=nonce,s=c2FsdA==,i=4096": true, "r=nonce,s=c2FsdA==,i=1000000": true, "r=nonce,s=c2FsdA==,i=1000001": false, "r=nonce,s=c2FsdA==,i=99999999999999999999": false,
		"r=nonce,i=1,s=c2FsdA==,i=2000000": false, "r=nonce,s=c2FsdA==,i=-5": false, "r=" + strings.Repeat("x", 5000) + ",s=c2FsdA==,i=4096": false,
	} {
		message := "R" + string(binary.BigEndian.AppendUint32(nil, uint32(8+len(says)))) + string(binary.BigEndian.AppendUint32(nil, saslContinue)) + says
		raw, err := io.ReadAll(&scramReader{from: iotest.OneByteReader(strings.NewReader(message))})
		if (err == nil) != want || want && string(raw) != message {
			t.Errorf("%.40q: %v", says, err)
		}
		if !want && len(raw) >= len(message) {
			t.Errorf("%.40q is handed on", says)
		}
	}
}

// endless rows of a source.
type endless struct {
	pgx.Rows

	row    string
	closed bool
}

func (e *endless) Next() bool          { return !e.closed }
func (e *endless) RawValues() [][]byte { return [][]byte{[]byte(e.row)} }
func (e *endless) Close()              { e.closed = true }
func (e *endless) Err() error          { return nil }

// TestCollect: a source that never ends to answer does not fill the memory.
func TestCollect(t *testing.T) {
	for _, row := range []string{"", strings.Repeat("x", 1<<19)} {
		rows, n := &endless{row: row}, 0
		_, err := collect(rows, nil, func(pgx.CollectableRow) (string, error) { n++; return "", nil })
		if err == nil || !rows.closed || n > maxRows || n*len(row) > maxAnswer {
			t.Errorf("rows of %d bytes: %d are taken, %v", len(row), n, err)
		}
	}
}

// TestSilence: a server that takes connections and says nothing does not hold an import up.
func TestSilence(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	s := source{host: "127.0.0.1", port: int32(listener.Addr().(*net.TCPAddr).Port), mode: "disable", user: "mover", password: "p", limit: 300 * time.Millisecond}
	err = s.visit(t.Context(), "app", func(context.Context, *pgx.Conn) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "has not answered in time") {
		t.Errorf("got %v", err)
	}
}

// TestBounded: a source cannot fill the volume with its schema, which is there and not in the few mebibytes that are in memory.
func TestBounded(t *testing.T) {
	b := &bounded{to: io.Discard, left: 10}
	if _, err := b.Write(make([]byte, 10)); err != nil {
		t.Error(err)
	}
	if _, err := b.Write([]byte("x")); err == nil {
		t.Error("it takes more than it may")
	}
	if !strings.HasPrefix(layout.ImportSchema, pgmember.FolderVolume+"/") {
		t.Errorf("the schema is kept in %s", layout.ImportSchema)
	}
}

// unescaped password of a file of passwords, as libpq reads it: one line, and what follows a backslash is taken as it is.
func unescaped(t *testing.T, line string) string {
	t.Helper()
	rest, ok := strings.CutPrefix(line, "*:*:*:*:")
	if !ok || strings.Count(line, "\n") != 1 {
		t.Fatalf("%q is not one line for all servers", line)
	}
	var out []byte
	for i := 0; i < len(rest)-1; i++ {
		if rest[i] == '\\' {
			i++
		}
		out = append(out, rest[i])
	}
	return string(out)
}

// FuzzRestorable never invents an entry, and keeps the order.
func FuzzRestorable(f *testing.F) {
	f.Add("2; 3079 16390 EXTENSION - hstore \n217; 1259 16501 TABLE past orders legacy\n")
	f.Add("1; 0 0 COMMENT\n; x\n9; EVENT")
	f.Fuzz(func(t *testing.T, list string) {
		rest := list
		for line := range strings.Lines(restorable(list, []string{"hstore"})) {
			_, after, found := strings.Cut(rest, line)
			if !found {
				t.Fatalf("%q is not in %q", line, list)
			}
			rest = after
		}
	})
}
