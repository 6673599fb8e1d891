// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"strings"
	"testing"
)

func TestPostgres(t *testing.T) {
	c, err := Postgres()
	if err != nil {
		t.Fatal(err)
	}

	for _, tool := range []string{"patroni", "pgbackrest", "pgbouncer", "postgres-exporter"} {
		if c.Tools[tool] == "" {
			t.Errorf("the catalogue lacks the version of %s", tool)
		}
	}

	if len(c.Majors) == 0 {
		t.Fatal("the catalogue has no version of PostgreSQL")
	}

	for _, m := range c.Majors {
		if m.Major == "" || m.Version == "" || m.Extensions["pg_stat_statements"] == "" {
			t.Errorf("the catalogue is incomplete: %+v", m)
		}
	}
}

func TestMySQL(t *testing.T) {
	c, err := MySQL()
	if err != nil {
		t.Fatal(err)
	}

	for _, tool := range []string{"mysqld-exporter", "restic"} {
		if c.Tools[tool] == "" {
			t.Errorf("the catalogue lacks the version of %s", tool)
		}
	}

	if len(c.Majors) == 0 {
		t.Fatal("the catalogue has no version of MySQL")
	}

	for _, m := range c.Majors {
		if !strings.HasPrefix(m.Version, m.Major+".") {
			t.Errorf("a version of MySQL belongs to its series, got %+v", m)
		}
	}
}
