// SPDX-License-Identifier: Apache-2.0

package mysqlmember

// AccessRights are the statements that give AccountAccess, which exists, the rights that the provider needs, in their order. They may be
// repeated. The server needs partial_revokes=ON.
//
// The account manages logins, but none that has SYSTEM_USER, such as the accounts of the platform. It gives rights in databases, but not in the
// server's own: rights that it gives on *.* lack what is revoked from itself. It sees which logins there are, and never a verifier.
func AccessRights() []string {
	const account = "'" + AccountAccess + "'@'%'"
	return []string{
		"GRANT CREATE USER, PROCESS, SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, " +
			"LOCK TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER ON *.* TO " + account + " WITH GRANT OPTION",
		"GRANT CONNECTION_ADMIN ON *.* TO " + account,
		"REVOKE ALL ON mysql.* FROM " + account,
		"REVOKE ALL ON sys.* FROM " + account,
		"GRANT SELECT (User, Host, ssl_type, account_locked, User_attributes) ON mysql.user TO " + account,
		"GRANT SELECT ON mysql.db TO " + account,
	}
}
