// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// complete has a value in every field.
func complete() engine.Member {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	return engine.Member{
		Generation: 2, Domain: "orders-db-pods.shop.svc",
		Databases: []string{"app", "audit"}, Extensions: []string{"pg_cron", "postgis"}, Recorded: engine.Recorded{Volumes: &[]string{"orders-db-a"}}, Pooled: true,
		Backup: &engine.Backup{
			Enabled: true, Stanza: "orders-db-3f2a9c1b-17", Path: "/shop/orders-db", Repository: "orders-db-repository.shop.svc", Queue: 10 << 30, UntilLow: true,
			Members: []string{"orders-db-a-0.orders-db-pods.shop.svc"}, RetentionDays: 30, RetentionFull: 4, Former: []string{"orders-db-3f2a9c1b-16"}, StartEmpty: true, RestorePoint: "before-v2",
			Encrypted: true, Verify: &engine.Verify{
				Assertions: []engine.Assertion{{Database: "app", SQL: "select true"}}, MaxRestoreSeconds: 2700, Preload: []string{"pg_stat_statements"},
			}, Processes: 4,
		},
		Slots: []engine.Slot{{Name: "cdc", Database: "app", Plugin: "pgoutput"}}, Replicators: []string{"feed", "feed-b"},
		Queries: []members.Query{{
			Name: "orders", Help: "Orders by state.", Database: "app", SQL: "select 1 as n, 'x' as l", Values: []string{"n"}, Labels: []string{"l"}, IntervalSeconds: 60,
		}},
		Reinitialize: &members.Reinitialize{ID: "2026-11-25-1", Member: "orders-db-b"}, Fence: &members.MemberFence{ID: "2026-11-26-1", Member: "orders-db-c"},
		TakeOver:     &engine.TakeOver{ID: "before-the-bad-deploy", Database: "orders-db", Scope: "orders-db-3f2a9c1b"},
		Publications: []engine.Publication{{Name: "changes", Database: "app", Tables: []string{"public.orders"}, AllTables: true}},
		From: &engine.Source{
			Path: "/shop/other", Repository: "other-repository.shop.svc", Either: "other-repository.shop.svc", Stanza: "other-1-16", Follow: true, At: &at,
			RestorePoint: "v1", Encrypted: true, Processes: 4,
			Mask:     &engine.Mask{Statements: []engine.Statement{{Database: "app", SQL: "delete from people"}}, Preload: []string{"pg_stat_statements"}},
			Snapshot: &engine.Snapshot{Identity: "00112233445566778899aabbccddeeff", Stanza: "other-00112233-17", Member: "orders-db-a"},
		},
		Upgrade: &engine.Upgrade{ID: "upgrade-17-18", From: "17", Database: "orders-db", Scope: "orders-db-3f2a9c1b", Member: "orders-db-g2-a"},
		Import: &engine.Import{
			Host: "legacy.example", Port: 5432, TLS: v1alpha1.ImportVerifyFull, Databases: []v1alpha1.ImportedDatabase{{Name: "app", Source: "app_prod"}},
			Skip: []v1alpha1.ImportSkip{"LargeObjects"}, CutOver: &v1alpha1.DatabaseCutOver{ID: "2026-11-26-a", StopWrites: true},
			Object: "8f14e45f-ceea-467f-a0e6-000000000001", Ended: true,
		},
		Dumps: &engine.Dumps{Databases: []v1alpha1.DumpedDatabase{{Name: "app", Path: "dumps/app.dump", Format: v1alpha1.DumpCustom}}, Ended: true},
	}
}

// TestMemberFile pins that every value reaches the field that the program in members reads it from.
func TestMemberFile(t *testing.T) {
	m := complete()
	for _, part := range []any{m, *m.Backup, *m.Backup.Verify, m.Backup.Verify.Assertions[0], m.Slots[0], m.Publications[0], m.Queries[0], *m.Reinitialize, *m.From, *m.From.Mask, m.From.Mask.Statements[0], *m.From.Snapshot, *m.Upgrade, *m.Import, m.Import.Databases[0], *m.Dumps, m.Dumps.Databases[0], *m.Import.CutOver, *m.Fence, *m.TakeOver} {
		v := reflect.ValueOf(part)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%T.%s: give it a value in complete()", part, v.Type().Field(i).Name)
			}
		}
	}
	raw, err := os.ReadFile("../../../../apis/members/pgmember/testdata/member.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := pgmember.ParseConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgmember.ParseConfig([]byte(postgreSQL{}.Files(engine.Server{Version: "17", Members: 1, Memory: 1 << 30, Storage: 50 << 30, Connections: 100}, m)[pgmember.FileConfig]))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the file of a member: -want, +got:\n%s", diff)
	}
}

func TestRecorded(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   *[]string
	}{
		"Some":    {"Members learn which volumes were there before them.", map[string]string{pgmember.FileConfig: memberFile(complete())}, &[]string{"orders-db-a"}},
		"New":     {"That no volume existed is known.", map[string]string{pgmember.FileConfig: memberFile(engine.Member{Recorded: engine.Recorded{Volumes: &[]string{}}})}, &[]string{}},
		"Unknown": {"A file of a version that did not record it names none.", map[string]string{pgmember.FileConfig: memberFile(engine.Member{})}, nil},
		"Broken":  {"A file that cannot be read names none.", map[string]string{pgmember.FileConfig: "{"}, nil},
		"None":    {"Neither do other files.", map[string]string{pgmember.FilePatroni: "{}"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, (postgreSQL{}).Recorded(tc.files).Volumes); diff != "" {
				t.Errorf("\n%s\nRecorded(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
