// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// FirstAccounts makes the accounts of fresh data, which is not in a group yet: the program's, by the user of the container, and the one of members, by their
// certificate. They are in no binary log, so that the member has no transaction of its own. No program logs in as root.
//
// Data that comes from a backup has them, as they were then, and they are made as they have to be today.
func (s *Server) FirstAccounts(ctx context.Context) error {
	own, members := mysqlmember.AccountMember+"@localhost", mysqlmember.AccountReplication+"@'%'"
	program := own + " IDENTIFIED WITH auth_socket AS " + Text(mysqlmember.UserServer) + " ACCOUNT UNLOCK"
	replication := members + " IDENTIFIED BY '' REQUIRE SUBJECT " + Text("/CN="+mysqlmember.MemberCommonName) + " ACCOUNT UNLOCK"
	return s.Do(ctx, "make the first accounts", "SET SESSION sql_log_bin = OFF",
		"CREATE USER IF NOT EXISTS "+program, "ALTER USER "+program,
		"GRANT ALL ON *.* TO "+own+" WITH GRANT OPTION",
		"CREATE USER IF NOT EXISTS "+replication, "ALTER USER "+replication,
		// Without SYSTEM_USER the platform's account could drop it.
		"GRANT REPLICATION SLAVE, CONNECTION_ADMIN, SERVICE_CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM, SYSTEM_USER ON *.* TO "+members,
		"ALTER USER root@localhost IDENTIFIED WITH auth_socket ACCOUNT LOCK")
}

// verifierLength of the hash of a password as the server stores it: $A$005$, 20 characters of salt, and 43 of SHA-256-crypt.
const verifierLength = 70

// Accounts makes what the platform and the exporter log in as, on the leader. It may be done again at any time.
func (s *Server) Accounts(ctx context.Context, verifier string) error {
	if len(verifier) != verifierLength || !strings.HasPrefix(verifier, "$A$005$") {
		return errors.New("the Secret with the platform's password has no verifier for caching_sha2_password")
	}
	access, exporter := mysqlmember.AccountAccess+"@'%'", mysqlmember.AccountExporter+"@localhost"
	return s.Session(ctx, "make the accounts of the platform", func(c *sql.Conn) error {
		var has string
		there, err := ask(ctx, c, &has, "SELECT authentication_string FROM mysql.user WHERE user = ? AND host = '%' AND plugin = 'caching_sha2_password' "+
			"AND ssl_type = 'ANY' AND account_locked = 'N'", mysqlmember.AccountAccess)
		if err != nil {
			return err
		}
		var statements []string
		if !there || has != verifier {
			with := access + " IDENTIFIED WITH caching_sha2_password AS 0x" + hex.EncodeToString([]byte(verifier)) + " REQUIRE SSL PASSWORD EXPIRE NEVER ACCOUNT UNLOCK"
			statements = append(statements, "CREATE USER IF NOT EXISTS "+with, "ALTER USER "+with)
		}
		missing, err := grants(ctx, c, mysqlmember.AccountAccess, "%", mysqlmember.AccessRights())
		if err != nil {
			return err
		}
		statements = append(statements, missing...)
		copies, err := s.backupAccount(ctx, c)
		if err != nil {
			return err
		}
		statements = append(statements, copies...)
		there, err = ask(ctx, c, &has, "SELECT plugin FROM mysql.user WHERE user = ? AND host = 'localhost'", mysqlmember.AccountExporter)
		if err != nil {
			return err
		}
		if !there {
			statements = append(statements, "CREATE USER "+exporter+" IDENTIFIED WITH auth_socket AS "+Text(mysqlmember.UserExporter)+" WITH MAX_USER_CONNECTIONS 3")
		}
		missing, err = grants(ctx, c, mysqlmember.AccountExporter, "localhost", mysqlmember.ExporterRights())
		if err != nil {
			return err
		}
		for _, one := range append(statements, missing...) {
			if _, err := c.ExecContext(ctx, one); err != nil {
				return err
			}
		}
		return nil
	})
}

// backupAccount returns the statements that are needed for the account that copies the data of a member, by the certificate of backups.
// SERVICE_CONNECTION_ADMIN lets it in at the port of members, and SYSTEM_USER protects it from the account of the platform. It sees no
// data but by a copy of all.
func (s *Server) backupAccount(ctx context.Context, c *sql.Conn) ([]string, error) {
	account := mysqlmember.AccountBackup + "@'%'"
	subject := "/CN=" + mysqlmember.BackupCommonName
	var has string
	there, err := ask(ctx, c, &has, "SELECT CONVERT(x509_subject USING utf8mb4) FROM mysql.user WHERE user = ? AND host = '%' AND account_locked = 'N'", mysqlmember.AccountBackup)
	if err != nil {
		return nil, err
	}
	var statements []string
	if !there || has != subject {
		with := account + " IDENTIFIED BY '' REQUIRE SUBJECT " + Text(subject) + " PASSWORD EXPIRE NEVER ACCOUNT UNLOCK"
		statements = append(statements, "CREATE USER IF NOT EXISTS "+with, "ALTER USER "+with)
	}
	rights := []string{"GRANT BACKUP_ADMIN, SERVICE_CONNECTION_ADMIN, SYSTEM_USER ON *.* TO " + account}
	for _, table := range []string{"replication_group_members", "replication_group_member_stats", "replication_connection_status"} {
		rights = append(rights, "GRANT SELECT ON performance_schema."+table+" TO "+account)
	}
	missing, err := grants(ctx, c, mysqlmember.AccountBackup, "%", rights)
	return append(statements, missing...), err
}

// grants returns the statements to run for an account: all of them if it lacks anything that they grant or has something that they revoke.
func grants(ctx context.Context, c *sql.Conn, user, host string, statements []string) ([]string, error) {
	var there int
	if _, err := ask(ctx, c, &there, "SELECT COUNT(*) FROM mysql.user WHERE user = ? AND host = ?", user, host); err != nil {
		return nil, err
	}
	var has []string
	if there > 0 {
		err := each(ctx, c, fmt.Sprintf("SHOW GRANTS FOR %s@%s", Text(user), Text(host)), func(rows *sql.Rows) error {
			var one string
			if err := rows.Scan(&one); err != nil {
				return err
			}
			has = append(has, words(one)...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if done(has, statements) {
		return nil, nil
	}
	return statements, nil
}

// done reports whether all words of statements are among those that an account has.
func done(has, statements []string) bool {
	for _, one := range statements {
		for _, word := range words(one) {
			if !slices.Contains(has, word) {
				return false
			}
		}
	}
	return true
}

// words of a statement that grants or revokes: each right with what it is on, as in "GRANT SELECT ON *.*".
func words(statement string) []string {
	verb, rest, _ := strings.Cut(strings.ReplaceAll(statement, "`", ""), " ")
	list, on, found := strings.Cut(rest, " ON ")
	if !found {
		return nil
	}
	on, _, _ = strings.Cut(on, " ")
	var out []string
	for one := range strings.SplitSeq(list, ",") {
		out = append(out, verb+" "+strings.TrimSpace(one)+" ON "+on)
	}
	return out
}

// HasZones reports whether the tables of time zones are filled.
func (s *Server) HasZones(ctx context.Context) (there bool, err error) {
	err = s.Session(ctx, "look at time zones", func(c *sql.Conn) error {
		var n int
		_, err := ask(ctx, c, &n, "SELECT COUNT(*) FROM (SELECT 1 FROM mysql.time_zone_name LIMIT 1) one")
		there = n > 0
		return err
	})
	return there, err
}

// FillZones runs the statements of mysql_tzinfo_to_sql. An empty statement would be a mistake of syntax, after all others had run.
func (s *Server) FillZones(ctx context.Context, statements string) error {
	return s.Do(ctx, "fill the tables of time zones", "USE mysql; "+strings.TrimRight(statements, "; \n")+"; USE information_schema")
}
