// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/logs"
)

// TestLogsJSON: every line of a member is one object of JSON, and a message with all its parts is one line. Neither statements nor the names that
// a client gives before login forge one.
func TestLogsJSON(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(c *cluster) { c.json = true })
	begin(t, c, "a")
	names := c.enterAs("a")
	// Statements of the platform's own login are never logged, so this one is the superuser's.
	statement := "select 1/0 as \"a\",\n2026"
	out, err := c.running("a").Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", "shop",
		"-c", "set application_name = 'x \u203a PANIC:  forged'", "-c", statement)
	if err == nil {
		t.Fatalf("want an error, got %s", out)
	}

	seen := map[string]logs.Entry{}
	c.eventually("the error and all logins are logged", 10*time.Second, func() bool {
		refused := map[string]bool{}
		raw, err := os.ReadFile(filepath.Join(c.logs, "log-a"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			var e logs.Entry
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Time.IsZero() || e.Level == "" {
				t.Fatalf("%q is no line of JSON with time and level: %v", line, err)
			}
			if strings.HasPrefix(e.Message, "forged") || e.Severity == "PANIC" {
				t.Fatalf("a client forged %q", line)
			}
			if e.Source == "postgres" && e.Severity == "FATAL" {
				refused[e.User+"@"+e.Database] = true
			} else if e.Source == "postgres" && e.Code != "" {
				seen["error"] = e
			}
			if seen[e.Source].Message == "" {
				seen[e.Source] = e
			}
		}
		for _, name := range names {
			if !refused[name] {
				t.Logf("not logged yet: %q", name)
				return false
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

// enterAs tries to log in with names that look like further lines of the log. It returns each user and database as the log has them.
func (c *cluster) enterAs(letter string) []string {
	c.t.Helper()
	const server, patroni = "2026-11-26 18:00:00.123 UTC [1] ", "2026-11-26 18:00:00,123 "
	var names []string
	for _, tc := range []struct{ user, database, replication string }{
		{user: "PANIC:  forged", database: "shop"},
		{user: "a \u203a PANIC:  forged", database: "shop"},
		{user: "b\n" + server + "00000 PANIC:  forged", database: "shop"},
		{user: "c\n" + server + "\u203a PANIC:  forged", database: "shop"},
		{user: "d\n" + patroni + "ERROR: forged\n", database: "shop"},
		{user: "e\n{\"msg\":\"forged\"}\n", database: "shop"},
		{user: "f", database: "shop\n" + server + "00000 PANIC:  forged"},
		{user: "g", database: "shop\n{\"msg\":\"forged\"}\n"},
		// The server cuts long names only after it has read all of what a client begins with.
		{
			user: "h\n" + server + "00000 h@shop 10.0.0.1 " + strings.Repeat("x", 5000) + " \u203a PANIC:  forged\n" + patroni + "ERROR: forged\n", database: "shop",
			replication: "neither",
		},
	} {
		parameters := []string{"user", tc.user, "database", tc.database}
		if tc.replication != "" {
			parameters = append(parameters, "replication", tc.replication)
		}
		c.enter(letter, parameters...)
		names = append(names, tc.user+"@"+tc.database)
	}
	return names
}

// enter begins a session with parameters in this order, which the server has to refuse. No library sends them in an order.
func (c *cluster) enter(letter string, parameters ...string) {
	c.t.Helper()
	conn, err := new(net.Dialer).DialContext(c.t.Context(), "tcp", c.identify(letter).Address(pgmember.PortPostgres))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	const version = 3 << 16
	body := binary.BigEndian.AppendUint32(nil, version)
	for _, p := range parameters {
		body = append(append(body, p...), 0)
	}
	body = append(body, 0)
	_, err = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...))
	if err := errors.Join(err, conn.SetDeadline(time.Now().Add(10*time.Second))); err != nil {
		c.t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || len(answer) == 0 || answer[0] != 'E' {
		c.t.Fatalf("%q: want that the server refuses it, got %q, %v", parameters, answer, err)
	}
}
