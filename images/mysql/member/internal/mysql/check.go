// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// A Table of a database.
type Table struct{ Database, Name string }

func (t Table) String() string { return t.Database + "." + t.Name }

// Tables of users, in all databases.
func (s *Server) Tables(ctx context.Context) (out []Table, err error) {
	err = s.Session(ctx, "list tables", func(c *sql.Conn) error {
		return each(ctx, c, `SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'
			AND table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') ORDER BY 1, 2`, func(rows *sql.Rows) error {
			var t Table
			if err := rows.Scan(&t.Database, &t.Name); err != nil {
				return err
			}
			out = append(out, t)
			return nil
		})
	})
	return out, err
}

// Check a table with its indexes. It returns what is wrong with it; "" when nothing is.
func (s *Server) Check(ctx context.Context, t Table) (wrong string, err error) {
	err = s.Session(ctx, "check the table "+t.String(), func(c *sql.Conn) error {
		return each(ctx, c, "CHECK TABLE "+Name(t.Database)+"."+Name(t.Name), func(rows *sql.Rows) error {
			var table, op, kind, text string
			if err := rows.Scan(&table, &op, &kind, &text); err != nil {
				return err
			}
			// What one version of the server says of an older one's tables is no damage.
			if kind == "error" || kind == "warning" || kind == "status" && text != "OK" && !strings.HasPrefix(text, "Table is already up to date") {
				wrong = strings.TrimPrefix(wrong+"; "+text, "; ")
			}
			return nil
		})
	})
	return wrong, err
}

// Name quotes an identifier.
func Name(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// accountVerifier is the login that assertions run as. It is made in a copy only.
const accountVerifier = "capstan_verifier"

// Verifier makes the login that assertions run as: it reads what users have stored, and nothing else. It calls no function of users, which
// might do more.
func (s *Server) Verifier(ctx context.Context) error {
	account := accountVerifier + "@localhost"
	return s.Do(ctx, "make the login of assertions", "SET GLOBAL super_read_only = OFF", "DROP USER IF EXISTS "+account,
		"CREATE USER "+account+" IDENTIFIED WITH auth_socket AS "+Text(mysqlmember.UserServer),
		"GRANT SELECT, SHOW VIEW ON *.* TO "+account, "REVOKE SELECT, SHOW VIEW ON mysql.* FROM "+account,
		"SET GLOBAL super_read_only = ON")
}

// Assert that one statement yields true, once: one row with the number 1. It runs at a socket, and for so long at most. The error says why it
// does not hold.
func Assert(ctx context.Context, socket, database, statement string, limit time.Duration) error {
	cfg := driver.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName, cfg.Logger = accountVerifier, "unix", socket, database, &driver.NopLogger{}
	cfg.Params = map[string]string{
		"max_execution_time": strconv.FormatInt(limit.Milliseconds(), 10), "transaction_read_only": "ON", "sql_mode": "DEFAULT", "lock_wait_timeout": "10",
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return fmt.Errorf("cannot connect to the server: %w", err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = assert(limited, db, statement)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("it does not end within %s", limit)
	}
	return said(err)
}

func assert(ctx context.Context, db *sql.DB, statement string) error {
	// Without being asked for it, the server takes one statement at a time.
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	if len(columns) != 1 {
		return fmt.Errorf("it yields %d values, and not one", len(columns))
	}
	if !rows.Next() {
		if rows.Err() != nil {
			return rows.Err()
		}
		return errors.New("it yields no row")
	}
	var value sql.NullString
	if err := rows.Scan(&value); err != nil {
		return err
	}
	if rows.Next() {
		return errors.New("it yields more than one row")
	}
	switch {
	case rows.Err() != nil:
		return rows.Err()
	case value.String == "1":
		return nil
	case !value.Valid || value.String == "0":
		return errors.New("it does not hold")
	}
	return errors.New("it yields neither 1, which is true, nor 0")
}

// said is what the server says of an assertion, in one line.
func said(err error) error {
	var of *driver.MySQLError
	if errors.As(err, &of) {
		return fmt.Errorf("the server says %q (%d)", of.Message, of.Number)
	}
	return err
}
