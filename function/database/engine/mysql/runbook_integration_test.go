// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mysql

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRunbook: a real server runs each statement of the runbooks.
func TestRunbook(t *testing.T) {
	s := grouped(t)
	s.SQL("CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (4711)")
	n := 0
	for file, statement := range map[string]*regexp.Regexp{
		"database-runbook.md": regexp.MustCompile(`sql orders-db-a-0 "([^"]+)"`),
		"alerts.md":           regexp.MustCompile("`(select [^`]+ from (?:information_schema|performance_schema)[^`]+)`"),
	} {
		raw, err := os.ReadFile(filepath.Join("../../../../docs", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range statement.FindAllStringSubmatch(string(raw), -1) {
			n++
			s.SQL(strings.ReplaceAll(found[1], "MEMBER_ID", s.SQL("SELECT @@server_uuid")[0]))
		}
	}
	if n < 7 {
		t.Errorf("want the statements of both, got %d", n)
	}

	// And the program shows what a transaction has changed.
	raw, err := os.ReadFile("../../../../docs/database-runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`sh -c '(mysqlbinlog [^']+)'`).FindStringSubmatch(string(raw))
	if found == nil {
		t.Fatal("the runbook has no command that prints transactions")
	}
	command := strings.NewReplacer("GTIDS", strings.ReplaceAll(s.SQL("SELECT @@gtid_executed")[0], "\n", ""), "/data/mysql", filepath.Join(filepath.Dir(s.Socket()), "data")).Replace(found[1])
	out, err := exec.Command("sh", "-c", filepath.Join(os.Getenv("CAPSTAN_PROGRAM_MYSQL"), command)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "@1=4711") {
		t.Errorf("%s: %v, and it does not show the row:\n%s", command, err, out[max(0, len(out)-2000):])
	}
}
