// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// Logs are the binary logs of a server, with what it had executed a moment before.
type Logs struct {
	// Server is its id.
	Server string
	// Group is the name of the group that it is in, or was in last.
	Group string
	// Executed has what it executed, and Received what it received of its group.
	Executed, Received gtid.Set
	// Expire is how long logs are of use to other members; 0 for ever.
	Expire time.Duration
	// Purges reports whether the server itself removes logs that are older.
	Purges bool
	// Files in their order. The last one is being written.
	Files []LogFile
}

// A LogFile is the file of a binary log.
type LogFile struct {
	Name string
	Size int64
}

// Logs there are.
func (s *Server) Logs(ctx context.Context) (Logs, error) {
	var l Logs
	err := s.Session(ctx, "look at the binary logs", func(c *sql.Conn) error {
		var executed string
		var received, group sql.NullString
		var expire int64
		// Before the files: what was executed until then is in one of them.
		row := c.QueryRowContext(ctx, `SELECT @@server_uuid, @@gtid_executed, @@binlog_expire_logs_seconds, @@binlog_expire_logs_auto_purge,
			(SELECT RECEIVED_TRANSACTION_SET FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = 'group_replication_applier'),
			(SELECT VARIABLE_VALUE FROM performance_schema.global_variables WHERE VARIABLE_NAME = 'group_replication_group_name')`)
		err := row.Scan(&l.Server, &executed, &expire, &l.Purges, &received, &group)
		if err != nil {
			return err
		}
		l.Group, l.Expire = group.String, time.Duration(expire)*time.Second
		if l.Executed, err = gtid.Parse(executed); err != nil {
			return err
		}
		if l.Received, err = gtid.Parse(received.String); err != nil {
			return err
		}
		return each(ctx, c, "SHOW BINARY LOGS", func(rows *sql.Rows) error {
			var f LogFile
			var encrypted string
			if err := rows.Scan(&f.Name, &f.Size, &encrypted); err != nil {
				return err
			}
			l.Files = append(l.Files, f)
			return nil
		})
	})
	return l, err
}

// PurgeLogs lets the server remove binary logs by their age, or leaves that to the program.
func (s *Server) PurgeLogs(ctx context.Context, itself bool) error {
	value := "OFF"
	if itself {
		value = "ON"
	}
	return s.Do(ctx, "say who removes binary logs", "SET GLOBAL binlog_expire_logs_auto_purge = "+value)
}

// Rotate closes the binary log that is being written, and begins another. Other members do not.
func (s *Server) Rotate(ctx context.Context) error {
	return s.Do(ctx, "begin another binary log", "FLUSH NO_WRITE_TO_BINLOG BINARY LOGS")
}

// PurgeBefore removes the binary logs before one of them.
func (s *Server) PurgeBefore(ctx context.Context, file string) error {
	return s.Do(ctx, "remove binary logs", "PURGE BINARY LOGS TO "+Text(file))
}

// Mark the moment by an empty transaction of its own, with an id that none has. All members get it.
func (s *Server) Mark(ctx context.Context, server string, number int64) error {
	return s.Pass(ctx, fmt.Sprintf("%s:%d", server, number))
}

// Pass over a transaction: an empty one takes its id.
func (s *Server) Pass(ctx context.Context, id string) error {
	// The session must not continue with this id, even if the transaction fails.
	return s.Session(ctx, "commit an empty transaction", func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, fmt.Sprintf("SET SESSION gtid_next = %s; BEGIN; COMMIT", Text(id)))
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if _, left := c.ExecContext(back, "ROLLBACK; SET SESSION gtid_next = 'AUTOMATIC'"); left != nil {
			// It must not be used again.
			_ = c.Raw(func(any) error { return driver.ErrBadConn })
			if err == nil {
				err = left
			}
		}
		return err
	})
}
