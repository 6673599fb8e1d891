// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A dialect is how tests talk to the servers of an engine.
type dialect struct {
	// container of the server, which is also the name of the image.
	container string

	// client of a consumer and admin of a member read a script and print nothing but values.
	client, admin []string

	// kill the server of a member, and killed is how long writes pause then, in seconds.
	kill   string
	killed float64

	// lost is how long writes pause when the node of the leader loses its power, in seconds.
	lost float64

	// followers of the leader that can acknowledge a commit, as SQL for admin.
	followers string

	// thousand rows in a new table with the name kept.
	thousand string

	// ways that writers connect by.
	ways []string

	// probed reports whether every member is asked for writes while faults strike.
	probed bool
}

var dialects = map[v1alpha1.Engine]dialect{
	v1alpha1.EnginePostgres: {
		container: "postgres",
		client:    []string{"psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1"},
		admin:     []string{"psql", "-X", "-q", "-t", "-A"},
		kill:      "kill -KILL $(head -n 1 /data/pgdata/postmaster.pid)",
		killed:    3,
		lost:      20,
		followers: "select count(*) from pg_stat_replication where state = 'streaming' and sync_state <> 'async'",
		thousand:  `create table kept (n int); insert into kept select generate_series(1, 1000)`,
		ways:      []string{byService, byHosts},
	},
	v1alpha1.EngineMySQL: {
		container: "mysql",
		client: []string{"sh", "-c", `exec mysql --no-defaults --batch --skip-column-names --connect-timeout=5 --ssl-mode=VERIFY_IDENTITY ` +
			`--ssl-ca="$MYSQL_CA" --host="$PGHOST" --port="$PGPORT" --user="$PGUSER" "$PGDATABASE"`},
		admin: []string{"mysql", "--no-defaults", "--batch", "--skip-column-names", "--socket=/run/mysqld/mysqld.sock", "--user=capstan_member"},
		kill:  "kill -KILL $(cat /run/capstan/mysqld.pid)",
		// A group hears nothing of a member for five seconds before it suspects it.
		killed:    8,
		lost:      15,
		followers: "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE' AND MEMBER_ROLE = 'SECONDARY'",
		thousand: `CREATE TABLE kept (n INT PRIMARY KEY); INSERT INTO kept WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 1000) ` +
			`SELECT n FROM s`,
		ways:   []string{byService},
		probed: true,
	},
}

// dialectOf a Database.
func dialectOf(d *v1alpha1.Database) dialect { return dialects[d.Spec.Engine] }

// serverContainer of a member.
func serverContainer(p corev1.Pod) string { return p.Labels["app.kubernetes.io/name"] }
