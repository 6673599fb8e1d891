// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mysql

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/test/outside"
)

func TestMain(m *testing.M) { os.Exit(outside.Main(m)) }

// literal of a value, as members write it.
func literal(value string) string {
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		return value
	}
	return "'" + value + "'"
}

// TestServerTakesParameters: a real server takes the least and the most of each parameter that a Database may set, reports what the
// function expects, and can change at run time what the function says needs no restart.
func TestServerTakesParameters(t *testing.T) {
	s := outside.MySQL(t, "localhost")
	s.SQL("SET GLOBAL innodb_io_capacity_max = 4294967295") // The server takes no larger capacity.
	for _, name := range compose.SortedKeys(parameters) {
		p := parameters[name]
		if !has(s, name) {
			t.Errorf("the server has no parameter %s", name)
			continue
		}
		values := p.values
		switch p.kind {
		case boolean:
			values = []string{"on", "off"}
		case integer, memory:
			values = []string{text(p.least), text(p.most)}
		case zone: // Only members fill the tables of names.
			values = []string{"-13:59", "+13:59", "+00:00"}
		case enum, list:
		}
		for _, value := range values {
			want, ok := p.parsed(value)
			if !ok {
				t.Errorf("%s: %q is refused", name, value)
			}
			if p.restart {
				continue // Most of them cannot be set at run time.
			}
			s.SQL("SET GLOBAL " + name + " = " + literal(want))
			got := s.SQL("SELECT @@GLOBAL." + name)[0]
			switch {
			case p.kind == boolean:
				got = map[string]string{"1": "ON", "0": "OFF", "ON": "ON", "OFF": "OFF"}[got]
			case p.kind == list && slices.Contains(strings.Split(got, ","), want):
				continue // Some modes bring others.
			}
			if got != want {
				t.Errorf("%s was set to %q, and is %q", name, want, got)
			}
		}
	}
}

// TestServerKnowsFile: a real server has every parameter of the file that members start with, and takes each value that members set later.
func TestServerKnowsFile(t *testing.T) {
	s := outside.MySQL(t, "localhost")
	s.SQL("INSTALL PLUGIN group_replication SONAME 'group_replication.so'")
	m := member("1Gi", 50, 100, nil)
	m.Archives, m.Archiving = true, true
	for _, name := range compose.SortedKeys(restarting(m)) {
		if name == "default_time_zone" || name == "mysqlx" {
			continue // Only a file has these names.
		}
		if !has(s, name) {
			t.Errorf("the server has no parameter %s", name)
		}
	}
	later := reloading(m)
	for _, name := range compose.SortedKeys(later) {
		if !has(s, name) {
			t.Errorf("the server has no parameter %s", name)
			continue
		}
		s.SQL("SET GLOBAL " + name + " = " + literal(later[name]))
		if got := s.SQL("SELECT variable_value FROM performance_schema.global_variables WHERE variable_name = '" + name + "'")[0]; got != later[name] {
			t.Errorf("%s was set to %q, and is %q", name, later[name], got)
		}
	}
}

// has reports whether a server has a parameter.
func has(s *outside.MySQLServer, name string) bool {
	return slices.Equal(s.SQL("SELECT COUNT(*) FROM performance_schema.global_variables WHERE variable_name = '"+name+"'"), []string{"1"})
}
