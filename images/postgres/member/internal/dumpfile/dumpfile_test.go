// SPDX-License-Identifier: Apache-2.0

package dumpfile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// An archived table of contents, as pg_dump writes one.
type archived struct {
	bytes.Buffer

	minor int
}

func (a *archived) int(n int) {
	sign := byte(0)
	if n < 0 {
		sign, n = 1, -n
	}
	a.WriteByte(sign)
	a.Write(binary.LittleEndian.AppendUint32(nil, uint32(n)))
}

func (a *archived) text(s string) {
	a.int(len(s))
	a.WriteString(s)
}

// archivedBy versions of a server and of pg_dump.
func archivedBy(minor int, server, program string) *archived {
	a := &archived{minor: minor}
	a.WriteString("PGDMP")
	a.Write([]byte{1, byte(minor), 0, 4, 8, 1})
	if minor >= withMethod {
		a.WriteByte(1)
	} else {
		a.int(-1)
	}
	for range 7 {
		a.int(1)
	}
	a.text("shop")
	a.text(server)
	a.text(program)
	return a
}

func (a *archived) entry(format string, e Entry) {
	a.int(e.ID)
	a.int(1)
	a.text("1259")
	a.text("16394")
	a.text(e.Tag)
	a.text(e.Kind)
	a.int(3)
	a.text(e.Definition)
	a.text("")
	a.int(-1)
	a.text("public")
	a.text("")
	if a.minor >= withTableAM {
		a.text("heap")
	}
	if a.minor >= withRelkind {
		a.int('r')
	}
	a.text("legacy")
	a.text("false")
	a.text("12")
	a.int(-1)
	if format == pgmember.DumpCustom {
		a.Write(make([]byte, 9))
	} else {
		a.text(e.File)
	}
}

func zipped(raw []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(raw)
	_ = z.Close()
	return out.Bytes()
}

func tarred(raw []byte) []byte {
	return append(append([]byte("toc.dat"), make([]byte, tarBlock-7)...), raw...)
}

const header = "--\n-- PostgreSQL database dump\n--\n\n\\restrict abc\n\n-- Dumped from database version 17.5 (Debian 17.5-1)\n-- Dumped by pg_dump version 18.1\n\n"

func TestLook(t *testing.T) {
	custom := archivedBy(16, "17.5", "18.1").Bytes()
	for _, c := range []struct {
		reason string
		head   []byte
		want   Header
		err    error
	}{
		{"An archive of its own form.", custom, Header{Format: pgmember.DumpCustom, Server: "17.5", Program: "18.1"}, nil},
		{"One of an earlier form.", archivedBy(14, "9.6.24", "15.2").Bytes(), Header{Format: pgmember.DumpCustom, Server: "9.6.24", Program: "15.2"}, nil},
		{"A tar.", tarred(custom), Header{Format: pgmember.DumpTar, Server: "17.5", Program: "18.1"}, nil},
		{"SQL.", []byte(header), Header{Format: pgmember.DumpPlain, Server: "17.5 (Debian 17.5-1)", Program: "18.1"}, nil},
		{"SQL with the end of lines of Windows.", []byte(strings.ReplaceAll(header, "\n", "\r\n")), Header{Format: pgmember.DumpPlain, Server: "17.5 (Debian 17.5-1)", Program: "18.1"}, nil},
		{"SQL in gzip.", zipped([]byte(header)), Header{Format: pgmember.DumpPlain, Gzip: true, Server: "17.5 (Debian 17.5-1)", Program: "18.1"}, nil},
		{"SQL in gzip, of which only the beginning is seen.", zipped([]byte(header + strings.Repeat("insert into a values (1);\n", 1000)))[:150], Header{Format: pgmember.DumpPlain, Gzip: true, Server: "17.5 (Debian 17.5-1)", Program: "18.1"}, nil},
		{"An archive in gzip.", zipped(custom), Header{}, errInGzip},
		{"Nothing.", nil, Header{}, errEmpty},
		{"Another file.", []byte("hello"), Header{}, errUnknown},
		{"SQL of another program.", []byte("create table a (b int);"), Header{}, errUnknown},
		{"All databases.", []byte("--\n-- PostgreSQL database cluster dump\n--\n\n--\n-- PostgreSQL database dump\n--\n"), Header{}, errCluster},
		{"What a shell of Windows makes of SQL.", []byte("\xff\xfe-\x00-\x00"), Header{}, errUTF16},
		{"An archive that ends in its header.", custom[:30], Header{}, errCut},
	} {
		got, err := Look(c.head)
		if !errors.Is(err, c.err) {
			t.Errorf("%s got error %v, want %v", c.reason, err, c.err)
		}
		if diff := cmp.Diff(c.want, got); err == nil && diff != "" {
			t.Errorf("%s -want, +got:\n%s", c.reason, diff)
		}
	}
	if server, program := (Header{Server: "9.6.24", Program: "17.5 (Debian)"}).Majors(); server != 9 || program != 17 {
		t.Errorf("majors are %d and %d", server, program)
	}
}

func TestTOC(t *testing.T) {
	wanted := []Entry{
		{ID: 5, TableOID: 1259, OID: 16394, Tag: "hstore", Kind: "EXTENSION", Definition: "CREATE EXTENSION hstore;"},
		{ID: 3401, TableOID: 1259, OID: 16394, Tag: "items", Kind: "TABLE DATA", File: "3401.dat"},
		{ID: 3402, TableOID: 1259, OID: 16394, Tag: "BLOBS", Kind: "BLOBS", File: "blobs_16403.toc"},
	}
	for _, minor := range []int{12, 13, 14, 15, 16} {
		for _, format := range []string{pgmember.DumpCustom, pgmember.DumpTar, pgmember.DumpDirectory} {
			a := archivedBy(minor, "17.5", "17.5")
			a.int(len(wanted))
			for _, e := range wanted {
				a.entry(format, e)
			}
			raw := a.Bytes()
			if format == pgmember.DumpTar {
				raw = tarred(raw)
			}
			_, got, err := TOC(bytes.NewReader(raw), format)
			if err != nil {
				t.Fatalf("form %d, %s: %v", minor, format, err)
			}
			want := append([]Entry(nil), wanted...)
			if format == pgmember.DumpCustom {
				for i := range want {
					want[i].File = ""
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("form %d, %s: -want, +got:\n%s", minor, format, diff)
			}
			for n := range raw {
				if _, _, err := TOC(bytes.NewReader(raw[:n]), format); err == nil {
					t.Fatalf("form %d, %s: the first %d of %d bytes are taken for all", minor, format, n, len(raw))
				}
			}
		}
	}
}

// TestTOCNamesFiles: a directory names the files that pg_restore opens. None of this member's may be among them.
func TestTOCNamesFiles(t *testing.T) {
	for _, name := range []string{"../../run/secrets/kubernetes.io/serviceaccount/token", "/etc/passwd", "3401.dat/../x", "toc.dat", "3401.dat\x00", "3401.dat\n", "blobs_1.toc.gz"} {
		a := archivedBy(16, "17.5", "17.5")
		a.int(1)
		a.entry(pgmember.DumpDirectory, Entry{ID: 1, Tag: "items", Kind: "TABLE DATA", File: name})
		if _, _, err := TOC(&a.Buffer, pgmember.DumpDirectory); err == nil || !strings.Contains(err.Error(), "which pg_dump does not write") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, want := range map[string]bool{
		"toc.dat": true, "3401.dat": true, "3401.dat.gz": true, "3401.dat.zst": true, "blob_16403.dat.lz4": true, "blobs.toc": true, "blobs_16403.toc": true,
		"blobs.toc.gz": false, "toc.dat.gz": false, "a/3401.dat": false, "../x": false, "": false, ".": false,
	} {
		if Kept(name) != want {
			t.Errorf("%q is kept: %t", name, !want)
		}
	}
	for list, ok := range map[string]bool{
		"16403 blob_16403.dat\n16404 blob_16404.dat\n": true, "": true,
		"16403 ../../run/token\n": false, "16403 /etc/passwd\n": false, "16403 blob_16403.dat x\n": false, "\n": false,
	} {
		if err := Blobs(strings.NewReader(list)); (err == nil) != ok {
			t.Errorf("%q: %v", list, err)
		}
	}
}

// FuzzTOC: no content makes it fail otherwise than with an error.
func FuzzTOC(f *testing.F) {
	a := archivedBy(16, "17.5", "17.5")
	a.int(1)
	a.entry(pgmember.DumpDirectory, Entry{ID: 1, Tag: "items", Kind: "TABLE DATA", File: "1.dat"})
	f.Add(a.Bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, entries, err := TOC(bytes.NewReader(raw), pgmember.DumpDirectory)
		for _, e := range entries {
			if err == nil && e.File != "" && !Kept(e.File) {
				t.Errorf("it names %q", e.File)
			}
		}
		_, _ = Look(raw)
	})
}

// run a script: what would go to the server, and rows in brackets.
func run(script string) (out []string, err error) {
	s := NewScript(iotestReader(script))
	for {
		st, err := s.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if st.LeftOut() {
			out = append(out, "left out")
			continue
		}
		out = append(out, st.SQL)
		if st.Rows {
			rows, err := io.ReadAll(s.Rows())
			if err != nil {
				return out, err
			}
			out = append(out, "["+string(rows)+"]")
		}
	}
}

// iotestReader gives a byte at a time.
func iotestReader(s string) io.Reader { return &slow{s} }

type slow struct{ rest string }

func (s *slow) Read(p []byte) (int, error) {
	if s.rest == "" {
		return 0, io.EOF
	}
	p[0], s.rest = s.rest[0], s.rest[1:]
	return 1, nil
}

func TestScript(t *testing.T) {
	for _, c := range []struct {
		reason, script string
		want           []string
	}{
		{"Comments are no part of statements.", "-- a; b\nselect 1; /* x; /* y; */ z; */ select 2 -- c;\n;", []string{"select 1", "select 2"}},
		{"Semicolons in constants end nothing.", `select ';', e'\';', "a;""b", $$;$$, $x$;$$;$x$, 'it''s;'; select $1` + ";", []string{`select ';', e'\';', "a;""b", $$;$$, $x$;$$;$x$, 'it''s;'`, "select $1"}},
		{"A backslash is a letter, as pg_dump sets it, unless the script says otherwise.", `select '\'; set standard_conforming_strings = off; select '\';';`, []string{`select '\'`, "set standard_conforming_strings = off", `select '\';'`}},
		{"Rows follow a COPY, and one may look like anything.", "COPY public.items (id, name) FROM stdin;\n1\ta;b\n\\restrict\n\\\\.\n\\.x\n\\.\n\nselect 1;", []string{"COPY public.items (id, name) FROM stdin", "[1\ta;b\n\\restrict\n\\\\.\n\\.x\n]", "select 1"}},
		{"There may be none.", "COPY a FROM stdin;\n\\.\nCOPY b FROM stdin;\r\n\\.\r\n", []string{"COPY a FROM stdin", "[]", "COPY b FROM stdin", "[]"}},
		{"A body of statements ends with END.", "create or replace function f() returns int language sql begin atomic select 1; select case when true then 2 end; end; select 3;", //nolint:dupword // Each block has its end.
			[]string{"create or replace function f() returns int language sql begin atomic select 1; select case when true then 2 end; end", "select 3"}},
		{"A rule has several statements.", "create rule r as on insert to a do (insert into b values (1); select 1); begin; commit;", []string{"create rule r as on insert to a do (insert into b values (1); select 1)", "begin", "commit"}},
		{"pg_dump itself writes these two commands.", "\\restrict abc\n\nselect 1;\n\\unrestrict abc\n", []string{"select 1"}},
		{"Who owns what, and who may do what, is decided here.", `ALTER TABLE public.a OWNER TO "odd; one"; alter function public.f(text) owner to legacy; GRANT ALL ON TABLE a TO b; REVOKE ALL ON SCHEMA public FROM PUBLIC;
			ALTER DEFAULT PRIVILEGES FOR ROLE a GRANT SELECT ON TABLES TO b; SET SESSION AUTHORIZATION 'a'; SET default_tablespace = fast; SECURITY LABEL ON TABLE a IS 'x';
			CREATE PUBLICATION p; ALTER SUBSCRIPTION s ENABLE; CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION f(); COMMENT ON EXTENSION hstore IS 'x'; CREATE SCHEMA public;
			COMMENT ON SCHEMA public IS 'x'; DROP TABLE IF EXISTS a; SET default_with_oids = false;`, strings.Split(strings.Repeat("left out,", 15)+"left out", ",")},
		{
			"What only sounds like that is restored.", `alter table a add column owner int; comment on table a is 'OWNER TO x'; create table "public" (publication int);`,
			[]string{"alter table a add column owner int", "comment on table a is 'OWNER TO x'", `create table "public" (publication int)`},
		},
		{"A mark of the encoding is no statement.", "\xef\xbb\xbf-- a\nselect 1;", []string{"select 1"}},
		{"Words may touch constants.", "SELECT'a';", []string{"SELECT'a'"}},
	} {
		got, err := run(c.script)
		if err != nil {
			t.Errorf("%s %v", c.reason, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s -want, +got:\n%s", c.reason, diff)
		}
	}
}

// TestScriptRefuses what pg_dump does not write, and what was cut off.
func TestScriptRefuses(t *testing.T) {
	for _, c := range []struct{ reason, script, want string }{
		{"A shell.", "select 1;\n\\! touch /tmp/x\n", `line 2: the command \! of psql is not carried out`},
		{"A shell behind a statement.", "select 1; \\! touch /tmp/x\n", `the command \! of psql is not carried out`},
		{"A shell within a statement.", "select 1\n\\! touch /tmp/x\n;", `line 2: the command \! of psql is not carried out`},
		{"Another database.", "\\connect postgres\n", `line 1: the command \connect of psql is not carried out: dump one database with pg_dump, and without --create`},
		{"A file of the client.", "\\copy a from program 'id'\n", `the command \copy of psql is not carried out`},
		{"One that is hidden behind a command of pg_dump.", "select\n\\restrict a\n", `the command \restrict of psql is not carried out`},
		{"A program of the server.", "copy a from program 'id';", "line 1: COPY is used in a way that pg_dump does not"},
		{"A file of the server.", "copy a to '/tmp/x';", "line 1: COPY is used in a way that pg_dump does not"},
		{"Rows in another form.", "copy a from stdin binary;", "line 1: COPY is used in a way that pg_dump does not"},
		{"Rows that nothing ends.", "copy a from stdin;\n1\n", "rows have no end"},
		{"No rows.", "copy a from stdin;", "rows are missing"},
		{"Rows in the line of the statement.", "copy a from stdin; 1\n\\.\n", "rows do not begin in a line of their own"},
		{"A statement that nothing ends.", "select 1;\nselect 2", "line 2: a statement has no end, so the file is cut off"},
		{"A constant that nothing ends.", "select 'a", "has no end"},
		{"A body that nothing ends.", "select $a$ $b$", "has no end"},
		{"A statement that is too long.", "select '" + strings.Repeat("a", maxStatement) + "';", "longer than 64 MiB"},
	} {
		out, err := run(c.script)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s got %.200q, error %v, want %q", c.reason, out, err, c.want)
		}
	}
}
