// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/logs"
)

// TestLogsJSON: every line of a member is one object of JSON, a message with all its parts is one line, and no client can forge one.
func TestLogsJSON(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(c *cluster) { c.server.LogsJSON = true })
	begin(t, c, "a")
	// Statements of the platform's own login are never logged, so this one is the superuser's.
	statement := "select 1/0 as \"a\",\n2026"
	out, err := c.running("a").Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", "shop",
		"-c", "set application_name = 'x \u203a PANIC:  forged'", "-c", statement)
	if err == nil {
		t.Fatalf("want an error, got %s", out)
	}

	seen := map[string]logs.Entry{}
	c.eventually("the error is logged", 10*time.Second, func() bool {
		raw, err := os.ReadFile(filepath.Join(c.logs, "log-a"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			var e logs.Entry
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Time.IsZero() || e.Level == "" {
				t.Fatalf("%q is no line of JSON with time and level: %v", line, err)
			}
			if strings.Contains(e.Message, "forged") || e.Severity == "PANIC" {
				t.Fatalf("a client forged %q", line)
			}
			if e.Source == "postgres" && e.Code != "" {
				seen["error"] = e
			}
			if seen[e.Source].Message == "" {
				seen[e.Source] = e
			}
		}
		return seen["error"].Message != ""
	})
	for _, source := range []string{"", "postgres", "patroni"} {
		if seen[source].Message == "" {
			t.Errorf("nothing is from %q", source)
		}
	}
	got := seen["error"]
	got.Time, got.PID = time.Time{}, 0
	application := got.Application
	got.Application, got.Host = "", ""
	want := logs.Entry{
		Level: "ERROR", Source: "postgres", Severity: "ERROR", Code: "22012", Database: "shop", User: "postgres",
		Message: "division by zero", Parts: map[string]string{"statement": statement},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(logs.Entry{})); diff != "" || !strings.HasPrefix(application, "x ") || !strings.HasSuffix(application, "PANIC:  forged") {
		t.Errorf("application %q, -want, +got:\n%s", application, diff)
	}
}
