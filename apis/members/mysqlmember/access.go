// SPDX-License-Identifier: Apache-2.0

package mysqlmember

// An attribute marks logins that the platform makes for consumers.
const (
	LoginMarkKey = "capstan.dev"
	LoginMark    = "login"
	// MarkedLogin is the condition of SQL that a row of mysql.user has the mark.
	MarkedLogin = `COALESCE(User_attributes->>'$.metadata."` + LoginMarkKey + `"', '') = '` + LoginMark + `'`
)

// onObjects are all rights in a database, in the order in which the server lists them.
const onObjects = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, " +
	"CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER"

// ExporterRights are the statements that give AccountExporter, which exists, what its statistics need. They may be repeated.
func ExporterRights() []string {
	const account = "'" + AccountExporter + "'@'localhost'"
	return []string{"GRANT PROCESS, REPLICATION CLIENT ON *.* TO " + account, "GRANT SELECT ON performance_schema.* TO " + account}
}

// AccessRights are the statements that give AccountAccess, which exists, the rights that the provider needs, in their order. They may be
// repeated. The server needs partial_revokes=ON. SHOW GRANTS lists the same rights, with columns in the same order.
//
// The account manages logins, but none that has SYSTEM_USER, such as the accounts of the platform. It gives rights in databases, but not
// in the server's own: rights that it gives on *.* lack what is revoked from itself. It sees which logins there are, and never a verifier.
func AccessRights() []string {
	const account = "'" + AccountAccess + "'@'%'"
	return []string{
		"GRANT " + onObjects + ", PROCESS, CREATE USER ON *.* TO " + account + " WITH GRANT OPTION",
		"GRANT CONNECTION_ADMIN ON *.* TO " + account,
		"REVOKE " + onObjects + " ON mysql.* FROM " + account,
		"REVOKE " + onObjects + " ON sys.* FROM " + account,
		"GRANT SELECT (Host, User, User_attributes, account_locked, ssl_type) ON mysql.user TO " + account,
		"GRANT SELECT ON mysql.db TO " + account,
	}
}
