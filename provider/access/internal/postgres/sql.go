// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
)

// Comments mark roles as ours. Only a role that may change a role may write its comment.
const (
	markLogin  = "capstan.dev: login"
	markOwner  = "capstan.dev: owner of database "
	markReader = "capstan.dev: reader of database "
)

const (
	// version16 is since when a role that makes another one has to let itself in.
	version16 = 160000

	// version17 is since when there is a transaction_timeout.
	version17 = 170000
)

func owner(database string) string  { return database + v1alpha1.SuffixOwner }
func reader(database string) string { return database + v1alpha1.SuffixReader }

// id quotes an identifier.
func id(name string) string { return pgx.Identifier{name}.Sanitize() }

// qualified quotes a name in a schema.
func qualified(schema, name string) string { return pgx.Identifier{schema, name}.Sanitize() }

// text quotes a string constant, for both values of standard_conforming_strings: with a backslash in it, as an escape string.
func text(s string) string {
	s = strings.ReplaceAll(s, "\x00", "")
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(quoted, `\`) {
		return " E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// createRole that cannot log in, with its mark.
func createRole(name, mark string) []string {
	return []string{
		"CREATE ROLE " + id(name) + " NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT NOREPLICATION NOBYPASSRLS",
		"COMMENT ON ROLE " + id(name) + " IS " + text(mark),
	}
}

// enter lets the provider act as a role. Before version 16 a role with CREATEROLE could make itself a member of any role.
func enter(version int, role string) string {
	s := "GRANT " + id(role) + " TO CURRENT_USER"
	if version >= version16 {
		s += " WITH INHERIT TRUE, SET TRUE"
	}
	return s
}

// join makes a login a member of a role.
func join(version int, role, login string) string {
	s := "GRANT " + id(role) + " TO " + id(login)
	if version >= version16 {
		s += " WITH INHERIT TRUE, SET TRUE"
	}
	return s
}

func leave(role, login string) string { return "REVOKE " + id(role) + " FROM " + id(login) }

// beginAs has the sessions of a login in a database begin as a role.
func beginAs(login, database, role string) string {
	return "ALTER ROLE " + id(login) + " IN DATABASE " + id(database) + " SET role = " + id(role)
}

func beginAsItself(login, database string) string {
	return "ALTER ROLE " + id(login) + " IN DATABASE " + id(database) + " RESET role"
}
