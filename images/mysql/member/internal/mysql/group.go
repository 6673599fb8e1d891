// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
)

// Look at the server and its group.
func (s *Server) Look(ctx context.Context) (decision.Look, error) {
	var l decision.Look
	err := s.Session(ctx, "look at the server", func(c *sql.Conn) error {
		var received sql.NullString
		row := c.QueryRowContext(ctx, `SELECT @@server_uuid, @@version, @@super_read_only, @@offline_mode, @@group_replication_group_name, @@gtid_executed, (SELECT RECEIVED_TRANSACTION_SET
			FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = 'group_replication_applier')`)
		if err := row.Scan(&l.Server, &l.Version, &l.ReadOnly, &l.Shut, &l.GroupName, &l.Executed, &received); err != nil {
			return err
		}
		l.Received = received.String
		return each(ctx, c, `SELECT m.MEMBER_ID, m.MEMBER_HOST, m.MEMBER_STATE, m.MEMBER_ROLE, m.MEMBER_VERSION,
			COALESCE(s.COUNT_TRANSACTIONS_IN_QUEUE + s.COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE, 0)
			FROM performance_schema.replication_group_members m LEFT JOIN performance_schema.replication_group_member_stats s USING (MEMBER_ID)`, func(rows *sql.Rows) error {
			var p decision.Peer
			if err := rows.Scan(&p.Server, &p.Host, &p.State, &p.Role, &p.Version, &p.Queue); err != nil {
				return err
			}
			l.Group = append(l.Group, p)
			return nil
		})
	})
	// The package of a distribution adds its own number.
	l.Version, _, _ = strings.Cut(l.Version, "-")
	return l, err
}

// Prove that this member is in a group with a majority: a read that sends a message through the group and waits for it. It writes nothing.
//
// It reads a table of InnoDB, because a read without one does not wait.
func (s *Server) Prove(ctx context.Context) error {
	return s.Session(ctx, "prove that the group has a majority", func(c *sql.Conn) error {
		var n int
		// The server itself ends a read whose program does not wait any more: otherwise each try would leave a session behind.
		if _, err := c.ExecContext(ctx, "SET SESSION group_replication_consistency = 'BEFORE', SESSION wait_timeout = 2"); err != nil {
			return err
		}
		err := c.QueryRowContext(ctx, "SELECT COUNT(*) FROM mysql.component").Scan(&n)
		if _, back := c.ExecContext(ctx, "SET SESSION group_replication_consistency = 'EVENTUAL', SESSION wait_timeout = 28800"); err == nil {
			err = back
		}
		return err
	})
}

// Refused reports whether the server said that it cannot prove its majority. Another error, such as one of too many connections, says nothing.
func Refused(err error) bool {
	switch Code(err) {
	case 3796, 3797, 3798, 3799: // The member is not online, or left the group while it waited.
		return true
	}
	return false
}

// startGroup logs in to other members with the certificate of members.
const startGroup = "START GROUP_REPLICATION USER = '" + mysqlmember.AccountReplication + "'"

// Begin a group with this member alone. It must never do so by itself at a later start.
func (s *Server) Begin(ctx context.Context, group string) error {
	return s.Session(ctx, "begin a group", func(c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, "SET GLOBAL group_replication_group_name = "+Text(group)); err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, "SET GLOBAL group_replication_bootstrap_group = ON"); err != nil {
			return err
		}
		_, err := c.ExecContext(ctx, startGroup)
		// Also when the context has ended.
		off, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if _, left := s.db.ExecContext(off, "SET GLOBAL group_replication_bootstrap_group = OFF"); err == nil {
			err = left
		}
		return err
	})
}

// Weights by which a group elects its leader: the usual one, and one for a member that should not lead while another one can.
const (
	WeightUsual = 50
	WeightLast  = 1
)

// Weigh this member against others in elections.
func (s *Server) Weigh(ctx context.Context, weight int) error {
	return s.Do(ctx, "set the weight in elections", fmt.Sprintf("SET GLOBAL group_replication_member_weight = %d", weight))
}

// An Entry of a member into a group.
type Entry struct {
	// Group is the group's name, Address what the member is known by there, and Seeds the addresses of members that may be in it.
	Group, Address string
	Seeds          []string
	// Clone all data from a member of the group, and remove what is here.
	Clone bool
}

// Join the group that some of the seeds are in.
func (s *Server) Join(ctx context.Context, e Entry) error {
	threshold := "DEFAULT"
	if e.Clone {
		threshold = "1"
	}
	// It may have been left on by a beginning that failed, and would make a second group here.
	return s.Do(ctx, "join the group", "SET GLOBAL group_replication_bootstrap_group = OFF",
		"SET GLOBAL group_replication_group_name = "+Text(e.Group), "SET GLOBAL group_replication_local_address = "+Text(e.Address),
		"SET GLOBAL group_replication_group_seeds = "+Text(strings.Join(e.Seeds, ",")),
		"SET GLOBAL group_replication_clone_threshold = "+threshold, startGroup)
}

// Leave the group, or what is left of it.
func (s *Server) Leave(ctx context.Context) error {
	return s.Do(ctx, "leave the group", "STOP GROUP_REPLICATION")
}

// Shut the server for clients, which sends those away that are there, or open it.
func (s *Server) Shut(ctx context.Context, shut bool) error {
	value := "OFF"
	if shut {
		value = "ON"
	}
	return s.Do(ctx, "let clients in or send them away", "SET GLOBAL offline_mode = "+value)
}

// Elect a member by the id of its data. The group waits for transactions under way.
func (s *Server) Elect(ctx context.Context, server string, within time.Duration) error {
	return s.Do(ctx, "let another member lead", fmt.Sprintf("SELECT group_replication_set_as_primary(%s, %d)", Text(server), int(within.Seconds())))
}

// TakeNoWrites any more. It returns when all commits that were under way have ended.
func (s *Server) TakeNoWrites(ctx context.Context) error {
	return s.Do(ctx, "take no writes any more", "SET GLOBAL super_read_only = ON")
}

// TakeWrites again.
func (s *Server) TakeWrites(ctx context.Context) error {
	return s.Do(ctx, "take writes again", "SET GLOBAL super_read_only = OFF")
}

// ReloadTLS lets the server read its certificates again, for clients and for members. No connection breaks.
func (s *Server) ReloadTLS(ctx context.Context) error {
	return s.Do(ctx, "reload certificates", "ALTER INSTANCE RELOAD TLS", "ALTER INSTANCE RELOAD TLS FOR CHANNEL mysql_admin")
}
