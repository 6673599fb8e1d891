// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

const (
	// dumpLimit is how long a look may take that restores dumps.
	dumpLimit = 48 * time.Hour
	// leastPause and mostPause are between two tries of the same dumps. Each pause takes twice the one before.
	leastPause, mostPause = time.Minute, time.Hour
	// emptyLimit is how long the removal of a database may take.
	emptyLimit = "30min"
)

// dumps that fill databases of this server, each once. A database is either empty, or filled completely: what a try has left that did not end is
// removed with the database, which is then made again. One transaction for all would need a lock for each table and large object.
type dumps struct {
	config     pgmember.Dumps
	extensions []string
	programs   string // folder
	memory     string // folder for passwords
	disk       string // folder for a directory; it is removed afterwards
	secret     string // folder of the Secret of the bucket
	ip         string // of this member
	major      int
	tries      *tries
	tell       func(members.ImportReport)
}

// tries of the same dumps that have failed.
type tries struct {
	dumps, why string
	pause      time.Duration
	until      time.Time
}

// failed notes a try, and when the next one may begin. Other dumps may be tried at once.
func (t *tries) failed(dumps, why string, now time.Time) {
	pause := leastPause
	if t.dumps == dumps {
		pause = min(2*t.pause, mostPause)
	}
	*t = tries{dumps: dumps, why: why, pause: pause, until: now.Add(pause)}
}

// waits reports whether it is too early for another try of these dumps.
func (t *tries) waits(dumps string, now time.Time) bool {
	return t.dumps == dumps && now.Before(t.until)
}

// Phases of a dump.
const (
	dumpRestoring = "Restoring" // something of it may be there
	dumpRestored  = "Restored"  // all of it is there
	dumpAnalyzed  = "Analyzed"  // and statistics
)

// A DumpKeeper restores dumps while its member is the leader.
type DumpKeeper struct {
	Names    layout.Names
	Leads    func() bool
	Reporter *report.Reporter
	Log      *slog.Logger

	tries tries

	// showing guards last: how much was read is shown while it is read.
	showing sync.Mutex
	last    string
}

// Once does what is next, and returns the pause before the next time.
func (k *DumpKeeper) Once(ctx context.Context) time.Duration {
	config, err := layout.ReadConfig()
	switch {
	case err != nil:
		return importing.StandbyEvery
	case config.Dumps == nil:
		return importing.Idle
	case !k.Leads():
		_ = os.RemoveAll(layout.ImportDump) // of a leader that was replaced
		k.show(nil)
		k.tries = tries{}
		return importing.StandbyEvery
	}
	return k.restore(ctx, config)
}

// show what was seen. Only a change of the state is logged.
func (k *DumpKeeper) show(now *members.ImportReport) {
	k.showing.Lock()
	defer k.showing.Unlock()
	if now != nil && now.State+now.Message != k.last {
		k.last = now.State + now.Message
		k.Log.Info("looked at the dumps", "state", now.State, "message", now.Message, "findings", now.Findings)
	}
	k.Reporter.Change(func(r *members.Report) { r.Import = now })
}

// restore dumps until all are there.
func (k *DumpKeeper) restore(ctx context.Context, config pgmember.Config) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, dumpLimit)
	defer cancel()
	major, err := strconv.Atoi(k.Names.Version)
	if err != nil {
		k.show(&members.ImportReport{State: members.ImportChecking, Message: fmt.Sprintf("the version of this member is not known: %v", err)})
		return importing.Idle
	}
	d := &dumps{
		config: *config.Dumps, extensions: config.Extensions, programs: pgmember.Programs(k.Names.Version), memory: pgmember.FolderPrivate,
		disk: layout.ImportDump, secret: members.FolderImport, ip: k.Names.IP, major: major, tries: &k.tries,
		tell: func(told members.ImportReport) { k.show(&told) },
	}
	now, pause := d.once(ctx)
	if !k.Leads() {
		return importing.StandbyEvery
	}
	now = importing.Bounded(now)
	k.show(&now)
	return pause
}

// once looks, does what is next, and returns what there is to report.
func (d *dumps) once(ctx context.Context) (members.ImportReport, time.Duration) {
	conn, err := local(ctx, "postgres")
	if err != nil {
		return checking("the server of this Database does not answer: " + err.Error()), importing.Every
	}
	defer managed.Close(ctx, conn)
	phases, err := readDumps(ctx, conn)
	if err != nil {
		return checking(err.Error()), importing.Every
	}
	var open []int // of config.Databases
	for i, f := range d.config.Databases {
		if p := phases[f.Name]; p != dumpRestored && p != dumpAnalyzed {
			open = append(open, i)
		}
	}
	switch {
	case len(open) == 0:
		return d.done(ctx, conn, phases)
	case d.config.Ended && len(phases) > 0:
		return members.ImportReport{State: members.ImportFailing, Message: "consumers have logins although not every dump was restored, so rows may be missing here: make another Database"}, importing.Every
	case d.config.Ended:
		return members.ImportReport{State: members.ImportRestored, Copied: 100, Message: "the import had ended before this data was made, and dumps are restored once"}, importing.Idle
	}
	// What a leader that was lost has left.
	if err := removeRole(ctx, conn, restorer); err != nil {
		return checking(err.Error()), importing.Every
	}
	_ = os.RemoveAll(d.disk)
	if waits, err := d.emptied(ctx, conn, open, phases); err != nil || waits != "" {
		if err != nil {
			waits = err.Error()
		}
		if d.tries.why != "" {
			return members.ImportReport{State: members.ImportFailing, Message: d.tries.why + "; " + waits}, importing.Soon
		}
		return checking(waits), importing.Soon
	}
	return d.fill(ctx, conn, open)
}

func checking(message string) members.ImportReport {
	return members.ImportReport{State: members.ImportChecking, Message: message}
}

// done is the end: every dump is there.
func (d *dumps) done(ctx context.Context, conn *pgx.Conn, phases map[string]string) (members.ImportReport, time.Duration) {
	out := members.ImportReport{State: members.ImportRestored, Copied: 100}
	if err := removeRole(ctx, conn, restorer); err != nil {
		return members.ImportReport{State: members.ImportCopying, Copied: 100, Message: err.Error()}, importing.Every
	}
	for _, f := range d.config.Databases {
		if phases[f.Name] == dumpAnalyzed || d.config.Ended {
			continue
		}
		d.tell(members.ImportReport{State: members.ImportCopying, Copied: 100, Message: fmt.Sprintf("every dump is restored, and statistics of database %q are collected", f.Name)})
		if err := analyze(ctx, f.Name); err != nil {
			out.Message = "PostgreSQL collects statistics later: " + err.Error()
		}
		if err := noteDump(ctx, conn, f, dumpAnalyzed); err != nil {
			return members.ImportReport{State: members.ImportCopying, Copied: 100, Message: err.Error()}, importing.Every
		}
	}
	return out, importing.Idle
}

// emptied removes what earlier tries have left, and returns what is waited for: databases that are not there.
func (d *dumps) emptied(ctx context.Context, conn *pgx.Conn, open []int, phases map[string]string) (waits string, err error) {
	for _, i := range open {
		if f := d.config.Databases[i]; phases[f.Name] == dumpRestoring {
			if err := empty(ctx, conn, f); err != nil {
				return "", err
			}
		}
	}
	there, err := managed.List(ctx, conn, "select datname::text from pg_database where datallowconn")
	if err != nil {
		return "", fmt.Errorf("cannot list databases: %w", err)
	}
	for _, i := range open {
		if f := d.config.Databases[i]; !slices.Contains(there, f.Name) {
			return fmt.Sprintf("waiting for database %q to be created", f.Name), nil
		}
	}
	return "", nil
}

// empty a database in which a dump was restored that did not end: it is dropped, and made as the platform makes it, which adds rights of consumers
// when it makes their logins. No consumer has had one.
func empty(ctx context.Context, conn *pgx.Conn, f pgmember.Dump) error {
	var owner string
	if err := conn.QueryRow(ctx, "select owner from import.dumps where name = $1", f.Name).Scan(&owner); err != nil {
		return fmt.Errorf("cannot find who owned database %q: %w", f.Name, err)
	}
	for _, statement := range []string{
		"set statement_timeout = '" + emptyLimit + "'", "drop database if exists " + name(f.Name) + " with (force)",
		"create database " + name(f.Name) + " owner " + name(owner), "revoke connect, temporary on database " + name(f.Name) + " from public",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("cannot remove what a try has left in database %q: %w", f.Name, err)
		}
	}
	if _, err := conn.Exec(ctx, "delete from import.dumps where name = $1", f.Name); err != nil {
		return fmt.Errorf("cannot forget a try of database %q: %w", f.Name, err)
	}
	return nil
}

// fill databases, once nothing stands in the way of any.
func (d *dumps) fill(ctx context.Context, conn *pgx.Conn, open []int) (members.ImportReport, time.Duration) {
	found, findings, err := d.look(ctx, open)
	switch {
	case err != nil:
		return members.ImportReport{State: members.ImportIncompatible, Message: "nothing is restored", Findings: []string{err.Error()}}, importing.Every
	case len(findings) > 0:
		return members.ImportReport{State: members.ImportIncompatible, Message: "nothing is restored", Findings: findings}, importing.Every
	}
	which := d.fingerprint(found)
	if d.tries.waits(which, time.Now()) {
		return members.ImportReport{State: members.ImportFailing, Message: d.tries.why}, importing.Every
	}
	for _, f := range found {
		missing, err := d.missingExtensions(ctx, f.Name)
		if err != nil {
			return checking(err.Error()), importing.Every
		}
		if len(missing) > 0 {
			return checking(fmt.Sprintf("waiting for extensions of database %q: %s: see the condition ConsumersReady", f.Name, importing.Some(missing))), importing.Soon
		}
	}
	p := &part{tell: d.tell}
	for _, f := range found {
		p.total += f.bytes()
	}
	for _, f := range found {
		p.begin(f)
		if err := d.fillOne(ctx, conn, f, p); err != nil {
			why := fmt.Sprintf("%s: %v", f.field(), err)
			if ctx.Err() != nil {
				return members.ImportReport{State: members.ImportFailing, Message: why}, importing.Soon
			}
			d.tries.failed(which, why+"; it is tried again at once when another file is there or spec.extensions is another list, and else after a pause", time.Now())
			// The room that it takes is given back at once.
			_ = empty(ctx, conn, f.Dump)
			return members.ImportReport{State: members.ImportFailing, Message: d.tries.why}, importing.Every
		}
	}
	return members.ImportReport{State: members.ImportCopying, Copied: 100, Message: "every dump is restored"}, importing.AtOnce
}

// fillOne database. That it is begun is noted before, so that a leader that is lost leaves no half of it, and its end afterwards.
func (d *dumps) fillOne(ctx context.Context, conn *pgx.Conn, f found, p *part) error {
	if err := noteDump(ctx, conn, f.Dump, dumpRestoring); err != nil {
		return err
	}
	err := within(ctx, f.Name, func(in *pgx.Conn) error {
		return asRestorer(ctx, in, restorerOf{memory: d.memory, ip: d.ip, limit: dumpLimit, sessions: jobs() + 2}, func(here source, owner string) error {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer watchRoom(ctx, cancel)()
			err := d.restoreOne(ctx, f, here, owner, p)
			if cause := context.Cause(ctx); err != nil && cause != nil {
				return cause
			}
			return err
		})
	})
	_ = os.RemoveAll(d.disk)
	if err != nil {
		return err
	}
	// The session before may be hours old.
	return within(ctx, "postgres", func(conn *pgx.Conn) error { return noteDump(ctx, conn, f.Dump, dumpRestored) })
}

// missingExtensions of a database: the leader makes those that only a superuser can, and they have to be there first.
func (d *dumps) missingExtensions(ctx context.Context, database string) (missing []string, err error) {
	err = within(ctx, database, func(conn *pgx.Conn) error {
		missing, err = managed.List(ctx, conn, `select e.name::text from pg_available_extensions e join pg_available_extension_versions v on v.name = e.name and v.version = e.default_version
			where e.name = any($1) and not v.trusted and e.installed_version is null order by 1`, d.extensions)
		return err
	})
	return missing, err
}

// fingerprint of dumps: another one may succeed where this one did not.
func (d *dumps) fingerprint(all []found) string {
	words := slices.Clone(d.extensions)
	for _, f := range all {
		words = append(words, f.Path)
		for _, o := range f.objects {
			words = append(words, o.ETag)
		}
	}
	return strings.Join(words, "\n")
}

// A part of all bytes that was read, as it is reported.
type part struct {
	mu          sync.Mutex
	total, read int64
	step        int64
	message     string
	tell        func(members.ImportReport)
}

// begin a dump.
func (p *part) begin(f found) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.message = fmt.Sprintf("database %q is being restored from %q", f.Name, f.Path)
	p.told()
}

func (p *part) told() {
	p.tell(members.ImportReport{State: members.ImportCopying, Copied: int32(p.step), Message: p.message}) //nolint:gosec // It is at most 90.
}

// of counts what is read. The last step is the end's.
func (p *part) of(from io.Reader) io.Reader { return &counted{from, p} }

type counted struct {
	io.Reader

	part *part
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	p := c.part
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read += int64(n)
	if step := min(p.read*10/max(p.total, 1)*10, 90); step != p.step {
		p.step = step
		p.told()
	}
	return n, err
}

// makeDumps is the register of dumps, beside the one of a server that is imported.
var makeDumps = []string{
	"create schema if not exists import",
	"create table if not exists import.dumps (name text primary key, path text not null, phase text not null, owner text not null)",
}

func readDumps(ctx context.Context, conn *pgx.Conn) (map[string]string, error) {
	if err := all(ctx, conn, makeDumps...); err != nil {
		return nil, fmt.Errorf("cannot write the register of dumps: %w", err)
	}
	phases := map[string]string{}
	rows, err := conn.Query(ctx, "select name, phase from import.dumps")
	if err != nil {
		return nil, fmt.Errorf("cannot read the register of dumps: %w", err)
	}
	var name, phase string
	if _, err := pgx.ForEachRow(rows, []any{&name, &phase}, func() error {
		phases[name] = phase
		return nil
	}); err != nil {
		return nil, fmt.Errorf("cannot read the register of dumps: %w", err)
	}
	return phases, nil
}

// noteDump notes how far a dump is. The commit waits for other members as a client's does, with everything that was written before: for as long as
// that takes, because an end of the wait would end it with success.
func noteDump(ctx context.Context, conn *pgx.Conn, f pgmember.Dump, phase string) error {
	_, err := conn.Exec(ctx, "set statement_timeout = 0")
	if err != nil {
		return fmt.Errorf("cannot note how far database %q is: %w", f.Name, err)
	}
	done, err := conn.Exec(ctx, `insert into import.dumps (name, path, phase, owner) select $1::text, $2::text, $3::text, pg_get_userbyid(datdba) from pg_database where datname = $1::text
		on conflict (name) do update set path = excluded.path, phase = excluded.phase, owner = excluded.owner`, f.Name, f.Path, phase)
	switch {
	case err != nil:
		return fmt.Errorf("cannot note how far database %q is: %w", f.Name, err)
	case done.RowsAffected() != 1:
		return fmt.Errorf("cannot note how far database %q is: it is not there", f.Name)
	}
	return nil
}

// file in the folder of a dump.
func (d *dumps) file(name string) string { return filepath.Join(d.disk, name) }

// listWithin a database the texts that a query returns.
func listWithin(ctx context.Context, database, query string, args ...any) (out []string, err error) {
	err = within(ctx, database, func(conn *pgx.Conn) error {
		out, err = managed.List(ctx, conn, query, args...)
		return err
	})
	return out, err
}
