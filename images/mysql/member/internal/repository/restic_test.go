// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"errors"
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
	if err := os.WriteFile(filepath.Join(dir, Program), []byte(script), 0o700); err != nil {
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

// TestExpireFormer: a stanza that is not needed any more goes in steps, so that a restore that runs comes to its end.
func TestExpireFormer(t *testing.T) {
	const snapshots = `[{"id":"one","time":"2026-11-20T09:00:00Z"}]`
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	s, r := newShelf(t)
	s.put("o/stanza/orders-0.json", owner{Group: testGroup})
	s.put("o/backup/orders-0/one.json", manifest{Backup{Label: "one"}, "one"})
	s.put("o/copy/orders-0/config", "")
	s.put("o/log/orders-0/"+testServer+"/binlog.000001.zst", "")
	s.put("o/backup/orders-1/two.json", manifest{Backup{Label: "two", Ended: now.Add(-10 * day)}, "two"})
	expire := func(code string, at time.Time) (string, error) {
		asked := fakeRestic(t, snapshots, code)
		err := r.Expire(t.Context(), Retention{Days: 7, Former: []string{"orders-0", "orders-x"}}, at)
		return asked(), err
	}
	left := func() string {
		var all []string
		for _, key := range s.keys("o/") {
			if !strings.Contains(key, "orders-1") {
				all = append(all, key[:strings.IndexByte(key, '/')])
			}
		}
		return strings.Join(all, " ")
	}
	for _, step := range []struct {
		reason, code string
		after        time.Duration
		busy         bool
		left         string
	}{
		{"A restore reads the copies.", "11", 0, true, "copy log stanza"},
		{"It may need logs now.", "0", time.Hour, false, "copy log stanza"},
		{"It still may.", "0", 20 * time.Hour, false, "copy log stanza"},
		{"A day is enough.", "0", 26 * time.Hour, false, ""},
	} {
		asked, err := expire(step.code, now.Add(step.after))
		if got := left(); got != step.left || errors.Is(err, ErrBusy) != step.busy || err != nil && !step.busy || asked == "" && step.left != "" {
			t.Errorf("%s It asked for %q, %q is left, and the error is %v", step.reason, asked, got, err)
		}
	}
	if got := s.keys("o/stanza/"); len(got) != 0 {
		t.Errorf("%q are left, and nothing is there", got)
	}
}
