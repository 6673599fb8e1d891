// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// PoolMode says for how long a client has a connection to the server to itself.
type PoolMode = v1alpha1.PoolerMode

// PoolTransactions lends connections for one transaction.
const PoolTransactions = v1alpha1.PoolTransaction

// A Pooler is what the configuration of PgBouncer follows from.
type Pooler engine.Pooler

// lookupDatabase is where PgBouncer looks verifiers of passwords up, and lookup the query: a function of the superuser's that
// returns nothing about roles of Capstan's own.
const (
	lookupDatabase = "postgres"

	lookup = "SELECT name, verifier FROM capstan.lookup($1)"
)

// PoolerAccess has the logins and databases that a pooler accepts. The first line that fits counts. The login of poolers
// themselves has no password, which PgBouncer takes for an empty one. No client may use the database where passwords are looked
// up.
//
//nolint:dupword // The file says all for each of its columns.
const PoolerAccess = `hostssl all ` + pgmember.RolePooler + ` all reject
hostssl ` + lookupDatabase + ` all all reject
hostssl all all all scram-sha-256
host all all all reject
`

// waitSeconds is how long a client waits for a connection to the server, also while there is no leader.
const waitSeconds = 60

// Config is PgBouncer's file. All of it but addresses takes effect by a reload.
func (p Pooler) Config() string {
	authority, lifetime := pgmember.FileMemberCA, 3600
	if p.Readers {
		lifetime = 300 // A connection that still is with a standby that was promoted ends soon.
	}
	if p.ServerAuthority {
		authority = pgmember.FileServerCA
	}
	var b strings.Builder
	b.WriteString("[databases]\n")
	for _, d := range slices.Sorted(slices.Values(p.Databases)) {
		fmt.Fprintf(&b, "%s = host=%s port=%d", d, p.Host, pgmember.PortPostgres)
		// Two logins of a consumer that take turns have no more connections than one has.
		if n := p.Limits[d]; n > 0 {
			fmt.Fprintf(&b, " max_db_connections=%d", n)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s = host=%s port=%d pool_size=2 max_db_connections=2\n", lookupDatabase, p.Host, pgmember.PortPostgres)
	b.WriteString("\n[pgbouncer]\n")
	for _, o := range []struct {
		name  string
		value any
	}{
		{"listen_addr", "*"},
		{"listen_port", pgmember.PortPostgres},
		// Only the program that supervises it manages it here.
		{"unix_socket_dir", pgmember.FolderPrivate},
		{"unix_socket_mode", "0700"},
		{"auth_type", "hba"},
		{"auth_hba_file", pgmember.FolderConfig + "/" + pgmember.FilePoolerAccess},
		{"auth_user", pgmember.RolePooler},
		{"auth_dbname", lookupDatabase},
		{"auth_query", lookup},
		{"client_tls_sslmode", "require"},
		{"client_tls_protocols", "secure"},
		{"client_tls_cert_file", pgmember.FileServerCert},
		{"client_tls_key_file", pgmember.FileServerKey},
		{"server_tls_sslmode", "verify-full"},
		{"server_tls_protocols", "secure"},
		{"server_tls_ca_file", authority},
		{"server_tls_cert_file", pgmember.FileMemberCert},
		{"server_tls_key_file", pgmember.FileMemberKey},
		{"pool_mode", strings.ToLower(string(p.Mode))},
		{"default_pool_size", p.PoolSize},
		{"max_client_conn", p.MaxClients},
		{"max_prepared_statements", 200},
		// Drivers for Java set it, and the server shows all digits anyway.
		{"ignore_startup_parameters", "extra_float_digits"},
		{"query_wait_timeout", waitSeconds},
		// While a server does not answer, queries fail at once. The program that supervises it makes them wait, and tries itself.
		{"server_login_retry", 1},
		{"server_connect_timeout", 15},
		{"server_idle_timeout", 300},
		{"server_lifetime", lifetime},
		// A leader whose node is lost says nothing more.
		{"tcp_keepidle", 10},
		{"tcp_keepintvl", 5},
		{"tcp_keepcnt", 3},
		{"tcp_user_timeout", 20000},
		// The address of a Service stays, while the name server may be on the node that was lost.
		{"dns_max_ttl", 300},
		{"log_connections", 0},
		{"log_disconnections", 0},
		{"log_stats", 0},
	} {
		fmt.Fprintf(&b, "%s = %v\n", o.name, o.value)
	}
	return b.String()
}
