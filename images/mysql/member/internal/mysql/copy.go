// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
)

// Clone the data of a member into a folder that does not exist, through this server. It logs in with the certificate of backups.
func (s *Server) Clone(ctx context.Context, host, folder string) error {
	return s.Do(ctx, "copy the data of "+layout.MemberOf(host), "SET GLOBAL clone_valid_donor_list = "+Text(layout.Inner(host)),
		fmt.Sprintf("CLONE INSTANCE FROM %s@%s:%d IDENTIFIED BY '' DATA DIRECTORY = %s REQUIRE SSL", Text(mysqlmember.AccountBackup), Text(host),
			mysqlmember.PortMembers, Text(folder)))
}

// Group is the name of the group that the member is in.
func (s *Server) Group(ctx context.Context) (name string, err error) {
	err = s.Session(ctx, "ask for the name of the group", func(c *sql.Conn) error {
		return c.QueryRowContext(ctx, "SELECT @@group_replication_group_name").Scan(&name)
	})
	return name, err
}

// Version of the server.
func (s *Server) Version(ctx context.Context) (version string, err error) {
	err = s.Session(ctx, "ask for the version of the server", func(c *sql.Conn) error {
		return c.QueryRowContext(ctx, "SELECT SUBSTRING_INDEX(@@version, '-', 1)").Scan(&version)
	})
	return version, err
}

// Executed transactions.
func (s *Server) Executed(ctx context.Context) (set gtid.Set, err error) {
	err = s.Session(ctx, "ask which transactions the server has", func(c *sql.Conn) error {
		var text string
		if err := c.QueryRowContext(ctx, "SELECT @@gtid_executed").Scan(&text); err != nil {
			return err
		}
		set, err = gtid.Parse(text)
		return err
	})
	return set, err
}
