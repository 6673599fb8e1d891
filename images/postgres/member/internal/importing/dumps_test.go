// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dumpfile"
)

// TestTries: the same dumps are tried again after a pause that grows, and other dumps at once.
func TestTries(t *testing.T) {
	var tr tries
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	if tr.waits("a", now) {
		t.Error("the first try waits")
	}
	want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour}
	for i, pause := range want {
		tr.failed("a", "why", now)
		if !tr.waits("a", now.Add(pause-time.Second)) || tr.waits("a", now.Add(pause)) {
			t.Errorf("the pause after try %d is not %s: %s", i, pause, tr.pause)
		}
	}
	if tr.waits("b", now) {
		t.Error("other dumps wait")
	}
	if tr.failed("b", "why", now); tr.pause != time.Minute {
		t.Errorf("the first pause of other dumps is %s", tr.pause)
	}
}

// TestErrorLines: the first errors of pg_restore, without statements and rows.
func TestErrorLines(t *testing.T) {
	for _, c := range []struct{ reason, said, want string }{
		{"A statement fails.", `pg_restore: while PROCESSING TOC:
pg_restore: from TOC entry 218; 1259 16394 TABLE items legacy
pg_restore: error: could not execute query: ERROR:  type "public.hstore" does not exist
LINE 4:     h public.hstore
Command was: CREATE TABLE public.items (password text default 'secret')
`, `from TOC entry 218; 1259 16394 TABLE items legacy: could not execute query: ERROR: type "public.hstore" does not exist`},
		{"A row is refused.", `pg_restore: error: COPY failed for table "items": ERROR:  duplicate key value violates unique constraint "items_pkey"
DETAIL:  Key (name)=(secret) already exists.
CONTEXT:  COPY items, line 7
`, `COPY failed for table "items": ERROR: duplicate key value violates unique constraint "items_pkey": COPY items, line 7`},
		{"A value is refused.", `pg_restore: error: COPY failed for table "items": ERROR:  invalid input syntax for type integer: "secret"
CONTEXT:  COPY items, line 7, column id: "secret"
`, `COPY failed for table "items": ERROR: invalid input syntax for type integer: …: COPY items, line 7, column id`},
		{"It says nothing.", "", "pg_restore: exit status 1"},
	} {
		if got := errorLines(c.said, errors.New("exit status 1")).Error(); got != c.want {
			t.Errorf("%s got %q, want %q", c.reason, got, c.want)
		}
	}
}

func TestWithoutValues(t *testing.T) {
	for message, want := range map[string]string{
		`relation "items" does not exist`:                         `relation "items" does not exist`,
		`invalid input syntax for type integer: "secret: "x""`:    `invalid input syntax for type integer: …`,
		`value "99999999999" is out of range for type integer`:    `value … is out of range for type integer`,
		`invalid input value for enum mood: "sec` + "\n" + `ret"`: `invalid input value for enum mood: …`,
		`new row violates check constraint`:                       `new row violates check constraint`,
		`Key (id)=(7) already exists.`:                            `Key (id)=(…) already exists.`,
		`date/time field value out of range: "2026-99-99"`:        `date/time field value out of range: …`,
	} {
		if got := withoutValues(message); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}

// TestExplained errors have a remedy, once.
func TestExplained(t *testing.T) {
	for text, want := range map[string]string{
		`line 3: ERROR: permission denied to create extension "postgis"`:          "list it in spec.extensions",
		`line 3: ERROR: role "legacy" does not exist`:                             "roles are not in a dump",
		`line 3: ERROR: relation "a" already exists`:                              "correct that in the database that was dumped",
		`line 3: rows have no end, so the file is cut off: copy or dump it again`: "",
		`cannot read a in the bucket: the connection has ended: unexpected EOF`:   "see the bucket",
		`line 3: ERROR: out of shared memory`:                                     "max_locks_per_transaction",
	} {
		got := explained(errors.New(text)).Error()
		if !strings.HasPrefix(got, text) || !strings.Contains(strings.TrimPrefix(got, text), want) || want == "" && got != text {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

// TestRestorableEntries: what is here already, and what only a superuser makes, is left out.
func TestRestorableEntries(t *testing.T) {
	entries := []dumpfile.Entry{
		{ID: 1, Kind: "ENCODING", Tag: "ENCODING"},
		{ID: 2, TableOID: 3079, OID: 16385, Kind: "EXTENSION", Tag: "hstore"},
		{ID: 3, TableOID: 3079, OID: 16386, Kind: "EXTENSION", Tag: "citext"},
		{ID: 4, Kind: "COMMENT", Tag: "EXTENSION hstore"},
		{ID: 5, TableOID: 2615, OID: 2200, Kind: "SCHEMA", Tag: "public"},
		{ID: 6, Kind: "COMMENT", Tag: "SCHEMA public"},
		{ID: 7, TableOID: 3466, OID: 1, Kind: "EVENT TRIGGER", Tag: "e"},
		{ID: 8, TableOID: 6104, OID: 1, Kind: "PUBLICATION", Tag: "p"},
		{ID: 9, TableOID: 1259, OID: 16394, Kind: "TABLE", Tag: "odd\nname; public"},
		{ID: 10, TableOID: 1259, OID: 16394, Kind: "TABLE DATA", Tag: "items"},
		{ID: 11, Kind: "COMMENT", Tag: "TABLE items"},
	}
	want := "3; 3079 16386 EXTENSION - citext -\n9; 1259 16394 TABLE - odd name; public -\n10; 1259 16394 TABLE DATA - items -\n11; 0 0 COMMENT - TABLE items -\n"
	if diff := cmp.Diff(want, restorableEntries(entries, []string{"hstore"})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestSameEntries: what pg_restore read is what was checked.
func TestSameEntries(t *testing.T) {
	entries := []dumpfile.Entry{
		{ID: 1, Kind: "ENCODING", Tag: "ENCODING"},
		{ID: 215, TableOID: 1259, OID: 16394, Kind: "TABLE", Tag: "items"},
		{ID: 3401, TableOID: 0, OID: 16394, Kind: "TABLE DATA", Tag: "items"},
	}
	const listed = ";\n; Archive created at 2026-11-27\n;\n\n215; 1259 16394 TABLE public items legacy\n3401; 0 16394 TABLE DATA public items legacy\n"
	for _, c := range []struct {
		reason, listed string
		want           bool
	}{
		{"Both are the same.", listed, true},
		{"One is missing.", strings.Split(listed, "3401;")[0], false},
		{"One is there that was not checked.", listed + "7; 0 16394 TABLE DATA public other legacy\n", false},
		{"One is another.", strings.Replace(listed, "3401; 0 16394", "3401; 0 16395", 1), false},
		{"One is of another kind.", strings.Replace(listed, "TABLE DATA", "BLOB DATA", 1), false},
	} {
		if got := sameEntries(entries, c.listed); got != c.want {
			t.Errorf("%s got %t", c.reason, got)
		}
	}
}

// TestPart: progress is reported in steps, and never as the end.
func TestPart(t *testing.T) {
	var steps []int32
	p := &part{total: 100, tell: func(r members.ImportReport) { steps = append(steps, r.Copied) }}
	from := p.of(strings.NewReader(strings.Repeat("a", 120)))
	for range 60 {
		if _, err := from.Read(make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]int32{10, 20, 30, 40, 50, 60, 70, 80, 90}, steps); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
