// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeRestic is a program that lists these snapshots, and writes down what it was asked for. It ends forget with a code.
func fakeRestic(t *testing.T, snapshots, code string) (asked func() string) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\nfor a in \"$@\"; do case $a in\nsnapshots) echo '" + snapshots + "'; exit 0;;\n" +
		"forget) while [ \"$1\" != forget ]; do shift; done; echo \"$@\" >>" + dir + "/asked; exit " + code + ";;\nesac; done\n"
	if err := os.WriteFile(filepath.Join(dir, Program), []byte(script), 0o700); err != nil { //nolint:gosec // It is run.
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() string {
		raw, _ := os.ReadFile(filepath.Join(dir, "asked"))
		return strings.TrimSpace(string(raw))
	}
}

// TestExpireCopies: a backup takes hours to save, and its manifest is written when it is whole.
func TestExpireCopies(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	asked := fakeRestic(t, `[{"id":"kept","time":"2026-11-20T09:00:00Z"},{"id":"expired","time":"2026-11-19T09:00:00.1+01:00","summary":{"backup_end":"2026-11-19T14:00:00+01:00"}},`+
		`{"id":"old","time":"2026-11-18T09:00:00Z"},{"id":"saved","time":"2026-11-26T05:00:00Z","summary":{"backup_end":"2026-11-26T11:59:59.9Z"}}]`, "0")
	s, r := newShelf(t)
	s.put("o/copy/orders-1/config", "")
	if err := r.expireCopies(t.Context(), "orders-1", []manifest{{Snapshot: "kept"}}, now); err != nil {
		t.Fatal(err)
	}
	if got, want := asked(), "forget --prune expired old"; got != want {
		t.Errorf("it asked for %q, want %q", got, want)
	}
}
