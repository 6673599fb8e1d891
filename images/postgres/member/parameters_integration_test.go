// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"testing"

	"github.com/capstan-dev/capstan/function/database/engine/postgres"
)

// TestParametersOfLibraries: a real server has every parameter of libraries that a Database may set, takes it when the function says that
// it does, and has the values that were set.
func TestParametersOfLibraries(t *testing.T) {
	libraries := []string{"pg_cron", "pg_stat_statements", "pgaudit"}
	config := map[string]string{
		"pgaudit.log": "ddl, role, -misc", "pgaudit.log_catalog": "off", "pgaudit.role": "auditor",
		"auto_explain.log_min_duration": "250ms", "auto_explain.log_format": "json",
		"cron.timezone": "Europe/Zurich", "cron.log_statement": "off", "cron.max_running_jobs": "4",
	}
	c := newClusterWith(t, []string{"a"}, func(c *cluster) {
		c.server.Preload, c.server.CronDatabase, c.server.Config, c.server.Extensions = libraries, "shop", config, libraries
	})
	begin(t, c, "a")
	for name, want := range config {
		if remedy := postgres.Check(name, want, 17, libraries); remedy != "" {
			t.Errorf("%s: %q is refused: %s", name, want, remedy)
		}
		if got := c.asSuperuser("a", "select current_setting('"+name+"')"); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	names := postgres.ParametersOfLibraries(17)
	if len(names) < 20 {
		t.Fatalf("only %d parameters", len(names))
	}
	for _, name := range names {
		when := c.asSuperuser("a", "select context from pg_settings where name = '"+name+"'")
		if when == "" {
			t.Errorf("the server has no parameter %s", name)
			continue
		}
		if restarts := postgres.New().NeedsRestart(name, "17"); restarts != (when == "postmaster") {
			t.Errorf("%s: the server reads it at %s, and the function says that it needs a restart: %t", name, when, restarts)
		}
	}
}
