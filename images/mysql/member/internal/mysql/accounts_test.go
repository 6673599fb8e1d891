// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"slices"
	"testing"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// granted is what a server of 9.7.4 lists of an account that was given the rights of the provider.
var granted = []string{
	"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, PROCESS, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, CREATE VIEW, " +
		"SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, CREATE USER, EVENT, TRIGGER ON *.* TO `capstan`@`%` WITH GRANT OPTION",
	"GRANT CONNECTION_ADMIN ON *.* TO `capstan`@`%`",
	"REVOKE SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, CREATE VIEW, " +
		"SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER ON `mysql`.* FROM `capstan`@`%`",
	"REVOKE SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, CREATE VIEW, " +
		"SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER ON `sys`.* FROM `capstan`@`%`",
	"GRANT SELECT ON `mysql`.`db` TO `capstan`@`%`",
	"GRANT SELECT (`Host`, `User`, `User_attributes`, `account_locked`, `ssl_type`) ON `mysql`.`user` TO `capstan`@`%`",
}

// TestRightsAreGivenOnce, and again when any of them is gone: statements that change accounts reach every member.
func TestRightsAreGivenOnce(t *testing.T) {
	var all []string
	for _, line := range granted {
		all = append(all, words(line)...)
	}
	if !done(all, mysqlmember.AccessRights()) {
		t.Error("an account that has its rights must not be given them again")
	}
	for i, word := range all {
		if done(slices.Delete(slices.Clone(all), i, i+1), mysqlmember.AccessRights()) {
			t.Errorf("without %q the account must be given its rights again", word)
		}
	}
}
