// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// Replay the relay logs of a channel that are in the folder of the data, and listed in its index. first is the name of the first one. It ends
// before the first transaction that is in a set, if there is one: with an empty set it waits for more when it has replayed all.
func (s *Server) Replay(ctx context.Context, channel, first string, before gtid.Set) error {
	until := ""
	if !before.Empty() {
		until = " UNTIL SQL_BEFORE_GTIDS = " + Text(before.String())
	}
	return s.Do(ctx, "replay what was archived",
		fmt.Sprintf("CHANGE REPLICATION SOURCE TO RELAY_LOG_FILE = %s, RELAY_LOG_POS = 4, SOURCE_HOST = 'none' FOR CHANNEL %s", Text(first), Text(channel)),
		"START REPLICA SQL_THREAD"+until+" FOR CHANNEL "+Text(channel))
}

// A Replayed state of a channel.
type Replayed struct {
	// Running reports whether it replays, or waits for more.
	Running bool
	// Failed says why it stopped.
	Failed string
	// Executed are all transactions of the server.
	Executed gtid.Set
}

// Replayed is how far a channel is.
func (s *Server) Replayed(ctx context.Context, channel string) (r Replayed, err error) {
	err = s.Session(ctx, "find out what was replayed", func(c *sql.Conn) error {
		row, err := OneRow(ctx, c, "SHOW REPLICA STATUS FOR CHANNEL "+Text(channel))
		if err != nil {
			return err
		}
		r.Running, r.Failed = row["Replica_SQL_Running"] == "Yes", row["Last_SQL_Error"]
		r.Executed, err = gtid.Parse(row["Executed_Gtid_Set"])
		return err
	})
	return r, err
}

// OneRow of a statement whose columns depend on the version of the server, by their names.
func OneRow(ctx context.Context, c *sql.Conn, query string) (map[string]string, error) {
	rows, err := c.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]sql.NullString, len(names))
	into := make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	if !rows.Next() {
		return nil, rows.Err()
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i, name := range names {
		out[name] = values[i].String
	}
	return out, nil
}

// EndReplay of a channel, and remove it with its relay logs.
func (s *Server) EndReplay(ctx context.Context, channel string) error {
	return s.Do(ctx, "end the replay", "STOP REPLICA FOR CHANNEL "+Text(channel), "RESET REPLICA ALL FOR CHANNEL "+Text(channel))
}

// Renew data that was restored: it follows no member any more, and has the accounts of the platform as they have to be today.
func (s *Server) Renew(ctx context.Context) error {
	if err := s.Do(ctx, "forget which members the data followed", "RESET REPLICA ALL"); err != nil {
		return err
	}
	if err := s.Do(ctx, "take writes", "SET GLOBAL super_read_only = OFF"); err != nil {
		return err
	}
	return s.FirstAccounts(ctx)
}
