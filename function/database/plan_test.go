// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/release"
)

func TestCreate(t *testing.T) {
	w := running(t, basic)
	p := w.plan()
	want := []string{
		"access", "access-credential", "ca", "ca-issuer", "config", "consumer-app", "dcs", "issuer", "member-a", "member-b", "member-c",
		"members-certificate", "monitor", "networkpolicy", "pdb", "pods", "ro", "rolebinding", "rules", "rw", "serviceaccount", "topology", "volumeclaim",
	}
	if diff := cmp.Diff(want, compose.SortedKeys(p.Objects)); diff != "" {
		t.Errorf("objects of a plain Database: -want, +got:\n%s", diff)
	}
	for _, c := range p.Conditions {
		if c.Status != "True" {
			t.Errorf("condition %s is %s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	st := told(t, p)
	if st.Phase != v1alpha1.DatabaseRunning || !p.Ready || st.ReadyReplicas != 3 || st.Leader != "orders-db-a" || st.Version != "17.6" {
		t.Errorf("a Database whose members lead and follow: phase %s, ready %t, %d ready, led by %q, version %q",
			st.Phase, p.Ready, st.ReadyReplicas, st.Leader, st.Version)
	}
	if diff := cmp.Diff(&v1alpha1.Resilience{Survives: []string{"member", "node", "zone"}}, st.Resilience); diff != "" {
		t.Errorf("what three members in three zones survive: -want, +got:\n%s", diff)
	}
	if p.TTL < 29*60e9 {
		t.Errorf("a Database at rest is looked at after %s", p.TTL)
	}
}

// TestExtensionsBeforeReady: who waits for a Database begins with migrations, which need its extensions. One that serves is not
// taken from anybody for a new one.
func TestExtensionsBeforeReady(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		missing []any
		before  string
		want    bool
	}{
		"First":    {"It was never Ready, and an extension is not made.", []any{"pg_stat_statements"}, "False", false},
		"Made":     {"It was never Ready, and everything is made.", []any{}, "False", true},
		"Serves":   {"It is Ready, and another extension is asked for.", []any{"pg_stat_statements"}, "True", true},
		"Complete": {"It is Ready, and everything is made.", []any{}, "True", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			at := compose.Map(w.request.Observed[names.Access].Map(), "status", "atProvider")
			at["databases"] = []any{map[string]any{"name": "app", "missing": tc.missing}}
			for _, c := range compose.List(w.request.Composite.Map(), "status", "conditions") {
				if c, _ := c.(map[string]any); c["type"] == "Ready" {
					c["status"] = tc.before
				}
			}
			p := w.plan()
			if p.Ready != tc.want {
				t.Errorf("\n%s\nReady is %t, want %t", tc.reason, p.Ready, tc.want)
			}
			want := "ConsumersConnected"
			if len(tc.missing) > 0 {
				want = "ExtensionsPending"
			}
			if _, reason, message := condition(p, "ConsumersReady"); reason != want {
				t.Errorf("\n%s\nConsumersReady: %s: %s, want %s", tc.reason, reason, message, want)
			}
		})
	}
}

// TestExtensionFails: what the leader says of it is told where one looks first.
func TestExtensionFails(t *testing.T) {
	w := running(t, basic)
	at := compose.Map(w.request.Observed[names.Access].Map(), "status", "atProvider")
	at["databases"] = []any{map[string]any{"name": "app", "missing": []any{"pg_stat_statements"}}}
	for _, m := range compose.List(w.request.Observed[names.Topology].Map(), "status", "atProvider", "members") {
		if m, _ := m.(map[string]any); m["role"] == observev1alpha1.RoleLeader {
			m["reason"], m["message"] = "RolesOrExtensionsFailed", `schema "extensions" belongs to "api": rename it`
		}
	}
	want := `waiting for extensions: pg_stat_statements in app; the leader: schema "extensions" belongs to "api": rename it`
	if _, _, message := condition(w.plan(), "ConsumersReady"); message != want {
		t.Errorf("ConsumersReady says %q, want %q", message, want)
	}
}

// TestExpects: what is on its way is looked for soon, when the change that tells of it may go unheard.
func TestExpects(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		written time.Duration
		role    string
		want    time.Duration
	}{
		"Incomplete": {"Something was just written, and nobody could take over.", time.Second, observev1alpha1.RoleReplica, 10 * time.Second},
		"Stays":      {"Nothing happens, and nobody could take over.", time.Hour, observev1alpha1.RoleReplica, 5 * time.Minute},
		"Complete":   {"Something was just written.", time.Second, observev1alpha1.RoleSyncStandby, 30 * time.Second},
		"Rests":      {"Nothing happens.", time.Hour, observev1alpha1.RoleSyncStandby, 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			for _, m := range compose.List(w.request.Observed[names.Topology].Map(), "status", "atProvider", "members") {
				if m, _ := m.(map[string]any); m["role"] == observev1alpha1.RoleSyncStandby {
					m["role"] = tc.role
				}
			}
			w.compose(w.plan()) // what it tells of that
			compose.Map(w.request.Composite.Map(), "metadata")["managedFields"] = []any{
				map[string]any{"manager": "x", "time": w.request.Now.Add(-tc.written).Format(time.RFC3339)},
			}
			if got := w.plan().TTL; got != tc.want {
				t.Errorf("\n%s\nthe next look comes after %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestQuiet(t *testing.T) {
	w := running(t, basic)
	before := maps.Clone(w.request.Observed)
	first := encoded(t, w.plan())
	w.pass()
	if diff := cmp.Diff(first, encoded(t, w.plan())); diff != "" {
		t.Errorf("a plan at rest changes: -first, +second:\n%s", diff)
	}
	for name, o := range before {
		if diff := cmp.Diff(o.Map()["spec"], w.request.Observed[name].Map()["spec"]); diff != "" {
			t.Errorf("%s changes at rest: -before, +after:\n%s", name, diff)
		}
	}
}

func TestVolumesBefore(t *testing.T) {
	cases := map[string]struct {
		reason  string
		volumes []string
		want    string
	}{
		"New": {
			reason: "A Database without volumes is new, and its first member need not wait for what others hold.",
			want:   `"volumes":[]`,
		},
		"TakenBack": {
			reason:  "Members of a Database that was there before are told whose data to wait for.",
			volumes: []string{"orders-db-a", "orders-db-d"},
			want:    `"volumes":["orders-db-a","orders-db-d"]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, basic)
			w.volumes = tc.volumes
			for range 6 {
				p := w.pass()
				if p.Objects["member-a"].Object == nil {
					continue
				}
				if told := compose.Text(w.request.Observed[names.Config].Map(), "data", fileMember); !strings.Contains(told, tc.want) {
					t.Fatalf("%s\nmembers are made and told %s, want %s", tc.reason, told, tc.want)
				}
			}
			if w.request.Observed["member-c"] == nil {
				t.Error("no member was made")
			}
		})
	}
}

func TestUpgradeRestartsNothing(t *testing.T) {
	w := running(t, basic)
	before := w.request.Observed
	w.planner = Planner(release.Release{Version: "v2", Digests: "ghcr.io/capstan-dev/postgres@sha256:0b"})
	for range 3 {
		w.pass()
	}
	for _, name := range []string{"member-a", "member-b", "member-c"} {
		if diff := cmp.Diff(before[name].Map()["spec"], w.request.Observed[name].Map()["spec"]); diff != "" {
			t.Errorf("another version of the function changes %s: -before, +after:\n%s", name, diff)
		}
	}
	w.edit(`{engine: postgres, version: "17", replicas: 4, storage: 50Gi}`)
	w.pass()
	images := fmt.Sprint(compose.List(w.request.Observed["member-d"].Map(), "spec", "template", "spec", "containers"))
	if !strings.Contains(images, "ghcr.io/capstan-dev/postgres:v2@sha256:0b") {
		t.Errorf("a new member does not have the image of the function's release: %s", images)
	}
}

// TestTemplateOfBeforeStays: a pod template that an earlier version of the function wrote differently stays until a member restarts anyway.
func TestTemplateOfBeforeStays(t *testing.T) {
	w := running(t, basic)
	template := compose.Map(w.request.Observed["member-a"].Map(), "spec", "template", "spec")
	exporter, _ := compose.List(template, "containers")[1].(map[string]any)
	limits := compose.Map(exporter, "resources", "limits")
	limits["memory"] = "64Mi"
	has := func(limit string) (string, bool) {
		got := fmt.Sprint(compose.List(w.request.Observed["member-a"].Map(), "spec", "template", "spec", "containers")[1])
		return got, strings.Contains(got, "limits:map[memory:"+limit+"]")
	}
	for range 3 {
		w.pass()
	}
	if got, ok := has("64Mi"); !ok {
		t.Errorf("the template of a running member changes: %s", got)
	}
	w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, resources: {memory: 2Gi}}`)
	for range 8 {
		w.pass()
	}
	if got, ok := has("192Mi"); !ok {
		t.Errorf("a member that restarts has the template of before: %s", got)
	}
}

// TestReadinessOfLeader: clients of the leader do not depend on readiness, and with it on the exporter. Those of standbys do.
func TestReadinessOfLeader(t *testing.T) {
	w := running(t, basic)
	for name, want := range map[string]bool{names.ReadWrite: true, names.Pods: true, names.ReadOnly: false} {
		if got, _ := compose.Map(w.request.Observed[name].Map(), "spec")["publishNotReadyAddresses"].(bool); got != want {
			t.Errorf("Service %s: publishNotReadyAddresses is %t, want %t", name, got, want)
		}
	}
}

// TestUpdateOrder follows an edit until every member has it.
func TestUpdateOrder(t *testing.T) {
	for name, spec := range map[string]string{
		"Memory":    `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, resources: {memory: 2Gi}}`,
		"Parameter": `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, config: {max_connections: "200"}}`,
		"Preload":   `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, extensions: [pg_stat_statements]}`,
		"Issuer":    `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, tls: {issuerRef: {name: company}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			before := w.revisions()
			w.edit(spec)
			var order []string
			for range 8 {
				w.pass()
				changed := slices.DeleteFunc(compose.SortedKeys(before), func(l string) bool { return w.revisions()[l] == before[l] || slices.Contains(order, l) })
				if len(changed) > 1 {
					t.Fatalf("%v are changed at once", changed)
				}
				order = append(order, changed...)
			}
			if diff := cmp.Diff([]string{"b", "c", "a"}, order); diff != "" {
				t.Errorf("followers come before the leader: -want, +got:\n%s", diff)
			}
			if status, reason, message := condition(w.plan(), "Updated"); status != "True" {
				t.Errorf("after all of it: Updated is %s, %s: %s", status, reason, message)
			}
		})
	}
}

func TestReloadRestartsNobody(t *testing.T) {
	w := running(t, basic)
	before := w.revisions()
	w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, config: {work_mem: 64MB}, availability: {profile: Fast, durability: Strict}}`)
	for range 3 {
		w.pass()
	}
	if diff := cmp.Diff(before, w.revisions()); diff != "" {
		t.Errorf("a parameter that takes effect at once restarts members: -before, +after:\n%s", diff)
	}
	dcs := compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig)
	for _, part := range []string{`"work_mem":"64MB"`, `"ttl":20`, `"synchronous_mode_strict":true`} {
		if !strings.Contains(dcs, part) {
			t.Errorf("the configuration of Patroni has no %s: %s", part, dcs)
		}
	}
}

func TestFailedStepStops(t *testing.T) {
	w := running(t, basic)
	before := w.revisions()
	w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, resources: {cpu: "64"}}`)
	w.broken["orders-db-b"] = "Unschedulable"
	for range 6 {
		w.pass()
	}
	after := w.revisions()
	if after["b"] == before["b"] || after["a"] != before["a"] || after["c"] != before["c"] {
		t.Errorf("a step that failed does not stop: %v, %v", before, after)
	}
	if status, reason, message := condition(w.plan(), "Updated"); status != "False" || reason != "Unschedulable" || !strings.Contains(message, "orders-db-b") {
		t.Errorf("Updated is %s, %s: %s", status, reason, message)
	}
	if st := told(t, w.plan()); st.Phase != v1alpha1.DatabaseDegraded {
		t.Errorf("with a failed step the phase is %s", st.Phase)
	}
	w.edit(basic)
	w.pass()
	delete(w.broken, "orders-db-b")
	for range 6 {
		w.pass()
	}
	if diff := cmp.Diff(before, w.revisions()); diff != "" {
		t.Errorf("going back does not mend it: -before, +after:\n%s", diff)
	}
}

func TestScale(t *testing.T) {
	w := running(t, basic)
	claims := compose.List(w.request.Observed["member-a"].Map(), "spec", "volumeClaimTemplates")
	w.edit(`{engine: postgres, version: "17", replicas: 5, storage: 80Gi}`)
	for range 3 {
		w.pass()
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, compose.SortedKeys(w.revisions())); diff != "" {
		t.Errorf("members after growing: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(claims, compose.List(w.request.Observed["member-a"].Map(), "spec", "volumeClaimTemplates")); diff != "" {
		t.Errorf("claims of a member that exists change: -before, +after:\n%s", diff)
	}
	if status, reason, message := condition(w.plan(), "StorageHealthy"); status != "True" || reason != "StorageReady" {
		t.Errorf("StorageHealthy is %s, %s: %s", status, reason, message)
	}
	w.edit(`{engine: postgres, version: "17", replicas: 1, storage: 80Gi}`)
	at := 5
	for range 9 {
		w.pass()
		n := len(w.revisions())
		if at-n > 1 {
			t.Fatalf("%d members are removed at once", at-n)
		}
		at = n
	}
	if diff := cmp.Diff([]string{"a"}, compose.SortedKeys(w.revisions())); diff != "" {
		t.Errorf("members after shrinking: -want, +got:\n%s", diff)
	}
	if w.request.Observed[names.Budget] != nil {
		t.Error("a single member has a budget, which would block drains")
	}
}

func TestRefusedSpecKeepsAll(t *testing.T) {
	for name, tc := range map[string]struct{ spec, reason, message string }{
		"Version":   {`{engine: postgres, version: "15", replicas: 3, storage: 50Gi}`, "VersionChangeUnsupported", "the data has version 17"},
		"Missing":   {`{engine: postgres, version: "12", replicas: 3, storage: 50Gi}`, "VersionUnavailable", "choose one of 15, 17, 18"},
		"Plan":      {`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, plan: huge}`, "PlanUnavailable", "default, medium"},
		"Parameter": {`{engine: postgres, version: "17", replicas: 1, storage: 50Gi, config: {fsync: "off"}}`, "InvalidSpec", "spec.config.fsync"},
		"Extension": {`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, extensions: [postgis]}`, "ExtensionUnavailable", "postgis"},
		"Room":      {`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, config: {shared_buffers: 900MB}}`, "InvalidSpec", "half the memory"},
		"Database":  {`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, databases: [{name: postgres}]}`, "InvalidSpec", "spec.databases[0].name"},
		"Consumer":  {`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, databases: [{name: x}], consumers: [{name: x-owner}]}`, "InvalidSpec", "end in -owner or -reader"},
		"Slots":     {`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, replication: {slots: [{name: cdc}]}}`, "InvalidSpec", "set spec.config.wal_level to logical"},
		"Network":   {`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, network: {from: [{cidr: "10.0.0.0/99"}]}}`, "InvalidSpec", "10.0.0.0/8"},
		"Taint":     {`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, pod: {tolerations: [{key: dedicated, operator: Lt, value: "5"}]}}`, "InvalidSpec", "spec.pod.tolerations[0].operator"},
		"Replicas":  {`{engine: postgres, version: "17", replicas: -1, storage: 50Gi}`, "InvalidSpec", "spec.replicas"},
		"Quantity":  {`{engine: postgres, version: "17", replicas: 3, storage: many}`, "InvalidSpec", "spec.storage"},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			before := w.request.Observed
			w.edit(tc.spec)
			p := w.pass()
			if _, reason, message := condition(p, "Accepted"); reason != tc.reason || !strings.Contains(message, tc.message) {
				t.Errorf("Accepted: %s: %s", reason, message)
			}
			for name, o := range before {
				after := w.request.Observed[name]
				if after == nil {
					t.Errorf("%s is gone", name)
					continue
				}
				if diff := cmp.Diff(o.Map()["spec"], after.Map()["spec"]); diff != "" {
					t.Errorf("%s changes: -before, +after:\n%s", name, diff)
				}
			}
			if status, _, message := condition(p, "Available"); status != "True" || !p.Ready {
				t.Errorf("Available is %s, ready %t: %s", status, p.Ready, message)
			}
		})
	}
}

// TestNothingIsLost observes a part of what is there, broken in many ways, and holds every plan to what must never happen: what
// exists and holds data stays, and no two members are changed at once.
func TestNothingIsLost(t *testing.T) {
	specs := []string{
		basic,
		`{engine: postgres, version: "17", replicas: 2, storage: 60Gi, resources: {memory: 2Gi}}`,
		`{engine: postgres, version: "17", replicas: 5, storage: 50Gi, availability: {durability: Strict}}`,
		`{engine: postgres, version: "18", replicas: 1, storage: 50Gi}`,
		`{engine: postgres, version: "17", replicas: 1, storage: 50Gi, monitoring: {enabled: false}, consumers: []}`,
		`{engine: 7, storage: {}, replicas: many}`,
		`{}`,
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := running(t, basic)
		w.edit(specs[r.IntN(len(specs))])
		w.spoil(r)
		if r.IntN(3) == 0 {
			w.planner = Planner(release.Release{Version: "v2"})
		}
		p := w.plan()
		changed := 0
		for name, o := range w.request.Observed {
			d, kept := p.Objects[name]
			if !kept {
				if strings.HasPrefix(name, names.MemberPrefix) {
					changed++
				}
				if !mayGo(w, name) {
					t.Fatalf("seed %d: %s is dropped", seed, name)
				}
				continue
			}
			if after := revisionOf(t, d); strings.HasPrefix(name, names.MemberPrefix) && after != compose.Text(o.Map(), "metadata", "annotations", names.AnnotationRevision) {
				changed++
			}
		}
		if changed > 1 {
			t.Fatalf("seed %d: %d members are changed or removed at once", seed, changed)
		}
		if again := w.plan(); encoded(t, again) != encoded(t, p) {
			t.Fatalf("seed %d: the same request gives another plan", seed)
		}
	}
}

// mayGo reports whether a spec lets go of what exists.
func mayGo(w *world, name string) bool {
	spec := compose.Map(w.request.Composite.Map(), "spec")
	replicas := compose.Number(spec, 0, "replicas")
	switch {
	case name == names.Budget:
		return replicas == 1
	case name == names.Monitor, name == names.Rules:
		return spec["monitoring"] != nil
	case strings.HasPrefix(name, names.ConsumerPrefix):
		return spec["consumers"] != nil
	case strings.HasPrefix(name, names.MemberPrefix):
		return slices.Index(names.Letters, strings.TrimPrefix(name, names.MemberPrefix)) >= int(replicas) && replicas > 0
	default:
		return false
	}
}

func revisionOf(t *testing.T, d compose.Desired) string {
	t.Helper()
	m, err := compose.AsMap(d.Object)
	if err != nil {
		t.Fatal(err)
	}
	return compose.Text(m, "metadata", "annotations", names.AnnotationRevision)
}

// spoil what is observed.
func (w *world) spoil(r *rand.Rand) {
	observed := map[string]compose.Object{}
	for _, name := range compose.SortedKeys(w.request.Observed) {
		o, err := composetest.Decode(w.request.Observed[name].Map())
		if err != nil {
			w.t.Fatal(err)
		}
		switch r.IntN(12) {
		case 0:
			continue
		case 1:
			delete(o, "status")
		case 2:
			delete(o, "spec")
		case 3:
			delete(o["metadata"].(map[string]any), "managedFields")
		case 4:
			delete(o["metadata"].(map[string]any), "annotations")
		case 5:
			o["status"] = "?"
		}
		observed[name] = o
	}
	w.request.Observed = observed
	for gvk := range w.request.Kinds {
		w.request.Kinds[gvk] = compose.Availability(r.IntN(3))
	}
	if r.IntN(4) == 0 {
		delete(w.request.Composite.Map(), "status")
	}
}

// BenchmarkPlan of three members at rest. The budget is a millisecond.
func BenchmarkPlan(b *testing.B) {
	w := running(b, basic)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.planner(w.request); err != nil {
			b.Fatal(err)
		}
	}
}
