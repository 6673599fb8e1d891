// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// unfitting is a verifier that no password fits. MySQL itself has it for its own accounts, as which no client can log in.
const unfitting = "$A$005$THISISACOMBINATIONOFINVALIDSALTANDPASSWORDTHATMUSTNEVERBRBEUSED"

// A privilege in a database, and the column of mysql.db that has it.
type privilege struct{ name, column string }

// privileges that there are, in the order in which statements name them.
var privileges = []privilege{
	{"SELECT", "Select_priv"},
	{"INSERT", "Insert_priv"},
	{"UPDATE", "Update_priv"},
	{"DELETE", "Delete_priv"},
	{"CREATE", "Create_priv"},
	{"DROP", "Drop_priv"},
	{"REFERENCES", "References_priv"},
	{"INDEX", "Index_priv"},
	{"ALTER", "Alter_priv"},
	{"CREATE TEMPORARY TABLES", "Create_tmp_table_priv"},
	{"LOCK TABLES", "Lock_tables_priv"},
	{"EXECUTE", "Execute_priv"},
	{"CREATE VIEW", "Create_view_priv"},
	{"SHOW VIEW", "Show_view_priv"},
	{"CREATE ROUTINE", "Create_routine_priv"},
	{"ALTER ROUTINE", "Alter_routine_priv"},
	{"EVENT", "Event_priv"},
	{"TRIGGER", "Trigger_priv"},
	{grantOption, "Grant_priv"},
}

// grantOption is the privilege that no login gets.
const grantOption = "GRANT OPTION"

// all privileges with a property, in order.
func all(of func(name string) bool) []string {
	var out []string
	for _, p := range privileges {
		if of(p.name) {
			out = append(out, p.name)
		}
	}
	return out
}

// readWrite is everything in a database but giving rights to others, and readOnly is to read it.
var (
	readWrite = all(func(name string) bool { return name != grantOption })
	readOnly  = []string{"SELECT", "SHOW VIEW"}
)

// without is what the first list has and the second has not.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(others, n) })
}

// id quotes an identifier.
func id(name string) string {
	return "`" + strings.ReplaceAll(strings.ReplaceAll(name, "\x00", ""), "`", "``") + "`"
}

// text quotes a string constant, for the mode of our sessions.
func text(s string) string {
	return "'" + strings.NewReplacer("\x00", "", "'", "''", `\`, `\\`).Replace(s) + "'"
}

// texts quotes a list of them, in parentheses. It is never empty: nothing has the name "".
func texts(all []string) string {
	quoted := make([]string, 0, len(all)+1)
	quoted = append(quoted, text(""))
	for _, s := range all {
		quoted = append(quoted, text(s))
	}
	return "(" + strings.Join(quoted, ", ") + ")"
}

// account of a login: from anywhere.
func account(login string) string { return text(login) + "@" + text(anywhere) }

// anywhere is the host of our logins.
const anywhere = "%"

// create a login that no client can use yet, with our mark.
func create(login string) string {
	return "CREATE USER " + account(login) + " " + identified(unfitting) + " REQUIRE SSL ACCOUNT LOCK ATTRIBUTE " +
		text(`{"`+mysqlmember.LoginMarkKey+`": "`+mysqlmember.LoginMark+`"}`)
}

// identified by a verifier. It is written in hexadecimal digits, because a salt may have any character.
func identified(verifier string) string {
	return "IDENTIFIED WITH caching_sha2_password AS 0x" + hex.EncodeToString([]byte(verifier))
}

func grant(names []string, database, login string) string {
	return "GRANT " + strings.Join(names, ", ") + " ON " + id(database) + ".* TO " + account(login)
}

func revoke(names []string, database, login string) string {
	return "REVOKE " + strings.Join(names, ", ") + " ON " + id(database) + ".* FROM " + account(login)
}
