// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/switchover"
	"github.com/capstan-dev/capstan/function/release"
)

// A fleet is the members of one Database as they would be on a cluster, driven by what is planned for them, by faults and by
// people.
type fleet struct {
	*world

	kind kind

	r       *rand.Rand
	members map[string]*tenant
	leader  string
	last    string

	timeline      int64
	ids           map[string]int
	requestedMove []observev1alpha1.SwitchoverOutcome

	// wal reports that the spec has a volume for the write-ahead log, which stays; claimed are members that have its claim.
	wal     bool
	claimed map[string]bool

	// blind reports that nobody looks, paused that failover is off, for so many steps.
	blind, paused int

	// What the spec says of maintenance, in a form of its own.
	windows        bool
	begins         time.Time
	manual         string
	freeze         time.Time
	spec           int
	replicas       int
	sleeps         bool
	revisionInputs string
	works          works

	log []string
}

// A kind of Database: engine and version, its parameters that need a restart and none, and whether it has hooks.
type kind struct {
	spec, engine, restarts, reloads, later string

	hooks, wal bool
}

// kinds of Databases that the rules of change hold for.
func kinds() map[string]kind {
	return map[string]kind{
		"postgres": {spec: basic, engine: `engine: postgres, version: "17"`, restarts: "max_connections", reloads: "work_mem: 8MB", later: "work_mem: 64MB", hooks: true, wal: true},
		"mysql":    {spec: group, engine: `engine: mysql, version: "9.7"`, restarts: "max_connections", reloads: "sort_buffer_size: 8M", later: "sort_buffer_size: 64M"},
	}
}

// A tenant is one member.
type tenant struct {
	template string

	// down for so many steps; by us, or by a fault; blocked for good.
	down     int
	ours     bool
	blocked  bool
	behind   int
	cordoned bool
	stopped  bool
}

func (m *tenant) serves() bool { return !m.stopped && m.down == 0 && !m.blocked }

func (m *tenant) well() bool { return m.serves() && m.behind == 0 }

func (f *fleet) sayf(format string, args ...any) {
	f.log = append(f.log, f.request.Now.Format("Mon 15:04 ")+fmt.Sprintf(format, args...))
}

func (f *fleet) failf(format string, args ...any) {
	f.t.Helper()
	f.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(f.log[max(0, len(f.log)-60):], "\n"))
}

// asked spec, of those that need a restart or none.
func (f *fleet) asked() string {
	fields := []string{
		"", `, config: {` + f.kind.restarts + `: "200"}`, `, config: {` + f.kind.restarts + `: "250", ` + f.kind.reloads + `}`, `, config: {` + f.kind.later + `}`,
		`, resources: {memory: 2Gi}`, `, resources: {cpu: "64"}`,
	}[f.spec]
	maintenance := []string{}
	if f.windows {
		maintenance = append(maintenance, fmt.Sprintf(`windows: [{start: %q, duration: 30m}]`, f.begins.Format("15:04")))
	}
	if f.manual != "" {
		maintenance = append(maintenance, "approval: Manual", "approve: "+f.manual)
	}
	if !f.freeze.IsZero() {
		maintenance = append(maintenance, fmt.Sprintf("freeze: {until: %q}", f.freeze.Format(time.RFC3339)))
	}
	if f.works.before+f.works.after > 0 {
		maintenance = append(maintenance, f.works.asked())
	}
	if f.wal {
		fields += ", walStorage: 20Gi"
	}
	if f.revisionInputs != "" {
		fields += fmt.Sprintf(", switchover: {id: %q}", f.revisionInputs)
	}
	return fmt.Sprintf(`{%s, replicas: %d, storage: 50Gi%s, hibernated: %t, maintenance: {%s}}`,
		f.kind.engine, f.replicas, fields, f.sleeps, strings.Join(maintenance, ", "))
}

// mayTouch tells, by other means than the planner, whether a member that serves may be touched now.
func (f *fleet) mayTouch(hash string) bool {
	since := f.request.Now.Sub(f.begins) % (24 * time.Hour)
	return !f.request.Now.Before(f.freeze) && (!f.windows || since >= 0 && since <= 20*time.Minute) && (f.manual == "" || f.manual == hash)
}

// lead goes to whoever is best, after a loss or a handover.
func (f *fleet) lead() {
	if m := f.members[f.leader]; m != nil && m.serves() {
		return
	}
	if f.leader != "" {
		f.last = f.leader
	}
	f.leader = ""
	for _, letter := range compose.SortedKeys(f.members) {
		m := f.members[letter]
		// After all were stopped only the one that led last has every commit.
		if (m.well() && f.paused == 0) && (letter == f.last || f.members[f.last] == nil || !f.members[f.last].stopped && f.anyServed(letter)) {
			f.leader, f.timeline = letter, f.timeline+1
			f.sayf("%s leads", letter)
			return
		}
	}
}

// anyServed: a follower that ran beside the leader may follow it.
func (f *fleet) anyServed(letter string) bool { return f.members[letter].template != "" }

// step of Crossplane, controllers and time.
func (f *fleet) step() *compose.Plan {
	f.t.Helper()
	p := f.plan()
	change := told(f.t, p).Change
	hash := ""
	if before := compose.Text(f.request.Composite.Map(), "status", "change", "hash"); before != "" {
		hash = before
	}
	if change != nil {
		hash = change.Hash
	}
	f.carryOut(p, hash)
	f.tell()
	return p
}

// carryOut a plan, and hold it to what must never happen.
func (f *fleet) carryOut(p *compose.Plan, hash string) {
	next := map[string]compose.Object{}
	for name, d := range p.Objects {
		o, err := composetest.Decode(d.Object)
		if err != nil {
			f.t.Fatal(err)
		}
		next[name] = o
	}

	// Of those that are touched the ones that served.
	var touched, repositoryAddress []string
	for _, letter := range names.Letters {
		name := names.MemberPrefix + letter
		was, is := f.request.Observed[name], next[name]
		m := f.members[letter]
		switch {
		case was == nil && is != nil:
			if f.sleeps {
				f.failf("%s is made while the Database is hibernated", letter)
			}
			f.members[letter] = &tenant{template: template(f.t, is), down: 1 + f.r.IntN(2)}
			f.sayf("%s is made", letter)
		case was != nil && is == nil:
			f.sayf("%s is removed", letter)
			f.held(letter, hash, "removed")
			f.hooked(hash)
			repositoryAddress = append(repositoryAddress, letter)
			touched = append(touched, letter)
			delete(f.members, letter)
		case is != nil && compose.Number(is.Map(), 1, "spec", "replicas") == 0 && !m.stopped:
			f.stop(letter)
		case is != nil && compose.Number(is.Map(), 1, "spec", "replicas") == 1 && m.stopped:
			f.start(letter)
		case is != nil && template(f.t, is) != m.template:
			f.sayf("%s is restarted (serves %t, leads %t)", letter, m.serves(), letter == f.leader)
			if !m.blocked {
				f.held(letter, hash, "restarted")
				f.hooked(hash)
				repositoryAddress = append(repositoryAddress, letter)
			}
			touched = append(touched, letter)
			if facts.Entry(compose.List(is.Map(), "spec", "template", "spec", "volumes"), names.VolumeWAL) != nil && !f.claimed[letter] {
				f.failf("%s gets a volume for its log that is not there", letter)
			}
			m.template, m.blocked = template(f.t, is), f.spec == 5
			m.down, m.ours = 1+f.r.IntN(2), true
		}
	}
	if len(touched) > 1 {
		f.failf("%v are touched at once", touched)
	}
	f.launch(next, hash, touched)
	f.request.Observed = next
	f.sourceDatabase(repositoryAddress)
	f.lead()
	f.status(p)
}

// held reports whether a member that is touched may be.
func (f *fleet) held(letter, hash, how string) {
	f.t.Helper()
	if !f.mayTouch(hash) {
		f.failf("%s is %s outside of a window, in a freeze, or without an approval: %s", letter, how, f.asked())
	}
	for _, other := range compose.SortedKeys(f.members) {
		if m := f.members[other]; other != letter && m.ours && m.down > 0 {
			f.failf("%s is %s while %s is down by our doing", letter, how, other)
		}
	}
}

// copies that remain after members were touched.
func (f *fleet) sourceDatabase(touched []string) {
	if len(touched) == 0 || len(f.members) < 2 {
		return
	}
	if f.members[touched[0]] != nil && f.members[touched[0]].blocked {
		return
	}
	if !slices.ContainsFunc(compose.SortedKeys(f.members), func(l string) bool { return f.members[l].serves() }) {
		f.failf("after %v nobody serves", touched)
	}
}

func (f *fleet) stop(letter string) {
	f.sayf("%s is stopped (leads %t)", letter, letter == f.leader)
	if f.request.Now.Before(f.freeze) {
		f.failf("%s is stopped in a freeze", letter)
	}
	if letter == f.leader {
		for _, other := range compose.SortedKeys(f.members) {
			if other != letter && !f.members[other].stopped {
				f.failf("the leader %s is stopped before %s", letter, other)
			}
		}
		f.last, f.leader = letter, ""
	} else if f.leader == "" {
		f.failf("%s is stopped while nobody leads", letter)
	}
	f.members[letter].stopped, f.members[letter].down, f.members[letter].behind = true, 0, 0
}

func (f *fleet) start(letter string) {
	f.sayf("%s is started", letter)
	if m := f.members[f.last]; letter != f.last && m != nil && m.stopped {
		f.failf("%s is started before %s, which led last", letter, f.last)
	}
	f.members[letter].stopped, f.members[letter].down = false, 1
}

// status of the Database as the plan tells it.
func (f *fleet) status(p *compose.Plan) {
	status, err := compose.AsMap(p.Status)
	if err != nil {
		f.t.Fatal(err)
	}
	conditions := []any{}
	for _, c := range p.Conditions {
		conditions = append(conditions, map[string]any{"type": string(c.Type), "status": string(c.Status), "reason": string(c.Reason), "message": c.Message})
	}
	ready := map[bool]string{true: "True", false: "False"}[p.Ready]
	reason := map[bool]string{true: "Available", false: "Creating"}[p.Ready]
	status["conditions"] = append(conditions, map[string]any{"type": "Ready", "status": ready, "reason": reason})
	f.request.Composite.Map()["status"] = status
}

// tell what provider and controllers see.
func (f *fleet) tell() {
	ready := []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Synced", "status": "True"}}
	seen := observev1alpha1.TopologyObservation{
		Phase: observev1alpha1.TopologyDegraded, Zones: []string{"a", "b", "c"}, Nodes: 3, Timeline: f.timeline, SystemIdentifier: "7", Paused: f.paused > 0,
	}
	for _, letter := range names.Letters {
		m := f.members[letter]
		if m == nil {
			continue
		}
		o := f.request.Observed[names.MemberPrefix+letter].Map()
		o["status"] = map[string]any{"updateRevision": m.template, "readyReplicas": 1.0, "replicas": map[bool]float64{false: 1}[m.stopped]}
		t := observev1alpha1.TopologyMember{Name: "orders-db-" + letter, Revision: m.template, Disk: "Ok", VolumeSize: "50Gi", Version: "17.6"}
		switch {
		case m.stopped:
			t.State = observev1alpha1.MemberStopped
		case m.down > 0:
			t.State, t.Node = observev1alpha1.MemberStarting, "node-"+letter
		case m.blocked:
			t.State, t.Reason, t.Message = observev1alpha1.MemberFailed, "Unschedulable", "no room"
		case letter == f.leader:
			t.State, t.Role, t.Ready, t.Node = observev1alpha1.MemberRunning, observev1alpha1.RoleLeader, true, "node-"+letter
			seen.Leader = t.Name
		default:
			t.State, t.Role, t.Ready, t.Node, t.Lag = observev1alpha1.MemberStreaming, observev1alpha1.RoleSyncStandby, true, "node-"+letter, observev1alpha1.LagInSync
			if m.behind > 0 {
				t.Lag = observev1alpha1.LagBehind
			}
			if f.leader == "" {
				t.State = observev1alpha1.MemberStarting
			}
		}
		t.Cordoned = m.cordoned && t.Node != ""
		seen.Members = append(seen.Members, t)
		seen.Volumes = append(seen.Volumes, t.Name)
	}
	if seen.Leader == "" {
		seen.Phase = observev1alpha1.TopologyNoLeader
	}
	f.report()
	for _, o := range f.request.Observed {
		switch o.Map()["kind"] {
		case "Certificate", "Issuer":
			o.Map()["status"] = map[string]any{"conditions": ready}
		case "Credential":
			o.Map()["status"] = map[string]any{"conditions": ready, "atProvider": map[string]any{"identity": identity}}
		case "Topology":
			f.move(o.Map())
			seen.Switchovers = f.requestedMove
			at, err := compose.AsMap(seen)
			if err != nil {
				f.t.Fatal(err)
			}
			o.Map()["status"] = map[string]any{"conditions": ready, "atProvider": at}
			if f.blind > 0 {
				o.Map()["status"] = map[string]any{}
			}
		case "Access":
			o.Map()["status"] = map[string]any{"conditions": ready, "atProvider": map[string]any{"logins": []any{"app"}}}
		case "VolumeClaim":
			f.claim(o.Map())
		}
	}
}

// claim volumes for write-ahead logs, each after a while.
func (f *fleet) claim(o map[string]any) {
	if compose.Map(o, "spec", "forProvider", "wal") == nil {
		return
	}
	at := storagev1alpha1.VolumeClaimObservation{State: storagev1alpha1.VolumeReady}
	for _, v := range compose.List(o, "spec", "forProvider", "members") {
		name := v.(string)
		letter := strings.TrimPrefix(name, "orders-db-")
		f.claimed[letter] = f.claimed[letter] || f.r.IntN(3) == 0
		at.Volumes = append(at.Volumes, storagev1alpha1.VolumeObservation{Name: "data-" + name + "-0", Member: name, State: storagev1alpha1.VolumeReady, Granted: "50Gi"})
		if f.claimed[letter] {
			at.Volumes = append(at.Volumes, storagev1alpha1.VolumeObservation{
				Name: "wal-" + name + "-0", Member: name, Holds: storagev1alpha1.HoldsWAL, State: storagev1alpha1.VolumePending,
			})
		}
	}
	m, err := compose.AsMap(at)
	if err != nil {
		f.t.Fatal(err)
	}
	o["status"] = map[string]any{"atProvider": m}
}

// move the lead, once for each id, as the provider and Patroni do.
func (f *fleet) move(topology map[string]any) {
	w := compose.Map(topology, "spec", "forProvider", "switchover")
	id, to := compose.Text(w, "id"), strings.TrimPrefix(compose.Text(w, "to"), "orders-db-")
	if id == "" || f.ids[id] > 0 || f.blind > 0 || f.leader == "" {
		return
	}
	f.ids[id]++
	o := observev1alpha1.SwitchoverOutcome{ID: id, From: compose.Text(w, "from"), To: compose.Text(w, "to"), State: observev1alpha1.SwitchoverFailed}
	m := f.members[to]
	if "orders-db-"+f.leader == o.From && m != nil && m.well() && f.r.IntN(6) > 0 {
		f.leader, f.timeline, o.State = to, f.timeline+1, observev1alpha1.SwitchoverDone
	}
	f.sayf("switchover %s to %s: %s", id, to, o.State)
	if strings.HasPrefix(id, switchover.OwnMoves) && m != nil && m.cordoned {
		f.failf("the lead is moved to a node that is being emptied")
	}
	f.requestedMove = append(f.requestedMove[max(0, len(f.requestedMove)-7):], o)
}

// trouble for the members, and other wishes of people.
func (f *fleet) trouble() {
	pick := func() *tenant {
		all := compose.SortedKeys(f.members)
		if len(all) == 0 {
			return &tenant{}
		}
		return f.members[all[f.r.IntN(len(all))]]
	}
	switch f.r.IntN(26) {
	case 0:
		if m := pick(); !m.stopped {
			m.down, m.ours = 1+f.r.IntN(4), false
			f.sayf("a member crashes")
		}
	case 1:
		pick().behind = 1 + f.r.IntN(5)
	case 2:
		m := pick()
		m.cordoned = !m.cordoned
		f.sayf("a node is cordoned or not")
	case 3:
		f.blind = 1 + f.r.IntN(4)
	case 4:
		f.paused = 1 + f.r.IntN(3)
	case 5, 6, 7:
		f.spec = f.r.IntN(6)
		f.edited()
	case 8:
		f.replicas = 2 + f.r.IntN(3)
		f.edited()
	case 9, 17:
		f.windows = f.r.IntN(4) > 0
		f.begins = f.request.Now.Truncate(time.Minute).Add(time.Duration(f.r.IntN(60)-40) * time.Minute)
		f.edited()
	case 10:
		f.freeze = f.request.Now.Add(time.Duration(f.r.IntN(90)) * time.Minute).Truncate(time.Second)
		f.edited()
	case 11:
		f.manual = []string{"", "nothing", "nothing"}[f.r.IntN(3)]
		f.edited()
	case 12, 13:
		if h := compose.Text(f.request.Composite.Map(), "status", "change", "hash"); h != "" && f.manual != "" {
			f.manual = h
			f.edited()
		}
	case 14:
		f.sleeps = !f.sleeps
		f.edited()
	case 15:
		f.revisionInputs = fmt.Sprintf("w%d", f.r.IntN(6))
		f.edited()
	case 18:
		// A change that comes when a window is nearly over.
		f.windows, f.manual, f.freeze = true, "", time.Time{}
		f.begins = f.request.Now.Truncate(time.Minute).Add(-time.Duration(20+f.r.IntN(10)) * time.Minute)
		f.spec = f.r.IntN(5)
		f.edited()
	case 19, 20:
		f.works.before, f.works.after, f.works.stops = f.r.IntN(3), f.r.IntN(3), f.r.IntN(2) > 0
		if !f.kind.hooks {
			f.works.before, f.works.after = 0, 0
		}
		f.works.version++
		f.edited()
	case 21, 22:
		f.rerun()
	case 23:
		if f.kind.wal && !f.wal {
			f.wal = true
			f.edited()
		}
	case 16:
		f.planner = Planner(release.Release{Version: []string{"v1", "v2"}[f.r.IntN(2)]})
	}
}

func (f *fleet) edited() {
	f.sayf("edit: %s", f.asked())
	f.edit(f.asked())
}

// pass time.
func (f *fleet) passTime(d time.Duration) {
	f.request.Now = f.request.Now.Add(d)
	f.blind, f.paused = max(0, f.blind-1), max(0, f.paused-1)
	f.toil()
	if f.r.IntN(4) == 0 {
		f.tidy()
	}
	for _, m := range f.members {
		m.down, m.behind = max(0, m.down-1), max(0, m.behind-1)
		if m.down == 0 {
			m.ours = false
		}
	}
	f.lead()
	f.tell()
}

func template(tb testing.TB, o compose.Object) string {
	tb.Helper()
	return encoding.Hash(compose.Map(o.Map(), "spec", "template"))
}

// TestChangeProperties drives members through faults and edits, at any time, and holds every plan to the rules of change: never
// more than one member down by our doing, never the last copy that serves, never anything outside of a window, without an
// approval or in a freeze, the leader stopped last and started first, each switchover once; and once faults stop, always an end.
func TestChangeProperties(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) { changes(t, kind) })
	}
}

func changes(t *testing.T, kind kind) {
	t.Helper()
	for seed := range uint64(seeds) {
		f := &fleet{
			kind: kind, world: running(t, kind.spec), r: rand.New(rand.NewPCG(seed, 7)), members: map[string]*tenant{}, leader: "a",
			timeline: 1, ids: map[string]int{}, replicas: 3, works: newWorks(), claimed: map[string]bool{},
		}
		f.log = append(f.log, fmt.Sprintf("seed %d", seed))
		for _, letter := range []string{"a", "b", "c"} {
			o := f.request.Observed[names.MemberPrefix+letter]
			f.members[letter] = &tenant{template: template(t, o)}
		}

		// Without an account of who wrote what all is kept, and a pass is quick.
		for name, o := range f.request.Observed {
			delete(o.Map()["metadata"].(map[string]any), "managedFields")
			f.request.Observed[name] = o
		}
		f.tell()
		for range 60 {
			f.trouble()
			f.step()
			f.passTime(time.Duration(1+f.r.IntN(5)) * time.Minute)
		}
		f.ends()
	}
}

// seeds of a run. A run of more found nothing else.
const seeds = 12

// ends what was begun, by nothing but looks when they are due.
func (f *fleet) ends() {
	f.t.Helper()
	for _, m := range f.members {
		m.cordoned = false
	}

	// What nobody could run is corrected.
	f.spec, f.sleeps, f.manual, f.works.smooth = f.r.IntN(5), false, "", true
	f.edited()
	for range 600 {
		f.rerun()
		p := f.step()
		st := told(f.t, p)
		if status, _, _ := condition(p, "Updated"); status == "True" && st.Change == nil && len(st.Hooks) == 0 && p.Ready && len(f.members) == f.replicas {
			return
		}

		// Members take their time, and wake the Database up; else only its own clock does.
		busy := slices.ContainsFunc(compose.SortedKeys(f.members), func(l string) bool { return f.members[l].down > 0 || f.members[l].behind > 0 }) ||
			f.blind > 0 || f.paused > 0 || slices.ContainsFunc(compose.SortedKeys(f.works.jobs), func(j string) bool { return f.works.jobs[j].left > 0 })
		if busy || p.TTL <= 20*time.Second {
			f.passTime(time.Minute)
		} else {
			f.passTime(p.TTL)
		}
	}
	p := f.plan()
	_, reason, message := condition(p, "Updated")
	f.failf("it does not end: %s: %s; %+v", reason, message, told(f.t, p).Change)
}
