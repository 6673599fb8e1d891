// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// replicate are the rights to read binary logs, and to ask for the position to begin at.
const replicate = "REPLICATION SLAVE, REPLICATION CLIENT ON *.*"

// Replicators gives logins of the platform the rights to read binary logs, and takes them from all its others. A login that is not there
// yet gets them when it is.
func (s *Server) Replicators(ctx context.Context, wanted []string) error {
	return s.Session(ctx, "change which logins read binary logs", func(c *sql.Conn) error {
		var statements []string
		err := each(ctx, c, "SELECT User, Repl_slave_priv = 'Y' AND Repl_client_priv = 'Y', Repl_slave_priv = 'Y' OR Repl_client_priv = 'Y' "+
			"FROM mysql.user WHERE Host = '%' AND "+mysqlmember.MarkedLogin+" ORDER BY User", func(rows *sql.Rows) error {
			var login string
			var whole, part bool
			if err := rows.Scan(&login, &whole, &part); err != nil {
				return err
			}
			switch reads := slices.Contains(wanted, login); {
			case reads && !whole:
				statements = append(statements, "GRANT "+replicate+" TO "+Text(login)+"@'%'")
			case !reads && part:
				statements = append(statements, "REVOKE "+replicate+" FROM "+Text(login)+"@'%'")
			}
			return nil
		})
		return run(ctx, c, statements, err)
	})
}

// EndReplicators ends what logins of the platform read on this member without the right. The server looks at it at the begin only.
func (s *Server) EndReplicators(ctx context.Context) error {
	return s.Session(ctx, "end that logins read binary logs", func(c *sql.Conn) error {
		var statements []string
		err := each(ctx, c, "SELECT p.ID FROM performance_schema.processlist p JOIN mysql.user u ON u.User = p.USER AND u.Host = '%' "+
			"WHERE p.COMMAND LIKE 'Binlog Dump%' AND u.Repl_slave_priv = 'N' AND "+strings.ReplaceAll(mysqlmember.MarkedLogin, "User_attributes", "u.User_attributes"),
			func(rows *sql.Rows) error {
				var id int64
				if err := rows.Scan(&id); err != nil {
					return err
				}
				statements = append(statements, fmt.Sprintf("KILL %d", id))
				return nil
			})
		return run(ctx, c, statements, err)
	})
}

func run(ctx context.Context, c *sql.Conn, statements []string, err error) error {
	for _, one := range statements {
		if err == nil {
			_, err = c.ExecContext(ctx, one)
		}
	}
	return err
}
