// SPDX-License-Identifier: Apache-2.0

package pgmember

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
)

// complete has a value in every field. A new field belongs here and in testdata/member.json.
func complete() Config {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	return Config{
		Version: 3, Databases: []string{"app", "audit"}, Extensions: []string{"pg_cron", "postgis"}, Volumes: &[]string{"orders-db-a"}, Pooled: true,
		Slots: []Slot{{Name: "cdc", Database: "app", Plugin: "pgoutput"}}, Replicators: []string{"feed", "feed-b"},
		Publications: []Publication{{Name: "changes", Database: "app", Tables: []string{"public.orders"}, AllTables: true}},
		Queries: []members.Query{{
			Name: "orders", Help: "Orders by state.", Database: "app", SQL: "select 1 as n, 'x' as l", Values: []string{"n"}, Labels: []string{"l"}, IntervalSeconds: 60,
		}},
		Reinitialize: &members.Reinitialize{ID: "2026-11-25-1", Member: "orders-db-b"},
		Fence:        &members.MemberFence{ID: "2026-11-26-1", Member: "orders-db-c"},
		Backup: &Backup{
			Enabled: true, Stanza: "orders-db-3f2a9c1b-17", Path: "/shop/orders-db", Repository: "orders-db-repository.shop.svc", Queue: 10 << 30, UntilLow: true,
			Members: []string{"orders-db-a-0.orders-db-pods.shop.svc"}, RetentionDays: 30, RetentionFull: 4, Former: []string{"orders-db-3f2a9c1b-16"}, StartEmpty: true, RestorePoint: "before-v2",
			Encrypted: true, Verify: &Verify{
				Assertions: []Assertion{{Database: "app", SQL: "select true"}}, MaxRestoreSeconds: 2700, Preload: []string{"pg_stat_statements"},
			}, Processes: 4,
		},
		From: &Source{
			Path: "/shop/other", Repository: "other-repository.shop.svc", Either: "other-repository.shop.svc", Stanza: "other-1-16", Follow: true, At: &at,
			RestorePoint: "v1", Encrypted: true, Processes: 4,
			Mask:     &Mask{Statements: []Statement{{Database: "app", SQL: "delete from people"}}, Preload: []string{"pg_stat_statements"}},
			Snapshot: &Snapshot{Identity: "00112233445566778899aabbccddeeff", Stanza: "other-00112233-17", Member: "orders-db-a"},
		},
		Upgrade: &Upgrade{ID: "upgrade-17-18", From: "17", Database: "orders-db", Scope: "orders-db-3f2a9c1b", Member: "orders-db-g2-a"},
		Import: &members.Import{
			Host: "legacy.example", Port: 5432, TLS: "verify-full", Databases: []members.ImportDatabase{{Name: "app", Source: "app_prod"}},
			Skip: []string{SkipLargeObjects}, CutOver: &members.CutOver{ID: "2026-11-26-a", StopWrites: true},
			Object: "8f14e45f-ceea-467f-a0e6-000000000001", Ended: true,
		},
		Dumps:    &Dumps{Databases: []Dump{{Name: "app", Path: "dumps/app.dump", Format: DumpCustom}}, Ended: true},
		TakeOver: &TakeOver{ID: "before-the-bad-deploy", Database: "orders-db", Scope: "orders-db-3f2a9c1b"},
	}
}

// TestGolden pins the names of all fields, which members of earlier versions read, and in both directions.
func TestGolden(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "member.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(complete(), strict(t, raw)); diff != "" {
		t.Errorf("testdata/member.json: -want, +got:\n%s", diff)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(complete())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(compact.String(), string(got)); diff != "" {
		t.Errorf("the encoded Config: -want, +got:\n%s", diff)
	}
}

// TestRendered reads what the function renders for the examples.
func TestRendered(t *testing.T) {
	files, err := filepath.Glob("../../../examples/database/*/want.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	rendered := regexp.MustCompile(`(?m)^ +member\.json: '(\{.*\})'$`)
	found := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(raw, []byte("app.kubernetes.io/name: postgres\n")) {
			continue // Another engine has a file of its own.
		}
		for _, m := range rendered.FindAllSubmatch(raw, -1) {
			found++
			strict(t, bytes.ReplaceAll(m[1], []byte("''"), []byte("'")))
		}
	}
	if found == 0 {
		t.Error("no example has a member.json")
	}
}

// strict decodes a Config that has no other fields.
func strict(t *testing.T, raw []byte) Config {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var c Config
	if err := d.Decode(&c); err != nil {
		t.Errorf("cannot decode %s: %v", raw, err)
	}
	return c
}

func TestParseConfig(t *testing.T) {
	cases := map[string]struct {
		reason string
		raw    string
		want   Config
		ok     bool
	}{
		"OldFile": {
			"A new member reads the file of a function that knew databases and extensions only.",
			`{"databases":["app"],"extensions":[]}`,
			Config{Databases: []string{"app"}, Extensions: []string{}},
			true,
		},
		"NewFile": {
			"An old member reads the file of a function that knows more, and ignores what it does not know.",
			`{"databases":["app"],"extensions":[],"later":{"a":1},"backup":{"enabled":true,"stanza":"s","path":"/p","queue":1,"later":true}}`,
			Config{Databases: []string{"app"}, Extensions: []string{}, Backup: &Backup{Enabled: true, Stanza: "s", Path: "/p", Queue: 1}},
			true,
		},
		"NoVolumes": {
			"That no volume existed is not the same as that it is unknown.",
			`{"databases":[],"extensions":[],"volumes":[]}`,
			Config{Databases: []string{}, Extensions: []string{}, Volumes: &[]string{}},
			true,
		},
		"LaterVersion": {"A member does not guess what a file means that it must not ignore anything of.", `{"version":4,"databases":[]}`, Config{}, false},
		"NoJSON":       {"A broken file is an error.", `{`, Config{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseConfig([]byte(tc.raw))
			if (err == nil) != tc.ok {
				t.Fatalf("\n%s\nParseConfig(...): unexpected error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nParseConfig(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
