// SPDX-License-Identifier: Apache-2.0

package database

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/database/names"
)

// affine is a Database of an engine with more fields, and an affinity of its pods.
func affine(engine, fields, affinity string) string {
	version := map[string]string{"postgres": "17", "mysql": "9.7"}[engine]
	return `{engine: ` + engine + `, version: "` + version + `", replicas: 3, storage: 50Gi` + fields + `, pod: {affinity: ` + affinity + `}}`
}

const (
	onFastDisks = `nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: example.org/disk, operator: In, values: [nvme]}]}]}, ` +
		`preferredDuringSchedulingIgnoredDuringExecution: [{weight: 50, preference: {matchExpressions: [{key: example.org/generation, operator: Gt, values: ["4"]}]}}]}`
	besideOrders = `podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 10, podAffinityTerm: {labelSelector: {matchLabels: {app: orders}}, topologyKey: topology.kubernetes.io/zone}}]}`
	awayFromAll  = `podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchExpressions: [{key: app.kubernetes.io/name, operator: In, values: [postgres, mysql]}]}, topologyKey: kubernetes.io/hostname}]}`
)

// templateOf the pods of a composed object, as plain data; nil for an object without pods.
func templateOf(t *testing.T, object any) map[string]any {
	t.Helper()
	o, err := composetest.Decode(object)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}} {
		if pod := compose.Map(o.Map(), path...); compose.List(pod, "spec", "containers") != nil {
			return pod
		}
	}
	return nil
}

// TestAffinity: nodes are chosen for every pod of a Database, and what members are near to or away from is theirs alone. The spread of
// members is what it is without.
func TestAffinity(t *testing.T) {
	nodes := parse(t, "{"+onFastDisks+"}")
	pods := parse(t, "{"+besideOrders+", "+awayFromAll+"}")
	members := maps.Clone(nodes)
	maps.Copy(members, pods)
	for name, tc := range map[string]struct {
		reason string
		engine string
		fields string
		others []string
	}{
		"Postgres": {
			"Poolers, backups and their host run on the same nodes.", "postgres",
			`, pooler: {readOnly: true}, backup: {to: {volume: {size: 20Gi}}, schedule: "0 1 * * *", verify: {schedule: "0 2 * * 0"}}`,
			[]string{names.Pooler, "pooler-ro", names.Repository, names.Backup, names.Verify},
		},
		"MySQL": {
			"Placement is no matter of the engine.", "mysql", `, backup: {to: {connectionSecretRef: {name: backups}}, schedule: "0 1 * * *"}`, []string{names.Backup},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plain := running(t, strings.Replace(affine(tc.engine, tc.fields, "{}"), ", pod: {affinity: {}}", "", 1)).plan()
			p := running(t, affine(tc.engine, tc.fields, "{"+onFastDisks+", "+besideOrders+", "+awayFromAll+"}")).plan()
			var others []string
			for object, o := range p.Objects {
				pod := templateOf(t, o.Object)
				if pod == nil {
					continue
				}
				got := compose.Map(pod, "spec", "affinity")
				want := nodes
				if strings.HasPrefix(object, names.MemberPrefix) {
					want = members
				} else {
					others = append(others, object)
				}
				if object == names.Repository {
					// It keeps away from members by itself.
					want = maps.Clone(nodes)
					want["podAntiAffinity"] = compose.Map(templateOf(t, plain.Objects[object].Object), "spec", "affinity", "podAntiAffinity")
				}
				if diff := cmp.Diff(any(want), any(got)); diff != "" {
					t.Errorf("%s\n%s: -want, +got:\n%s", tc.reason, object, diff)
				}
				spread := []string{"spec", "topologySpreadConstraints"}
				if diff := cmp.Diff(compose.List(templateOf(t, plain.Objects[object].Object), spread...), compose.List(pod, spread...)); diff != "" {
					t.Errorf("the spread of %s: -without an affinity, +with it:\n%s", object, diff)
				}
			}
			slices.Sort(others)
			slices.Sort(tc.others)
			if diff := cmp.Diff(tc.others, others); diff != "" {
				t.Errorf("pods that are no members: -want, +got:\n%s", diff)
			}
			terms := []any{map[string]any{"matchExpressions": []any{map[string]any{"key": "example.org/disk", "operator": "In", "values": []any{"nvme"}}}}}
			topology, err := composetest.Decode(p.Objects[names.Topology].Object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(terms, compose.List(topology.Map(), "spec", "forProvider", "nodeTerms")); diff != "" {
				t.Errorf("nodes that count: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestOtherPods: the labels that checks know of the pods that are no members are those that the pods have.
func TestOtherPods(t *testing.T) {
	w := running(t, `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pooler: {readOnly: true}, backup: {to: {volume: {size: 20Gi}}, schedule: "0 1 * * *", verify: {schedule: "0 2 * * 0"}}}`)
	known := (&names.Names{Name: "orders-db", Traits: engines[v1alpha1.EnginePostgres].Traits()}).OtherPods()
	for object, o := range w.plan().Objects {
		pod := templateOf(t, o.Object)
		if pod == nil || strings.HasPrefix(object, names.MemberPrefix) {
			continue
		}
		labels := map[string]string{}
		for key, value := range compose.Map(pod, "metadata", "labels") {
			labels[key], _ = value.(string)
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(known)), func(l map[string]string) bool { return maps.Equal(l, labels) }) {
			t.Errorf("%s has labels that no check knows: %v", object, labels)
		}
	}
}

// TestAffinityIsRefused before anything moves.
func TestAffinityIsRefused(t *testing.T) {
	term := func(kind, selector, key string) string {
		return `{` + kind + `: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: ` + selector + `, topologyKey: ` + key + `}]}}`
	}
	const (
		node, zone = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
		own        = `{matchLabels: {capstan.dev/database: orders-db}}`
	)
	for name, tc := range map[string]struct {
		reason   string
		fields   string
		affinity string
		want     []string
	}{
		"Away":      {"The members of all Databases each have a node of their own.", ", pooler: {}", "{" + awayFromAll + "}", nil},
		"AwayZone":  {"Each member can have a zone of its own.", "", term("podAntiAffinity", own, zone), nil},
		"Near":      {"Members may follow other pods.", "", term("podAffinity", `{matchLabels: {app: orders}}`, node), nil},
		"Preferred": {"A preference yields to the spread.", "", `{podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: {labelSelector: ` + own + `, topologyKey: ` + node + `}}]}}`, nil},
		"OneZone":   {"Members over nodes can be in one zone.", ", availability: {spread: Nodes}", term("podAffinity", own, zone), nil},
		"Anywhere":  {"Without a spread there is none to weaken.", ", availability: {spread: None}", term("podAffinity", own, node), nil},
		"Together": {
			"No second member would find a node.", "", term("podAffinity", own, node),
			[]string{"spec.pod.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]", `"capstan.dev/database=orders-db"`, "spread over nodes", "preferredDuringSchedulingIgnoredDuringExecution"},
		},
		"WithOne": {
			"With one member is together, too.", "", term("podAffinity", `{matchLabels: {capstan.dev/member: orders-db-b}}`, node),
			[]string{"podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]", "spread over nodes"},
		},
		"WithLeader": {
			"So it is with the leader, whose label comes later.", "", term("podAffinity", `{matchLabels: {capstan.dev/database: orders-db, capstan.dev/role: leader}}`, node),
			[]string{"podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]", "spread over nodes"},
		},
		"ZoneTogether": {
			"Zones are spread over, too.", "", term("podAffinity", `{matchExpressions: [{key: capstan.dev/member, operator: Exists}]}`, zone),
			[]string{"podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]", "spread over zones", "spec.availability.spread"},
		},
		"OwnLabel": {
			"Members have labels of the spec, too.", ", podMetadata: {labels: {example.org/team: orders}}", term("podAffinity", `{matchLabels: {example.org/team: orders}}`, node),
			[]string{"podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]", "spread over nodes"},
		},
		"Backups": {
			"No backup would be taken where members fill the nodes.", "", term("podAntiAffinity", `{matchLabels: {app.kubernetes.io/instance: orders-db}}`, node),
			[]string{"podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]", `"app.kubernetes.io/instance=orders-db"`, "backups", "app.kubernetes.io/name: postgres"},
		},
		"Poolers": {
			"Nor would poolers find a node.", ", pooler: {}", term("podAntiAffinity", `{matchExpressions: [{key: app.kubernetes.io/name, operator: In, values: [pgbouncer]}]}`, zone),
			[]string{"podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]", "poolers"},
		},
		"Everything": {
			"NotIn selects pods without the label, too.", "", term("podAntiAffinity", `{matchExpressions: [{key: app, operator: NotIn, values: [orders]}]}`, node),
			[]string{"podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]", `"app notin (orders)"`},
		},
		"Prefix": {
			"A prefix has 253 characters at most.", "", term("podAffinity", `{matchLabels: {`+strings.Repeat("a", 254)+`/b: c}}`, strings.Repeat("a", 254)+"/b"),
			[]string{"labelSelector.matchLabels", "topologyKey"},
		},
		"NodePrefix": {
			"The same of nodes.", "", `{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: ` + strings.Repeat("a", 254) + `/b, operator: Exists}]}]}}}`,
			[]string{"nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			before := w.request.Observed
			w.edit(affine("postgres", tc.fields, tc.affinity))
			p := w.plan()
			status, reason, message := condition(p, string(v1alpha1.TypeAccepted))
			if (status == "True") != (tc.want == nil) || status != "True" && reason != string(v1alpha1.ReasonInvalidSpec) {
				t.Errorf("%s\nAccepted is %s, %s: %s", tc.reason, status, reason, message)
			}
			for _, word := range tc.want {
				if !strings.Contains(message, word) {
					t.Errorf("the message lacks %q: %s", word, message)
				}
			}
			for name, o := range before {
				if tc.want != nil && strings.HasPrefix(name, names.MemberPrefix) {
					if diff := cmp.Diff(any(compose.Keep(o)), p.Objects[name].Object); diff != "" {
						t.Errorf("%s changes: -observed, +desired:\n%s", name, diff)
					}
				}
			}
		})
	}
}

// TestAffinityOfPods alone restarts no pooler, which it does not reach; an affinity to nodes does.
func TestAffinityOfPods(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, affinity string
		restarts         bool
	}{
		"Nodes": {"Poolers run on the same nodes.", "{" + onFastDisks + "}", true},
		"Pods":  {"What members are away from is theirs.", "{" + awayFromAll + "}", false},
		"None":  {"An empty block means what its absence means.", "{nodeAffinity: {}, podAffinity: {}, podAntiAffinity: {}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, withPooler)
			before := compose.Map(w.request.Observed[names.Pooler].Map(), "spec", "template")
			w.edit(affine("postgres", ", pooler: {}", tc.affinity))
			w.pass()
			w.pass()
			diff := cmp.Diff(before, compose.Map(w.request.Observed[names.Pooler].Map(), "spec", "template"))
			if (diff != "") != tc.restarts {
				t.Errorf("%s: restarted: %t, want %t\n%s", tc.reason, diff != "", tc.restarts, diff)
			}
		})
	}
}
