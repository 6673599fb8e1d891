// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/test/container"
)

// verify the latest backup as the pod of a CronJob does, and return what it left on its volume, and what it said.
func (c *cluster) verify(id string) (left []string, said string) {
	c.t.Helper()
	volume := filepath.Join(c.base, fmt.Sprintf("verify-%d", time.Now().UnixNano()))
	if err := os.Mkdir(volume, 0o770); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Chown(volume, container.User, container.User); err != nil {
		c.t.Fatal(err)
	}
	said = c.job("verify", map[string]string{pgmember.FolderVolume: volume}, "verify", "--id="+id)
	entries, err := os.ReadDir(volume)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	return left, said
}

// verification is what the bucket has of verifications.
func (s *store) verification(t *testing.T, w pgmember.Backup) members.VerificationReport {
	t.Helper()
	var r members.VerificationReport
	got, err := s.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(objectstore.Verification(w))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	if err := json.NewDecoder(got.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// lose the first segment of the archive that begins at a name or later.
func (s *store) lose(t *testing.T, w pgmember.Backup, from string) string {
	t.Helper()
	list, err := s.client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(strings.Trim(w.Path, "/") + "/archive/" + w.Stanza + "/")})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Contents {
		name := filepath.Base(*o.Key)
		if len(name) > 24 && name[:24] >= from && name[24] == '-' {
			if _, err := s.client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: o.Key}); err != nil {
				t.Fatal(err)
			}
			return name[:24]
		}
	}
	t.Fatalf("no segment from %s on", from)
	return ""
}

// TestVerify: a good backup is verified and told of, and nothing is left of it. Assertions that do not hold, a restore that takes
// too long, an archive with a gap and a byte that was flipped are each found, with their causes.
func TestVerify(t *testing.T) {
	s := newStore(t)
	c := newClusterWith(t, []string{"a"}, archives)
	s.connection(c, "bucket")
	settings := c.settings("a")
	want := func(v pgmember.Verify) {
		settings.Verify = &v
		c.want(pgmember.Config{Backup: &settings})
	}
	want(pgmember.Verify{})
	begin(t, c, "a")
	conn, err := c.connect(t.Context(), "a", "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	insert := func(id int) time.Time {
		var at time.Time
		if err := conn.QueryRow(t.Context(), "insert into public.ledger (id) values ($1) returning clock_timestamp()", id).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	insert(1)
	taken, said := c.backup()
	if taken.Type != pgbackrest.Full {
		t.Fatalf("no backup: %s", said)
	}
	last := insert(2)
	c.switchLog("a")
	c.eventually("all is archived", time.Minute, func() bool { return c.archived("a") })
	t.Run("Passes", func(t *testing.T) {
		want(pgmember.Verify{Assertions: []pgmember.Assertion{
			{Database: "shop", SQL: "select count(*) = 2 from public.ledger"},
			{Database: "shop", SQL: "select not rolsuper from pg_roles where rolname = current_user"},
			{Database: "postgres", SQL: "select true;"},
		}})
		left, said := c.verify("one")
		got := s.verification(t, settings)
		if got.Failure != "" || got.ID != "one" || got.Began != "" || got.Passed.Backup != taken.Label || got.Passed.Assertions != 3 {
			t.Fatalf("the verification came to %+v: %s", got, said)
		}
		if len(left) > 0 {
			t.Errorf("it left %v on its volume", left)
		}
		// It is told to the second.
		if to, err := time.Parse(time.RFC3339, got.Passed.ReplayedTo); err != nil || to.Before(last.Add(-time.Second)) || to.After(time.Now()) {
			t.Errorf("all was replayed to %s, and the last commit was at %s", got.Passed.ReplayedTo, last)
		}
		for _, checked := range []string{"checked tables and indexes", "checked the checksums of all pages"} {
			if !strings.Contains(said, checked) {
				t.Errorf("it did not say %q: %s", checked, said)
			}
		}
		c.eventually("the leader tells of it", 2*time.Minute, func() bool {
			v := c.told("a").Verification
			return v.Asked && v.ID == "one" && v.Passed == got.Passed
		})
	})
	for name, tc := range map[string]struct {
		reason        string
		verify        pgmember.Verify
		kind, message string
	}{
		"Wrong": {
			"What does not hold is told by its place.",
			pgmember.Verify{Assertions: []pgmember.Assertion{{Database: "shop", SQL: "select true"}, {Database: "shop", SQL: "select count(*) = 3 from public.ledger"}}},
			members.VerifyAssertion, "assertions[1] in database \"shop\": it does not hold",
		},
		"Nothing":    {"No row is no truth.", asserts("select true where false"), members.VerifyAssertion, "it yields no row"},
		"Null":       {"Neither is what is not known.", asserts("select null::boolean"), members.VerifyAssertion, "it does not hold"},
		"Many":       {"One value is asked for.", asserts("select true from generate_series(1, 2)"), members.VerifyAssertion, "more than one row"},
		"Number":     {"A number is no truth.", asserts("select 1"), members.VerifyAssertion, "no boolean"},
		"Fails":      {"What PostgreSQL says is told.", asserts("select 1 / 0 = 1"), members.VerifyAssertion, "division by zero"},
		"Writes":     {"An assertion only reads.", asserts("delete from public.ledger returning true"), members.VerifyAssertion, "25006"},
		"Statements": {"It is one statement.", asserts("commit; drop table public.ledger"), members.VerifyAssertion, "42601"},
		"Program":    {"It starts no program.", asserts("copy (select 1) to program 'true'"), members.VerifyAssertion, "42501"},
		"Slow":       {"A restore that takes too long is ended.", pgmember.Verify{MaxRestoreSeconds: 1}, members.VerifySlow, "maxRestoreTime, 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			want(tc.verify)
			left, said := c.verify(name)
			got := s.verification(t, settings)
			if got.Failure != tc.kind || !strings.Contains(got.Message, tc.message) || got.ID != name || got.Passed.Backup != taken.Label || len(left) > 0 {
				t.Errorf("%s: the verification came to %+v and left %v: %s", tc.reason, got, left, said)
			}
		})
	}
	t.Run("Damaged", func(t *testing.T) {
		// An index whose order is no longer that of its operators is damaged, and every page of it has a good checksum.
		sql := func(statements string) {
			if out, err := c.running("a").Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", "shop", "-v", "ON_ERROR_STOP=1", "-c", statements); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			c.switchLog("a")
			c.eventually("all is archived", time.Minute, func() bool { return c.archived("a") })
		}
		sql(`create function public.odd(int4, int4) returns int4 language sql immutable as 'select $1 - $2';
			create operator class public.odd_ops for type int4 using btree as
				operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 public.odd(int4, int4);
			create table public.odd as select g as id from generate_series(1, 1000) g;
			create index odd_id on public.odd (id public.odd_ops);
			create or replace function public.odd(int4, int4) returns int4 language sql immutable as 'select $2 - $1'`)
		want(pgmember.Verify{})
		_, said := c.verify("damaged")
		if got := s.verification(t, settings); got.Failure != members.VerifyData || !strings.Contains(got.Message, "odd_id") {
			t.Errorf("an index is damaged, and the verification came to %+v: %s", got, said)
		}
		sql("drop table public.odd")
	})
	t.Run("Gap", func(t *testing.T) {
		want(pgmember.Verify{})
		name := c.query("a", "select pg_walfile_name(pg_current_wal_insert_lsn())")
		for id := 10; id < 13; id++ {
			insert(id)
			c.switchLog("a")
		}
		c.eventually("all is archived", time.Minute, func() bool { return c.archived("a") })
		lost := s.lose(t, settings, name)
		_, said := c.verify("gap")
		if got := s.verification(t, settings); got.Failure != members.VerifyArchive {
			t.Errorf("segment %s is missing, and the verification came to %+v: %s", lost, got, said)
		}
		// Another backup needs nothing of what is missing.
		if again, said := c.backup(); again.Label == taken.Label || again.Label == "" {
			t.Fatalf("no other backup: %s", said)
		}
		_, said = c.verify("mended")
		if got := s.verification(t, settings); got.Failure != "" {
			t.Errorf("after another backup the verification came to %+v: %s", got, said)
		}
	})
	t.Run("Flipped", func(t *testing.T) {
		s.tamper(t, strings.TrimPrefix(settings.Path, "/")+"/backup/"+settings.Stanza+"/"+taken.Label+"/bundle/")
		left, said := c.verify("flipped")
		if got := s.verification(t, settings); got.Failure != members.VerifyRestore || len(left) > 0 {
			t.Errorf("a byte was flipped, and the verification came to %+v and left %v: %s", got, left, said)
		}
		c.eventually("the leader tells of it", 2*time.Minute, func() bool {
			v := c.told("a").Verification
			return v.ID == "flipped" && v.Failure == members.VerifyRestore && v.Passed.Backup != ""
		})
		t.Logf("told: %s", c.told("a").Verification.Message)
	})
}

// asserts one thing of the database shop.
func asserts(sql string) pgmember.Verify {
	return pgmember.Verify{Assertions: []pgmember.Assertion{{Database: "shop", SQL: sql}}}
}

// points that the member tells.
func (c *cluster) points() []members.RestorePoint {
	var r members.Report
	_ = json.Unmarshal([]byte(c.pods()["a"].Annotations[members.AnnotationReport]), &r)
	return r.RestorePoints
}

// TestRestorePoint: a name is given once, waits for a backup, and a copy has exactly what was committed before it, also when the
// last backup is later.
func TestRestorePoint(t *testing.T) {
	s := newStore(t)
	c := newClusterWith(t, []string{"a"}, archives)
	s.connection(c, "bucket")
	settings := c.settings("a")
	ask := func(name string) {
		settings.RestorePoint = name
		c.want(pgmember.Config{Backup: &settings})
	}
	ask("early")
	begin(t, c, "a")
	conn, err := c.connect(t.Context(), "a", "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	id := 0
	insert := func(to int) {
		for id < to {
			id++
			if _, err := conn.Exec(t.Context(), "insert into public.ledger (id) values ($1)", id); err != nil {
				t.Fatal(err)
			}
		}
	}
	insert(1)
	c.eventually("it waits for a backup", time.Minute, func() bool { return strings.Contains(c.told("a").RestorePointWait, "first backup") })
	if taken, said := c.backup(); taken.Type != pgbackrest.Full {
		t.Fatalf("no backup: %s", said)
	}
	has := func(names ...string) func() bool {
		return func() bool {
			all := c.points()
			for i, n := range names {
				if i >= len(all) || all[i].Name != n {
					return false
				}
			}
			return len(all) == len(names) && c.told("a").RestorePointWait == ""
		}
	}
	c.eventually("the first name is given", 2*time.Minute, has("early"))
	insert(50)
	ask("v1")
	c.eventually("the second name is given", 2*time.Minute, has("early", "v1"))
	before := c.points()
	insert(52)
	ask("early")
	// A restart of the member is a new memory.
	c.running("a").Terminate(true)
	c.start("a")
	c.eventually("the member is ready again", 2*time.Minute, func() bool { return c.ready("a") })
	c.eventually("the names are told again", 2*time.Minute, has("early", "v1"))
	if taken, said := c.backup(); taken.Type != pgbackrest.Incremental {
		t.Fatalf("no second backup: %s", said)
	}
	if after := c.points(); len(after) != 2 || after[0] != before[0] || after[1] != before[1] {
		t.Errorf("a name was given twice: %+v, and then %+v", before, after)
	}
	t.Run("Before", func(t *testing.T) {
		// A name that was given to other data of this Database, such as before an upgrade, is not given to this.
		was := settings
		settings.Stanza = "orders-other-17"
		ask("v1")
		c.eventually("it is told that the name was given", 2*time.Minute, func() bool { return strings.Contains(c.told("a").RestorePointWait, "choose another name") })
		settings = was
		ask("v1")
		c.eventually("the names are told again", 2*time.Minute, has("early", "v1"))
	})
	source := pgmember.Source{Path: settings.Path}
	t.Run("Exact", func(t *testing.T) {
		from := source
		from.RestorePoint = "v1"
		d := restored(t, s, from, "a")
		d.eventually("the copy is ready", 2*time.Minute, func() bool { return d.ready("a") })
		d.loggable("a")
		if got := d.query("a", "select count(*)::text || ' ' || max(id)::text from public.ledger"); got != "50 50" {
			t.Errorf("the copy has rows %s, want those of the restore point: 50 50", got)
		}
	})
	t.Run("Unknown", func(t *testing.T) {
		from := source
		from.RestorePoint = "v2"
		d := restored(t, s, from, "a")
		d.eventually("it is told", time.Minute, func() bool {
			reason, message := d.blockedBy("a")
			return reason == members.ReasonRestoreFailed && strings.Contains(message, `no restore point "v2"`)
		})
	})
}
