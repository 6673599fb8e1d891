// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
)

// Obstacles are what sessions of this server have locked that a thread waits for which applies what the group has committed. A server that takes
// writes has none. Row locks are none either: that thread has priority, and rolls back a session that has one.
func (s *Server) Obstacles(ctx context.Context) (out []decision.Obstacle, err error) {
	err = s.Session(ctx, "look at what blocks the applier", func(c *sql.Conn) error {
		// The order is from the few threads to the many locks.
		return each(ctx, c, `SELECT STRAIGHT_JOIN t.PROCESSLIST_ID, COALESCE(t.PROCESSLIST_USER, ''), COALESCE(t.PROCESSLIST_HOST, ''), COALESCE(has.OWNER_EVENT_ID, 0),
			wants.OBJECT_TYPE, CONCAT_WS('.', wants.OBJECT_SCHEMA, wants.OBJECT_NAME), has.LOCK_TYPE, wants.LOCK_TYPE, w.APPLYING_TRANSACTION
			FROM performance_schema.replication_applier_status_by_worker w
			JOIN performance_schema.metadata_locks wants ON wants.OWNER_THREAD_ID = w.THREAD_ID AND wants.LOCK_STATUS = 'PENDING'
			JOIN performance_schema.metadata_locks has ON has.OBJECT_TYPE = wants.OBJECT_TYPE AND has.OBJECT_SCHEMA <=> wants.OBJECT_SCHEMA
				AND has.OBJECT_NAME <=> wants.OBJECT_NAME AND has.COLUMN_NAME <=> wants.COLUMN_NAME AND has.LOCK_STATUS = 'GRANTED'
			JOIN performance_schema.threads t ON t.THREAD_ID = has.OWNER_THREAD_ID AND t.NAME = 'thread/sql/one_connection' AND t.PROCESSLIST_ID IS NOT NULL
			WHERE w.CHANNEL_NAME = 'group_replication_applier' AND @@GLOBAL.super_read_only`, func(rows *sql.Rows) error {
			var o decision.Obstacle
			if err := rows.Scan(&o.Session, &o.User, &o.Host, &o.Event, &o.Type, &o.Name, &o.Has, &o.Wants, &o.Transaction); err != nil {
				return err
			}
			out = append(out, o)
			return nil
		})
	})
	return out, err
}

// noSession is the code of the error that there is no such session.
const noSession = 1094

// End a session. It reports false for one that has ended already.
func (s *Server) End(ctx context.Context, session int64) (ended bool, err error) {
	err = s.Do(ctx, "end a session", fmt.Sprintf("KILL %d", session))
	if Code(err) == noSession {
		return false, nil
	}
	return err == nil, err
}
