// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

const ordersDB = `
metadata: {name: orders-db, namespace: demo, generation: 3}
spec: {engine: postgres, version: "17", replicas: 3, storage: 10Gi}
status:
  phase: Updating
  version: "17.6"
  readyReplicas: 2
  leader: orders-db-a
  endpoints: {readWrite: "orders-db-rw.demo.svc:5432"}
  members:
    - {name: orders-db-a, role: Leader, state: Running, lag: InSync, node: n1, zone: z1, updated: false}
    - {name: orders-db-b, role: SyncStandby, state: Streaming, lag: InSync, node: n2, zone: z2, updated: true}
    - {name: orders-db-c, state: Starting, node: n3, zone: z3, updated: true, pendingRestart: true}
  resilience: {survives: [member], risks: ["The loss of zone z1 would end writes."]}
  lastFailover: {at: "2026-01-01T11:00:00Z", from: orders-db-b, to: orders-db-a, cause: Switchover}
  backup: {last: {id: F1, type: full, size: 31MB, at: "2026-01-01T10:00:00Z"}, earliestRestorable: "2025-12-30T10:00:00Z"}
  generation: {active: 2, kept: [{generation: 1, restore: bad-deploy, until: "2026-01-02T00:00:00Z"}]}
  change: {hash: c1, summary: restart of 1 member, state: Waiting, message: for the window}
  switchover: {id: s1, outcome: Done}
  conditions:
    - {type: Available, status: "True", reason: Leading, lastTransitionTime: null}
    - {type: DeletionProtected, status: "False", reason: Unprotected, lastTransitionTime: null}
    - {type: HighlyAvailable, status: "False", reason: MembersMissing, message: "member orders-db-c starts: wait", lastTransitionTime: null}
    - {type: Updated, status: "Unknown", reason: AwaitingTopology, message: "provider-capstan does not run: start it", lastTransitionTime: null}
`

func databaseOf(t *testing.T) v1alpha1.Database {
	t.Helper()
	var d v1alpha1.Database
	if err := yaml.UnmarshalStrict([]byte(ordersDB), &d); err != nil {
		t.Fatal(err)
	}

	return d
}

func TestDrawDatabase(t *testing.T) {
	want := `Database demo/orders-db is Updating  PostgreSQL 17.6  2 of 3 members ready
writes to      orders-db-rw.demo.svc:5432

member       role         state      lag        node                 zone
orders-db-a  Leader       Running    InSync     n1                   z1               to be changed
orders-db-b  SyncStandby  Streaming  InSync     n2                   z2
orders-db-c               Starting              n3                   z3               restart pending

survives       member
risk           The loss of zone z1 would end writes.
new leader     orders-db-b to orders-db-a, Switchover, 1h0m0s ago
backup         F1 full 31MB, 2h0m0s ago
restorable     from 2025-12-30T10:00:00Z to a minute ago
kept data      generation 1, from before bad-deploy, until 2026-01-02T00:00:00Z
change         Waiting: restart of 1 member: for the window
switchover     s1: Done
HighlyAvailable  MembersMissing: member orders-db-c starts: wait
Updated          AwaitingTopology: provider-capstan does not run: start it`
	v := Database{Now: now, Object: databaseOf(t)}
	if diff := cmp.Diff(strings.Split(want, "\n"), Plain(v.Draw(140))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got, want := v.Line(), "Updating   2 of 3 members  leader orders-db-a  Waiting: restart of 1 member: for the window  HighlyAvailable MembersMissing  Updated AwaitingTopology"; got != want {
		t.Errorf("line: want %q, got %q", want, got)
	}
}

// TestVisible: a hostile message is text.
func TestVisible(t *testing.T) {
	d := databaseOf(t)
	d.Status.Conditions[2].Message = "\x1b[2Jgone\r\a \u202eback"
	for _, l := range Plain(Database{Now: now, Object: d}.Draw(140)) {
		if strings.ContainsAny(l, "\x1b\r\a\u202e") {
			t.Errorf("the line has a control character: %q", l)
		}
	}
}

func TestTable(t *testing.T) {
	a := viewOf(t, stepping, both).Object
	a.Status.Replicas, a.Status.ReadyReplicas = 3, 2
	want := [][]string{
		{"KIND", "NAME", "PHASE", "READY", "DETAIL", "BLOCKED BY"},
		{"algorithm", "reco", "Progressing", "2/3", "Stepping 20 %", ""},
		{"database", "orders-db", "Updating", "2/3", "leader orders-db-a", "HighlyAvailable MembersMissing and 1 more"},
	}
	if diff := cmp.Diff(want, Table([]v1alpha1.Algorithm{a}, []v1alpha1.Database{databaseOf(t)})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
