// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var now = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}

	return u
}

const orders = `
apiVersion: capstan.dev/v1alpha1
kind: Database
metadata: {name: orders-db, namespace: shop}
spec:
  engine: postgres
  version: "17"
  replicas: 3
  storage: 50Gi
  crossplane:
    resourceRefs:
    - {apiVersion: v1, kind: Service, name: orders-db-rw}
    - {apiVersion: apps/v1, kind: StatefulSet, name: orders-db-a}
status:
  phase: Degraded
  version: "17.6"
  leader: orders-db-a
  readyReplicas: 2
  endpoints: {readWrite: "orders-db-rw.shop.svc:5432"}
  members:
  - {name: orders-db-a, role: Leader, state: Running, zone: west, node: one, updated: true}
  - {name: orders-db-b, role: SyncStandby, state: Streaming, zone: east, lag: InSync, updated: true}
  - {name: orders-db-c, role: Replica, state: Failed, zone: east, lag: FarBehind, updated: true}
  backup: {last: {id: b1, at: "2026-11-26T06:00:00Z"}, earliestRestorable: "2026-11-20T06:00:00Z"}
  lastFailover: {at: "2026-11-26T08:58:00Z", from: orders-db-b, to: orders-db-a, cause: NodeLost}
  conditions:
  - {type: Synced, status: "True", reason: ReconcileSuccess}
  - {type: Available, status: "False", reason: MembersMissing, message: "Member orders-db-c has failed: look at its log."}
`

const reco = `
apiVersion: capstan.dev/v1alpha1
kind: Algorithm
metadata: {name: reco, namespace: shop}
spec: {image: "registry.example.org/algo/reco:2"}
status:
  phase: Ready
  endpoint: http://reco.shop.svc
  replicas: 3
  readyReplicas: 3
  revision: {live: aaa, slot: a, candidate: bbb}
  rollout: {phase: Stepping, weight: 20, epoch: 3, message: "20 % of traffic"}
`

func TestRows(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string
		want   Row
	}{
		"Database": {
			reason: "Phase, endpoint, size, last backup and what blocks it.", object: orders,
			want: Row{
				Name: "orders-db", Phase: "Degraded", Tone: Bad, Endpoint: "orders-db-rw.shop.svc:5432", Size: "2 of 3 members, 50Gi each", Backup: "3 h ago",
				Note: "MembersMissing: Member orders-db-c has failed: look at its log.",
			},
		},
		"Algorithm": {
			reason: "With the share of a rollout.", object: reco,
			want: Row{Name: "reco", Phase: "Ready", Tone: Good, Endpoint: "http://reco.shop.svc", Size: "3 of 3 ready, Stepping 20 %"},
		},
		"New": {
			reason: "An object without a status.", object: "kind: Training\nmetadata: {name: fraud}\nspec: {image: x}",
			want: Row{Name: "fraud", Phase: "Pending", Tone: Busy, Size: "1 workers"},
		},
		"Bucket": {
			reason: "What is reconciled by the provider has a condition.",
			object: `{kind: Bucket, metadata: {name: data}, status: {conditions: [{type: Ready, status: "True"}], atProvider: {bucketName: shop-data, endpoint: "https://s3"}}}`,
			want:   Row{Name: "data", Phase: "Ready", Tone: Good, Endpoint: "https://s3", Size: "shop-data"},
		},
		"Deleting": {
			reason: "What is deleted is shown as such.",
			object: `{kind: Database, metadata: {name: old, deletionTimestamp: "2026-11-26T08:00:00Z"}, spec: {replicas: 1, storage: 1Gi}, status: {phase: Running}}`,
			want:   Row{Name: "old", Phase: "Deleting", Tone: Busy, Size: "0 of 1 members, 1Gi each", Backup: "off"},
		},
		"Former": {
			reason: "A spec of an earlier version does not hide what runs.",
			object: strings.Replace(reco, "spec: {", "spec: {config: {files: {a.yaml: x}}, ", 1),
			want:   Row{Name: "reco", Phase: "Ready", Tone: Good, Endpoint: "http://reco.shop.svc", Size: "3 of 3 ready, Stepping 20 %"},
		},
		"Broken": {
			reason: "What cannot be read costs no page.", object: `{kind: Database, metadata: {name: odd}, spec: {replicas: many}}`,
			want: Row{Name: "odd", Phase: "Pending", Tone: Busy, Size: "0 of 0 members, 0 each", Backup: "off"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Of(object(t, tc.object), now)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDetail(t *testing.T) {
	d := DetailOf(object(t, orders), now)
	if diff := cmp.Diff([]Condition{{"Available", "False", "MembersMissing", "Member orders-db-c has failed: look at its log."}}, d.Troubles); diff != "" {
		t.Errorf("needs attention: -want, +got:\n%s", diff)
	}
	if len(d.Others) != 1 || d.Others[0].Type != "Synced" {
		t.Errorf("in order: %v", d.Others)
	}
	facts := map[string]string{}
	for _, f := range d.Facts {
		facts[f.Name] = f.Value
	}
	for name, want := range map[string]string{
		"Writes": "orders-db-rw.shop.svc:5432", "Server": "postgres 17.6", "Leader": "orders-db-a", "Last backup": "3 h ago", "Restorable since": "2026-11-20T06:00:00Z",
		"Last change of the leader": "2 min ago, from orders-db-b to orders-db-a (NodeLost)",
	} {
		if facts[name] != want {
			t.Errorf("%s: want %q, got %q", name, want, facts[name])
		}
	}
	want := []Composed{{APIVersion: "v1", Kind: "Service", Name: "orders-db-rw"}, {APIVersion: "apps/v1", Kind: "StatefulSet", Name: "orders-db-a"}}
	if diff := cmp.Diff(want, References(object(t, orders))); diff != "" {
		t.Errorf("composed objects: -want, +got:\n%s", diff)
	}
}

func TestPictures(t *testing.T) {
	p := DetailOf(object(t, orders), now).Picture
	if p.Title != "3 members in 2 zones, leader orders-db-a" || len(p.Groups) != 2 || p.Groups[0].Name != "east" {
		t.Errorf("%s: %v", p.Title, p.Groups)
	}
	var lead []string
	tones := map[string]Tone{}
	for i, b := range p.Boxes {
		tones[b.Lines[0].Words] = b.Tone
		if b.Lead {
			lead = append(lead, b.Lines[0].Words)
		}
		inside := false
		for _, g := range p.Groups {
			inside = inside || b.X >= g.X && b.Y >= g.Y && b.X+b.Width <= g.X+g.Width && b.Y+b.Height <= g.Y+g.Height
		}
		if !inside || b.X+b.Width > p.Width || b.Y+b.Height > p.Height {
			t.Errorf("box %d is outside: %+v", i, b)
		}
		for _, l := range b.Lines {
			if l.Y > b.Y+b.Height {
				t.Errorf("%q is below its box", l.Words)
			}
		}
	}
	if diff := cmp.Diff([]string{"orders-db-a"}, lead); diff != "" {
		t.Errorf("leader: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]Tone{"orders-db-a": Good, "orders-db-b": Good, "orders-db-c": Bad}, tones); diff != "" {
		t.Errorf("tones: -want, +got:\n%s", diff)
	}

	cases := map[string]struct{ change, want string }{
		"A revision under test": {"", "live revision aaa with 80 % of traffic; revision bbb under test with 20 %"},
		"Rolled back":           {"phase: Stepping=phase: RolledBack", "live revision aaa with 100 % of traffic; revision bbb rolled back with 0 %"},
		"Alone":                 {", candidate: bbb=", "live revision aaa with 100 % of traffic"},
		"Draining":              {"candidate: bbb=draining: zzz", "live revision aaa with 100 % of traffic; revision zzz draining with 0 %"},
	}
	for reason, tc := range cases {
		old, changed, _ := strings.Cut(tc.change, "=")
		text := reco
		if old != "" {
			text = strings.Replace(reco, old, changed, 1)
		}
		if got := DetailOf(object(t, text), now).Picture.Title; got != tc.want {
			t.Errorf("%s: want %q, got %q", reason, tc.want, got)
		}
	}
	if p := DetailOf(object(t, "kind: Database\nmetadata: {name: new}\nspec: {replicas: 1, storage: 1Gi}"), now).Picture; p != nil {
		t.Errorf("nothing to draw: %+v", p)
	}
}

func TestStateOf(t *testing.T) {
	for reason, tc := range map[string]struct {
		object, want string
		tone         Tone
	}{
		"Replicas.":      {`{kind: StatefulSet, spec: {replicas: 2}, status: {readyReplicas: 1}}`, "1 of 2 ready", Busy},
		"All of them.":   {`{kind: StatefulSet, spec: {replicas: 1}, status: {readyReplicas: 1}}`, "1 of 1 ready", Good},
		"Stopped.":       {`{kind: Deployment, spec: {replicas: 0}}`, "0 of 0 ready", Good},
		"Ready.":         {`{kind: Topology, status: {conditions: [{type: Ready, status: "True"}]}}`, "Ready", Good},
		"Not ready.":     {`{kind: Access, status: {conditions: [{type: Ready, status: "False", reason: Creating}]}}`, "not ready Creating", Busy},
		"Nothing known.": {`{kind: Service}`, "exists", Neutral},
	} {
		got, tone := StateOf(object(t, tc.object))
		if got != tc.want || tone != tc.tone {
			t.Errorf("%s Want %q %s, got %q %s", reason, tc.want, tc.tone, got, tone)
		}
	}
}

func TestEvents(t *testing.T) {
	all := make([]corev1.Event, 30)
	for i := range all {
		all[i] = corev1.Event{Reason: "Created", LastTimestamp: metav1.NewTime(now.Add(-time.Duration(i) * time.Minute))}
	}
	got := Events(all, func(e corev1.Event) time.Time { return e.LastTimestamp.Time }, now)
	if len(got) != mostEvents || got[1].When != "1 min ago" {
		t.Errorf("got %d events, %v", len(got), got[1])
	}
}
