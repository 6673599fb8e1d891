// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dumpfile"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
)

const (
	// maxJobs of pg_restore, for a directory.
	maxJobs = 4
	// batch is how many bytes of INSERTs go to the server at a time.
	batch = 64 << 10
	// fullPercent is how full the volume may become. PostgreSQL stops on a full one.
	fullPercent, roomEvery = 95, time.Second
	// maxErrors is how many lines of errors are reported.
	maxErrors = 4
)

func jobs() int { return max(1, min(maxJobs, runtime.NumCPU())) }

// restoreOne dump as a login that can act as the owner of the database.
//
// A file is streamed from the bucket: pg_restore reads it from its input with one job, and the volume needs no room for it. A directory is many
// files, which pg_restore opens by their names. So it is downloaded first, which allows several jobs.
func (d *dumps) restoreOne(ctx context.Context, f found, here source, owner string, p *part) error {
	if err := errors.Join(os.RemoveAll(d.disk), os.Mkdir(d.disk, 0o700)); err != nil {
		return fmt.Errorf("cannot make a folder for the dump: %w", err)
	}
	if f.header.Format == pgmember.DumpDirectory {
		if err := d.download(ctx, f, p); err != nil {
			return err
		}
		return d.archive(ctx, f, here, owner, nil, "--format=directory", "--jobs="+strconv.Itoa(jobs()), d.file("dump"))
	}
	from := f.bucket.Stream(ctx, f.objects[0])
	defer func() { _ = from.Close() }()
	counted := p.of(from)
	switch f.header.Format {
	case pgmember.DumpPlain:
		return d.script(ctx, f, here, owner, counted)
	case pgmember.DumpTar:
		return d.archive(ctx, f, here, owner, counted, "--format=tar")
	default:
		return d.archive(ctx, f, here, owner, counted, "--format=custom")
	}
}

// kinds of entries that pg_restore does not list.
var unlisted = map[string]bool{"ENCODING": true, "STDSTRINGS": true, "SEARCHPATH": true, "DATABASE": true, "DATABASE PROPERTIES": true}

// restorableEntries of a table of contents, as a list for pg_restore.
func restorableEntries(entries []dumpfile.Entry, made []string) string {
	var list strings.Builder
	for _, e := range entries {
		line := fmt.Sprintf("%d; %d %d %s - %s -\n", e.ID, e.TableOID, e.OID, e.Kind, strings.Map(oneLine, e.Tag))
		if !unlisted[e.Kind] && !leftOut(line, made) {
			list.WriteString(line)
		}
	}
	return list.String()
}

func oneLine(r rune) rune {
	if r == '\n' || r == '\r' {
		return ' '
	}
	return r
}

// archive is restored by pg_restore, from its input or a folder.
func (d *dumps) archive(ctx context.Context, f found, here source, owner string, input io.Reader, args ...string) error {
	var made []string
	for _, e := range f.entries {
		if e.Kind == kindExtension {
			made = append(made, e.Tag)
		}
	}
	made, err := extensionsOf(ctx, f.Name, made)
	if err != nil {
		return err
	}
	list := d.file("list")
	if err := os.WriteFile(list, []byte(restorableEntries(f.entries, made)), 0o600); err != nil {
		return fmt.Errorf("cannot keep the list of the dump: %w", err)
	}
	said, err := d.run(ctx, input, io.Discard, append([]string{
		"--no-owner", "--no-privileges", "--no-publications", "--no-subscriptions", "--no-security-labels", "--no-tablespaces", "--exit-on-error",
		"--role=" + owner, "--use-list=" + list, "--dbname=" + here.libpq(f.Name),
	}, args...)...)
	if broken := failureOf(input); broken != nil {
		return broken
	}
	if err != nil {
		return explained(errorLines(said, err))
	}
	return nil
}

// failureOf reading an input, which pg_restore reports as an end of the file.
func failureOf(input io.Reader) error {
	c, ok := input.(*counted)
	if !ok {
		return nil
	}
	if s, ok := c.Reader.(interface{ Err() error }); ok {
		return s.Err()
	}
	return nil
}

// run pg_restore. It returns the beginning of what it wrote about errors.
func (d *dumps) run(ctx context.Context, input io.Reader, output io.Writer, args ...string) (string, error) {
	said := &beginning{left: 64 << 10}
	cmd := exec.CommandContext(ctx, filepath.Join(d.programs, "pg_restore"), args...)
	// Rows need not be on the disk before the end, which is noted after them and waits for both.
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGOPTIONS=-c synchronous_commit=off -c client_min_messages=error -c statement_timeout=0")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, output, said
	err := process.Do(cmd, 10*time.Second)
	return said.String(), err
}

// A beginning of what is written is kept, and the rest is not.
type beginning struct {
	bytes.Buffer

	left int
}

func (b *beginning) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.Buffer.Write(p[:n])
	return len(p), nil
}

// download a directory to the volume. What pg_restore will open has to be a file of it, and nothing else of this member.
func (d *dumps) download(ctx context.Context, f found, p *part) error {
	folder := d.file("dump")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return fmt.Errorf("cannot make a folder for the dump: %w", err)
	}
	for _, o := range f.objects {
		if err := keep(ctx, f.bucket, o, filepath.Join(folder, nameOf(o)), p); err != nil {
			return err
		}
		if strings.HasSuffix(nameOf(o), ".toc") {
			if err := checkBlobs(filepath.Join(folder, nameOf(o))); err != nil {
				return err
			}
		}
	}
	return d.sameContents(ctx, f, folder)
}

func keep(ctx context.Context, bucket *objectstore.Bucket, o objectstore.Object, to string, p *part) error {
	from := bucket.Stream(ctx, o)
	defer func() { _ = from.Close() }()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot keep a file of the dump: %w", err)
	}
	_, err = io.Copy(file, p.of(from))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("cannot download a file of the dump: %w", err)
	}
	return nil
}

func checkBlobs(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read a file of the dump: %w", err)
	}
	defer func() { _ = file.Close() }()
	return dumpfile.Blobs(file)
}

// sameContents holds that pg_restore reads the table of contents as it was checked: it opens the files that are named there.
func (d *dumps) sameContents(ctx context.Context, f found, folder string) error {
	file, err := os.Open(filepath.Join(folder, tocFile))
	if err != nil {
		return fmt.Errorf("cannot read the table of contents: %w", err)
	}
	_, entries, err := dumpfile.TOC(file, pgmember.DumpDirectory)
	_ = file.Close()
	if err != nil {
		return err
	}
	var listed bytes.Buffer
	if said, err := d.run(ctx, nil, &bounded{to: &listed, left: maxSchema}, "--list", "--format=directory", folder); err != nil {
		return explained(errorLines(said, err))
	}
	if !sameEntries(entries, listed.String()) || len(entries) != len(f.entries) {
		return errors.New("its table of contents is not one that pg_dump writes: dump again")
	}
	return nil
}

// sameEntries reports whether pg_restore lists the entries that were read, each with the same numbers and kind.
func sameEntries(entries []dumpfile.Entry, listed string) bool {
	read := map[string]int{}
	for _, e := range entries {
		if !unlisted[e.Kind] {
			read[fmt.Sprintf("%d; %d %d %s ", e.ID, e.TableOID, e.OID, e.Kind)]++
		}
	}
	for line := range strings.Lines(listed) {
		if strings.HasPrefix(line, ";") || strings.TrimSpace(line) == "" {
			continue
		}
		same := ""
		for i := range len(line) {
			if line[i] == ' ' && read[line[:i+1]] > 0 {
				same = line[:i+1]
			}
		}
		if same == "" {
			return false
		}
		read[same]--
	}
	for _, n := range read {
		if n > 0 {
			return false
		}
	}
	return true
}

// script is carried out statement by statement. psql is not used: it would carry out commands in the script, also ones that run programs here.
func (d *dumps) script(ctx context.Context, f found, here source, owner string, from io.Reader) error {
	if f.header.Gzip {
		z, err := gzip.NewReader(bufio.NewReaderSize(from, 256<<10))
		if err != nil {
			return fmt.Errorf("it cannot be decompressed: %w", err)
		}
		from = z
	}
	cfg, err := pgconn.ParseConfig(here.conninfo(f.Name))
	if err != nil {
		return errors.New("cannot connect as the login of the restore")
	}
	cfg.Password = here.password
	maps.Copy(cfg.RuntimeParams, map[string]string{
		"synchronous_commit": "off", "client_min_messages": "error", "statement_timeout": "0", "client_encoding": "UTF8",
		"standard_conforming_strings": "on", "default_transaction_read_only": "off",
	})
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("cannot connect as the login of the restore: %w", said(err))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	s := &session{conn: conn, script: dumpfile.NewScript(from)}
	if err := s.exec(ctx, "set role "+name(owner)); err != nil {
		return fmt.Errorf("cannot act as %q: %w", owner, said(err))
	}
	for {
		switch ended, err := s.step(ctx); {
		case err != nil:
			return explained(err)
		case ended:
			return nil
		}
	}
}

// A session that carries a script out.
type session struct {
	conn   *pgconn.PgConn
	script *dumpfile.Script
	// inserts that go to the server together, and the line of the first one.
	inserts strings.Builder
	line    int
}

// step carries out the next statement, and reports whether there is none.
func (s *session) step(ctx context.Context) (ended bool, err error) {
	st, err := s.script.Next()
	ended = errors.Is(err, io.EOF)
	if err != nil && !ended {
		return false, err
	}
	if !ended && st.Inserts() {
		if s.inserts.Len() == 0 {
			s.line = st.Line
		}
		s.inserts.WriteString(st.SQL)
		s.inserts.WriteString(";\n")
		if s.inserts.Len() < batch {
			return false, nil
		}
	}
	if s.inserts.Len() > 0 {
		rows := s.inserts.String()
		s.inserts.Reset()
		if err := s.exec(ctx, rows); err != nil {
			return false, atLine(s.line, err)
		}
	}
	switch {
	case ended, st.Inserts(), st.LeftOut():
		return ended, nil
	case st.Rows:
		_, err = s.conn.CopyFrom(ctx, s.script.Rows(), st.SQL)
	default:
		err = s.exec(ctx, st.SQL)
	}
	return false, atLine(st.Line, err)
}

// exec statements, whose results are of no interest.
func (s *session) exec(ctx context.Context, sql string) error {
	return s.conn.Exec(ctx, sql).Close()
}

// inCopy is where an error of a COPY is.
var inCopy = regexp.MustCompile(`^COPY .{1,200}?, line [0-9]+(, column [^:]{1,100})?`)

// atLine of a script is an error of a statement. It has no rows: neither the statement, nor the details of the server.
func atLine(line int, err error) error {
	var server *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &server):
		return fmt.Errorf("line %d: the connection to the server of this Database has ended, and the dump is read again", line)
	}
	text := fmt.Sprintf("line %d: ERROR: %s", line, withoutValues(server.Message))
	if where := inCopy.FindString(server.Where); where != "" {
		text += " (" + where + ")"
	}
	return errors.New(text)
}

// Values of rows in messages of PostgreSQL.
var (
	lastValue   = regexp.MustCompile(`(?s): ".*"$`)
	middleValue = regexp.MustCompile(`(?s)\bvalue ".*?" (is|for|has|contains)\b`)
	keyValue    = regexp.MustCompile(`(?s)\)=\(.*\)`)
)

func withoutValues(message string) string {
	message = lastValue.ReplaceAllString(message, ": …")
	message = middleValue.ReplaceAllString(message, "value … $1")
	message = keyValue.ReplaceAllString(message, ")=(…)")
	return importing.Shortened(strings.Join(strings.Fields(message), " "), importing.MaxQuoted)
}

// errorLines of what pg_restore says: its errors, which object they are about, and where in its rows. Statements, rows and details are left out.
func errorLines(said string, ended error) error {
	var lines []string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		switch {
		case len(lines) == maxErrors:
		case strings.HasPrefix(line, "pg_restore: from TOC entry"):
			lines = append(lines, importing.Shortened(strings.TrimPrefix(line, "pg_restore: "), importing.MaxQuoted))
		case strings.HasPrefix(line, "pg_restore: error: "):
			lines = append(lines, withoutValues(strings.TrimPrefix(line, "pg_restore: error: ")))
		case strings.HasPrefix(line, "CONTEXT:"):
			if where := inCopy.FindString(strings.TrimSpace(strings.TrimPrefix(line, "CONTEXT:"))); where != "" {
				lines = append(lines, where)
			}
		}
	}
	if len(lines) == 0 {
		return fmt.Errorf("pg_restore: %w", ended)
	}
	return errors.New(strings.Join(lines, ": "))
}

// remedies of errors, by words of theirs. Roles are not in a dump of a database.
var remedies = []struct{ words, remedy string }{
	{"permission denied to create extension", "list it in spec.extensions"},
	{"must be owner of extension", "drop what changes the extension, and dump again"},
	{"role ", "roles are not in a dump: drop what names one there, and dump again"},
	{"No space left", "raise spec.storage"},
	{"out of shared memory", "raise spec.config.max_locks_per_transaction"},
	{"is not carried out", ""},
	{"again", ""},
	{"cannot read ", "see the bucket and the server of it"},
}

// explained error, with what to do.
func explained(err error) error {
	text := err.Error()
	for _, r := range remedies {
		if !strings.Contains(text, r.words) {
			continue
		}
		if r.remedy == "" {
			return err
		}
		return fmt.Errorf("%w: %s", err, r.remedy)
	}
	return fmt.Errorf("%w: correct that in the database that was dumped, and dump it again to the same path", err)
}

// extensionsOf a database that are among some.
func extensionsOf(ctx context.Context, database string, wanted []string) ([]string, error) {
	return listWithin(ctx, database, "select extname::text from pg_extension where extname = any($1)", wanted)
}

// watchRoom ends a restore before the volume is full. It returns what ends the watch.
func watchRoom(ctx context.Context, cancel context.CancelCauseFunc) (stop func()) {
	ended := make(chan struct{})
	go func() {
		tick := time.NewTicker(roomEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ended:
				return
			case <-tick.C:
			}
			if u, err := volume.Measure(pgmember.FolderVolume); err == nil && u.Percent >= fullPercent {
				cancel(fmt.Errorf("the volume of the leader is %d %% full, so the restore was ended before the server stops: raise spec.storage", u.Percent))
				return
			}
		}
	}()
	return func() { close(ended) }
}
