// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

const (
	// copyLimit is how long all rows may take.
	copyLimit = 3 * time.Hour
	// rowsAtOnce and bytesAtOnce are inserted by one statement, valuesAtOnce is the most values that one can have.
	rowsAtOnce, bytesAtOnce, valuesAtOnce = 1000, 2 << 20, 65_000
)

// A table of the source, as it is when it is copied.
type table struct { //nolint:recvcheck // Only reading it changes one.
	database, name, create string
	columns                []string
}

func (t table) String() string { return mysql.Name(t.database) + "." + mysql.Name(t.name) }

// copy the schema and the rows of one moment, and note the place in the log of the source that follows on it. What a try before has left is
// removed first.
//
// The source is data, and is not trusted: its schema is run as an account that has rights in the databases to fill, and no others.
func (r *run) copy(ctx context.Context, show func(members.ImportReport)) error {
	r.state.Databases, r.state.Following = r.names(), false
	if err := r.note(ctx); err != nil {
		return err
	}
	if err := r.account(ctx); err != nil {
		return err
	}
	as, err := mysql.Importer()
	if err != nil {
		return err
	}
	defer as.Close()
	return r.from.visit(ctx, copyLimit, func(ctx context.Context, from *sql.Conn) error {
		var tables []table
		var begin place
		if err := r.from.visit(ctx, answerLimit, func(ctx context.Context, locks *sql.Conn) (err error) {
			tables, begin, err = r.snapshot(ctx, locks, from)
			return err
		}); err != nil {
			return err
		}
		r.state.Server, r.state.Copied, r.state.File, r.state.Position = begin.Server, begin.Executed, begin.File, begin.Position
		if err := r.schema(ctx, as, from, tables); err != nil {
			return err
		}
		for i, t := range tables {
			show(members.ImportReport{State: members.ImportCopying, Message: "rows are being copied", Copied: int32(i*10/len(tables)) * 10}) //nolint:gosec // It is at most 100.
			if err := rows(ctx, as, from, t); err != nil {
				return fmt.Errorf("cannot copy table %s: %w", t, err)
			}
		}
		r.state.Following = true
		return r.note(ctx)
	})
}

// account that the import works as here: none logs in as it but the program, by the socket.
func (r *run) account(ctx context.Context) error {
	const account = mysqlmember.AccountImport + "@localhost"
	names := r.names()
	statements := make([]string, 0, 3+len(names))
	statements = append(statements,
		"DROP USER IF EXISTS "+account,
		"CREATE USER "+account+" IDENTIFIED WITH auth_socket AS "+mysql.Text(mysqlmember.UserServer),
		"GRANT REPLICATION_APPLIER ON *.* TO "+account)
	for _, d := range names {
		statements = append(statements, "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES ON "+mysql.Name(d)+".* TO "+account)
	}
	return r.here.Do(ctx, "make the account of the import", statements...)
}

// snapshot of the source: its tables, and the place in its log, at the moment from which on a session sees the rows. For that moment, nothing
// writes to the tables: their locks wait for transactions that have written, and for no others.
func (r *run) snapshot(ctx context.Context, locks, from *sql.Conn) (tables []table, p place, err error) {
	names := func() ([][]string, error) {
		return list(ctx, locks, "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema IN ("+r.databases()+") ORDER BY 1, 2")
	}
	before, err := names()
	if err != nil {
		return nil, p, fmt.Errorf("cannot list tables of the source: %w", err)
	}
	all := make([]string, 0, len(before))
	for _, t := range before {
		tables = append(tables, table{database: t[0], name: t[1]})
		all = append(all, tables[len(tables)-1].String()+" READ")
	}
	statements := []string{"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"}
	if len(all) > 0 {
		if _, err := locks.ExecContext(ctx, "LOCK TABLES "+strings.Join(all, ", ")); err != nil {
			return nil, p, fmt.Errorf("cannot lock tables of the source for a moment: %w: end long transactions there", said(err))
		}
	}
	for _, s := range statements {
		if _, err := from.ExecContext(ctx, s); err != nil {
			return nil, p, fmt.Errorf("cannot begin to read the source: %w", said(err))
		}
	}
	if p, err = at(ctx, locks); err != nil {
		return nil, p, err
	}
	after, err := names()
	if err != nil || !slices.EqualFunc(before, after, slices.Equal[[]string]) {
		return nil, p, errors.Join(errors.New("tables of the source have changed just now"), err)
	}
	for i := range tables {
		if err := tables[i].read(ctx, locks); err != nil {
			return nil, p, fmt.Errorf("cannot look at table %s of the source: %w", tables[i], err)
		}
	}
	return tables, p, nil
}

// read what a table is. Columns that are generated are not copied.
func (t *table) read(ctx context.Context, c *sql.Conn) error {
	create, err := list(ctx, c, "SHOW CREATE TABLE "+t.String())
	if err != nil {
		return err
	}
	if len(create) != 1 || len(create[0]) != 2 {
		return errors.New("it is no table")
	}
	t.create = create[0][1]
	columns, err := list(ctx, c, "SELECT column_name FROM information_schema.columns WHERE table_schema = ? AND table_name = ? AND generation_expression = '' ORDER BY ordinal_position", t.database, t.name)
	for _, column := range columns {
		t.columns = append(t.columns, mysql.Name(column[0]))
	}
	return err
}

// words of a character set or collation.
var words = regexp.MustCompile(`^[a-z0-9_]+$`)

// schema of the databases, in place of what a try before has left.
func (r *run) schema(ctx context.Context, as *mysql.Server, from *sql.Conn, tables []table) error {
	defaults, err := list(ctx, from, "SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata WHERE schema_name IN ("+r.databases()+")")
	if err != nil {
		return fmt.Errorf("cannot look at databases of the source: %w", err)
	}
	var left [][]string
	if err := r.here.Session(ctx, "list tables", func(c *sql.Conn) (err error) {
		left, err = list(ctx, c, "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema IN ("+r.databases()+")")
		return err
	}); err != nil {
		return err
	}
	var statements []string
	for _, t := range left {
		statements = append(statements, "DROP TABLE "+table{database: t[0], name: t[1]}.String())
	}
	for _, d := range defaults {
		if words.MatchString(d[1]) && words.MatchString(d[2]) {
			statements = append(statements, fmt.Sprintf("ALTER DATABASE %s CHARACTER SET %s COLLATE %s", mysql.Name(d[0]), d[1], d[2]))
		}
	}
	for _, t := range tables {
		statements = append(statements, "USE "+mysql.Name(t.database), t.create)
	}
	return as.Do(ctx, "make the tables of the source here", statements...)
}

// rows of a table, as values: nothing that the source says is run.
func rows(ctx context.Context, as *mysql.Server, from *sql.Conn, t table) error {
	columns := strings.Join(t.columns, ", ")
	// As a prepared statement its values are binary: numbers lose no digit.
	//nolint:gosec // Names are quoted.
	query, err := from.PrepareContext(ctx, "SELECT "+columns+" FROM "+t.String())
	if err != nil {
		return said(err)
	}
	defer func() { _ = query.Close() }()
	found, err := query.QueryContext(ctx)
	if err != nil {
		return said(err)
	}
	defer func() { _ = found.Close() }()
	var values []any
	count, bytes := 0, 0
	insert := func(c *sql.Conn) error {
		if count == 0 {
			return nil
		}
		row := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(t.columns)), ", ") + ")"
		//nolint:gosec // Names are quoted, and values travel beside the statement.
		_, err := c.ExecContext(ctx, "INSERT INTO "+t.String()+" ("+columns+") VALUES "+strings.TrimSuffix(strings.Repeat(row+", ", count), ", "), values...)
		values, count, bytes = values[:0], 0, 0
		return err
	}
	var read error
	err = as.Session(ctx, "insert rows", func(c *sql.Conn) error {
		for found.Next() {
			of := make([]*any, len(t.columns))
			into := make([]any, len(t.columns))
			for i := range into {
				of[i] = new(any)
				into[i] = of[i]
			}
			if read = found.Scan(into...); read != nil {
				return nil //nolint:nilerr // It is no error of this session.
			}
			for _, v := range of {
				value := *v
				if raw, ok := value.([]byte); ok {
					bytes += len(raw)
				}
				values = append(values, value)
			}
			count++
			if count == rowsAtOnce || bytes > bytesAtOnce || len(values)+len(t.columns) > valuesAtOnce {
				if err := insert(c); err != nil {
					return err
				}
			}
		}
		if read = found.Err(); read != nil {
			return nil //nolint:nilerr // It is no error of this session.
		}
		return insert(c)
	})
	if read != nil {
		return said(read)
	}
	return err
}

// same reports whether databases have the same tables and columns on both sides.
func (r *run) same(ctx context.Context) error {
	columns := func(c *sql.Conn) (all []string, err error) {
		rows, err := list(ctx, c, `SELECT t.table_schema, t.table_name, LPAD(c.ordinal_position, 5, '0'), c.column_name FROM information_schema.tables t
			JOIN information_schema.columns c ON c.table_schema = t.table_schema AND c.table_name = t.table_name
			WHERE t.table_type = 'BASE TABLE' AND t.table_schema IN (`+r.databases()+")")
		for _, row := range rows {
			all = append(all, strings.Join(row, "\x00"))
		}
		slices.Sort(all)
		return all, err
	}
	var there, own []string
	if err := r.from.visit(ctx, answerLimit, func(_ context.Context, c *sql.Conn) (err error) {
		there, err = columns(c)
		return err
	}); err != nil {
		return err
	}
	if err := r.here.Session(ctx, "list columns", func(c *sql.Conn) (err error) {
		own, err = columns(c)
		return err
	}); err != nil {
		return err
	}
	for _, pair := range [][2][]string{{there, own}, {own, there}} {
		for _, one := range pair[0] {
			if _, found := slices.BinarySearch(pair[1], one); !found {
				return importing.Wait("tables of the source and of this Database differ: %s: make another Database", strings.ReplaceAll(one, "\x00", "."))
			}
		}
	}
	return nil
}
