// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/release"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const identity = "3f2a9c1b5d7e48609a1b2c3d4e5f6071"

const basic = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi}`

// A world is what a planner is asked about, and what becomes of its plans.
type world struct {
	// signals that every Topology reports.
	signals []observev1alpha1.ActiveSignal

	t       testing.TB
	server  *composetest.Server
	request compose.Request
	planner compose.Planner

	// leads is the member that leads, once somebody does.
	leads string

	// broken members do not start, for that reason.
	broken map[string]string

	// fences are what members report of a request to stop them.
	fences map[string]*observev1alpha1.MemberFenceReport

	// volumes that were there before.
	volumes []string

	// pending parameters of members.
	pending map[string][]string

	// cordoned are members whose nodes take no pods, moves what became of switchovers.
	cordoned      []string
	requestedMove []observev1alpha1.SwitchoverOutcome

	// led are the members that lead in later generations, backups what those tell, and secret what the Secret of the first
	// Credential remembers.
	led     map[int]string
	backups map[int]*observev1alpha1.BackupReport
	secret  string

	// upgrades of generations.
	upgrades upgrades

	// backup is what members tell of backups.
	backup *observev1alpha1.BackupReport

	// following is what members tell of the archive that they follow.
	following *observev1alpha1.FollowReport

	// imports is what they tell of the server that they are filled from.
	imports *observev1alpha1.ImportReport

	// points are the restore points that they tell.
	points []observev1alpha1.RestorePoint

	// sizes of volumes by member, as far as they have grown, and stuck why they do not: a state, if they do not.
	sizes map[string]string

	// noWAL reports that the provider makes no volumes for write-ahead logs.
	noWAL bool

	// filledWAL are volumes for write-ahead logs by member.
	filledWAL map[string]filled
	stuck     string

	// filled volumes by member.
	filled map[string]filled
}

// filled tells how full a volume is.
type filled struct {
	observev1alpha1.VolumeReport

	disk string
}

func settings() inputv1alpha1.Settings {
	return inputv1alpha1.Settings{Database: inputv1alpha1.DatabaseSettings{
		Image: "ghcr.io/capstan-dev/postgres", MySQLImage: "ghcr.io/capstan-dev/mysql",
		Plans: []inputv1alpha1.DatabasePlan{
			{Name: "default", CPU: resource.MustParse("500m"), Memory: resource.MustParse("1Gi")},
			{Name: "medium", CPU: resource.MustParse("2"), Memory: resource.MustParse("8Gi"), MaxConnections: 200, StorageClassName: "fast"},
		},
		MetricsNamespaces:   []string{"monitoring"},
		CrossplaneNamespace: "crossplane-system",
	}}
}

// newWorld with a Database of the given spec and nothing else.
func newWorld(tb testing.TB, spec string) *world {
	tb.Helper()
	return &world{
		t: tb, server: server, planner: Planner(release.Release{Version: "v1"}),
		upgrades: upgrades{reports: map[int]*observev1alpha1.UpgradeReport{}, begun: map[int]bool{}, of: map[int]int{}},
		led:      map[int]string{}, backups: map[int]*observev1alpha1.BackupReport{}, broken: map[string]string{}, pending: map[string][]string{}, sizes: map[string]string{}, filled: map[string]filled{},
		request: compose.Request{
			Now:      now,
			Settings: settings(),
			Kinds: map[schema.GroupVersionKind]compose.Availability{
				names.CertificateGVK: compose.Available, names.IssuerGVK: compose.Available,
				names.ServiceMonitorGVK: compose.Available, names.PrometheusRuleGVK: compose.Available,
			},
			Composite: composetest.Object{
				"apiVersion": "capstan.dev/v1alpha1",
				"kind":       "Database",
				"metadata":   map[string]any{"name": "orders-db", "namespace": "shop"},
				"spec":       parse(tb, spec),
			},
		},
	}
}

// Worlds that run already, by their spec. To make one takes long, because the API server's own code applies every object.
var (
	worlds = map[string]*world{}
	server = composetest.NewServer()
)

// running world: one whose members lead and follow.
func running(tb testing.TB, spec string) *world {
	tb.Helper()
	made := worlds[spec]
	if made == nil {
		made = newWorld(tb, spec)
		for range 6 {
			made.pass()
		}
		worlds[spec] = made
	}
	w := newWorld(tb, spec)
	w.leads = made.leads
	w.request.Composite = copied(tb, made.request.Composite)
	w.request.Observed = map[string]compose.Object{}
	for name, o := range made.request.Observed {
		w.request.Observed[name] = copied(tb, o)
	}
	return w
}

func copied(tb testing.TB, o compose.Object) composetest.Object {
	tb.Helper()
	out, err := composetest.Decode(o.Map())
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// pass of Crossplane, and what provider and controllers make of it.
func (w *world) pass() *compose.Plan {
	w.t.Helper()
	p := w.plan()
	w.compose(p)
	w.react()
	return p
}

func (w *world) plan() *compose.Plan {
	w.t.Helper()
	p, err := w.planner(w.request)
	if err != nil {
		w.t.Fatalf("Plan: %v", err)
	}
	return p
}

// compose a plan as Crossplane does, status and conditions included.
func (w *world) compose(p *compose.Plan) {
	w.t.Helper()
	observed, err := w.server.Compose(w.request.Observed, p)
	if err != nil {
		w.t.Fatal(err)
	}
	for name, o := range observed {
		if before := w.request.Observed[name]; before != nil && before.Map()["status"] != nil {
			o.Map()["status"] = before.Map()["status"]
		}
	}
	w.request.Observed = observed
	status, err := compose.AsMap(p.Status)
	if err != nil {
		w.t.Fatal(err)
	}
	conditions := []any{}
	for _, c := range p.Conditions {
		conditions = append(conditions, map[string]any{
			"type": string(c.Type), "status": string(c.Status), "reason": string(c.Reason), "message": c.Message,
		})
	}
	ready := "False"
	if p.Ready {
		ready = "True"
	}
	status["conditions"] = append(conditions, map[string]any{"type": "Ready", "status": ready, "reason": map[string]string{"True": "Available", "False": "Creating"}[ready]})
	xr := composetest.Object(maps.Clone(w.request.Composite.Map()))
	xr["status"] = status
	w.request.Composite = xr
}

// react as provider, cert-manager, Kubernetes and members do.
func (w *world) react() {
	w.t.Helper()
	ready := []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Synced", "status": "True"}}
	members := map[int][]observev1alpha1.TopologyMember{1: nil}
	for _, resource := range compose.SortedKeys(w.request.Observed) {
		o := w.request.Observed[resource].Map()
		switch o["kind"] {
		case "Certificate", "Issuer":
			o["status"] = map[string]any{"conditions": ready}
		case "Credential":
			at := map[string]any{"identity": identity}
			if text := compose.Text(o, "spec", "forProvider", "remember"); text != "" && resource == names.AccessCredential {
				w.secret = text
			}
			if resource == names.AccessCredential && w.secret != "" {
				at["remembered"] = w.secret
			}
			o["status"] = map[string]any{"conditions": ready, "atProvider": at}
		case names.KindStatefulSet:
			if resource == names.Repository {
				w.start(o)
				continue
			}
			g, _ := names.GenerationOf(resource)
			members[g] = append(members[g], w.start(o))
		case "Topology":
			if g, _ := names.GenerationOf(resource); members[g] == nil {
				members[g] = []observev1alpha1.TopologyMember{}
			}
		case "VolumeClaim":
			o["status"] = map[string]any{"conditions": ready, "atProvider": w.grow(o)}
		}
	}
	seen := w.watch(1, members[1], w.leads)
	w.leads = seen.Leader
	for _, g := range compose.SortedKeys(members) {
		if g > 1 {
			w.led[g] = w.watch(g, members[g], w.led[g]).Leader
			seen.Leader = cmp.Or(seen.Leader, w.led[g])
		}
	}
	if o := w.request.Observed[names.Access]; o != nil && seen.Leader != "" {
		var logins []any
		for _, l := range compose.List(o.Map(), "spec", "forProvider", "logins") {
			logins = append(logins, l.(map[string]any)["name"])
		}
		o.Map()["status"] = map[string]any{"conditions": ready, "atProvider": map[string]any{"logins": logins}}
	}
}

// start the pod of a StatefulSet with its latest template.
func (w *world) start(o map[string]any) observev1alpha1.TopologyMember {
	raw, err := json.Marshal(compose.Map(o, "spec", "template"))
	if err != nil {
		w.t.Fatal(err)
	}
	revision := compose.Hash(raw)
	o["status"] = map[string]any{
		"observedGeneration": o["metadata"].(map[string]any)["generation"],
		"updateRevision":     revision, "readyReplicas": 1.0,
	}
	name := compose.Text(o, "metadata", "name")
	if replicas := compose.Number(o, 1, "spec", "replicas"); replicas == 0 {
		o["status"].(map[string]any)["readyReplicas"] = 0.0
		return observev1alpha1.TopologyMember{Name: name, State: observev1alpha1.MemberStopped, VolumeSize: "50Gi"}
	}
	o["status"].(map[string]any)["replicas"] = 1.0
	m := observev1alpha1.TopologyMember{
		Cordoned: slices.Contains(w.cordoned, name),
		Name:     name, State: observev1alpha1.MemberStreaming, Role: observev1alpha1.RoleSyncStandby, Ready: true, Lag: observev1alpha1.LagInSync,
		Node: "node-" + name[len(name)-1:], Zone: name[len(name)-1:], Revision: revision, Disk: "Ok", VolumeSize: "50Gi", Version: "17.6",
		PendingRestart: w.pending[name], Fence: w.fences[name],
	}
	if size := w.sizes[name]; size != "" {
		m.VolumeSize = size
	}
	if f, ok := w.filled[name]; ok {
		m.Disk, m.Volume = f.disk, &f.VolumeReport
	}
	if facts.Entry(compose.List(o, "spec", "template", "spec", "volumes"), names.VolumeWAL) != nil {
		m.WALDisk = "Ok"
		if f, ok := w.filledWAL[name]; ok {
			m.WALDisk, m.WALVolume = f.disk, &f.VolumeReport
		}
	}
	if why := w.broken[name]; why != "" {
		m.State, m.Role, m.Ready, m.Reason, m.Message = observev1alpha1.MemberFailed, "", false, why, "it says why: correct it"
	}
	return m
}

// grow the volumes of a VolumeClaim: first they are on their way, then they are there.
func (w *world) grow(o map[string]any) map[string]any {
	size := resource.MustParse(compose.Text(o, "spec", "forProvider", "size"))
	at := storagev1alpha1.VolumeClaimObservation{State: storagev1alpha1.VolumeReady}
	for _, m := range compose.List(o, "spec", "forProvider", "members") {
		name := m.(string)
		v := storagev1alpha1.VolumeObservation{Name: "data-" + name + "-0", Member: name, State: storagev1alpha1.VolumeReady, Granted: w.made(name)}
		if w.sizes[name] != "" {
			v.Granted = w.sizes[name]
		}
		if has := resource.MustParse(v.Granted); has.Cmp(size) < 0 {
			v.State = storagev1alpha1.VolumeGrowing
			if w.stuck == "" {
				w.sizes[name] = size.String()
			} else {
				v.State, v.Message = w.stuck, "it says why: correct it"
			}
			at.State = v.State
		}
		at.Volumes = append(at.Volumes, v)
		if wal := compose.Text(o, "spec", "forProvider", "wal", "size"); wal != "" && !w.noWAL {
			at.Volumes = append(at.Volumes, w.growWAL(name, resource.MustParse(wal)))
		}
	}
	m, err := compose.AsMap(at)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// growWAL makes the volume for a member's write-ahead log, or lets it grow.
func (w *world) growWAL(member string, size resource.Quantity) storagev1alpha1.VolumeObservation {
	name := "wal-" + member + "-0"
	v := storagev1alpha1.VolumeObservation{Name: name, Member: member, Holds: storagev1alpha1.HoldsWAL, State: storagev1alpha1.VolumeReady, Granted: w.sizes[name]}
	if v.Granted == "" {
		v.Granted = size.String()
		w.sizes[name] = v.Granted
	}
	if has := resource.MustParse(v.Granted); has.Cmp(size) < 0 {
		v.State = storagev1alpha1.VolumeGrowing
		if w.stuck != "" {
			v.State, v.Message = w.stuck, "it says why: correct it"
		}
	}
	if w.stuck == "" {
		w.sizes[name] = size.String()
	}
	return v
}

// made with this size: the volume of a member.
func (w *world) made(member string) string {
	for _, o := range w.request.Observed {
		if m := o.Map(); m["kind"] == names.KindStatefulSet && compose.Text(m, "metadata", "name") == member {
			claim, _ := compose.List(m, "spec", "volumeClaimTemplates")[0].(map[string]any)
			return compose.Text(claim, "spec", "resources", "requests", "storage")
		}
	}
	return "50Gi"
}

// lead: who led goes on, or else the first that can.
func (w *world) lead(seen *observev1alpha1.TopologyObservation) {
	can := func(m observev1alpha1.TopologyMember) bool { return m.Ready }
	if !slices.ContainsFunc(seen.Members, func(m observev1alpha1.TopologyMember) bool { return can(m) && m.Name == seen.Leader }) {
		seen.Leader = ""
		if i := slices.IndexFunc(seen.Members, can); i >= 0 {
			seen.Leader = seen.Members[i].Name
		}
	}
	if seen.Leader != "" {
		seen.Phase, seen.SystemIdentifier = observev1alpha1.TopologyRunning, "7300000000000000000"
	} else if len(seen.Members) > 0 {
		seen.Phase = observev1alpha1.TopologyNoLeader
	}
	for i := range seen.Members {
		if m := &seen.Members[i]; m.Name == seen.Leader {
			m.Role, m.State = observev1alpha1.RoleLeader, observev1alpha1.MemberRunning
		} else if w.following != nil && m.Role != "" {
			m.Role = observev1alpha1.RoleReplica // in a standby cluster nothing is committed
		} else if seen.Leader == "" && m.Ready {
			m.Ready, m.State = false, observev1alpha1.MemberStarting
		}
	}
}

// edit the spec.
func (w *world) edit(spec string) {
	xr := composetest.Object(maps.Clone(w.request.Composite.Map()))
	xr["spec"] = parse(w.t, spec)
	w.request.Composite = xr
}

// condition that a plan tells.
func condition(p *compose.Plan, t string) (status, reason, message string) {
	for _, c := range p.Conditions {
		if string(c.Type) == t {
			return string(c.Status), string(c.Reason), c.Message
		}
	}
	return "", "", ""
}

// revisions that StatefulSets ask for, by the letter of their member.
func (w *world) revisions() map[string]string {
	rs := map[string]string{}
	for name, o := range w.request.Observed {
		if letter, ok := strings.CutPrefix(name, names.MemberPrefix); ok {
			rs[letter] = compose.Text(o.Map(), "metadata", "annotations", names.AnnotationRevision)
		}
	}
	return rs
}

// told status of a plan.
func told(tb testing.TB, p *compose.Plan) v1alpha1.DatabaseStatus {
	tb.Helper()
	raw, err := json.Marshal(p.Status)
	if err != nil {
		tb.Fatal(err)
	}
	var st v1alpha1.DatabaseStatus
	if err := json.Unmarshal(raw, &st); err != nil {
		tb.Fatal(err)
	}
	return st
}

func parse(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		tb.Fatal(err)
	}
	return m
}

// encoded plan, the same for the same plan.
func encoded(tb testing.TB, p *compose.Plan) string {
	tb.Helper()
	raw, err := json.Marshal(p) //nolint:musttag // It is compared and never read.
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}
