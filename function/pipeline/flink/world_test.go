// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	contract "github.com/capstan-dev/capstan/apis/flink"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/definition"
	"github.com/capstan-dev/capstan/function/pipeline/flink/names"
	"github.com/capstan-dev/capstan/function/scrape"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// A world is a cluster with one stream: what Crossplane applies, and what Kubernetes, the companions and the provider make of it. Its state
// folder has what companions would write.
type world struct {
	t        testing.TB
	now      time.Time
	spec     map[string]any
	status   map[string]any
	server   *composetest.Server
	composed map[string]compose.Object
	plan     *compose.Plan

	// podMonitors reports whether the cluster serves them.
	podMonitors compose.Availability

	// broken images complete no checkpoint.
	broken map[string]bool
	// folder of state.
	folder []saving
	// runs is the plan of the JobManager that runs, or nil; image is what it runs, counted what it counted so far.
	runs    *contract.Plan
	image   string
	counted int
	// worked are revisions that completed a checkpoint.
	worked map[int]bool
	report *observev1alpha1.FlinkJobObservation
}

// A saving is a state that is complete.
type saving struct {
	revision int
	id       int64
	counted  int
}

const usualSpec = `{engine: Flink, image: good-1, args: [job], flink: {mainClass: org.example.Clicks, state: {claim: {resources: {requests: {storage: 1Gi}}}}}}`

func newWorld(tb testing.TB, spec string) *world {
	tb.Helper()
	w := &world{
		t: tb, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), spec: map[string]any{}, server: composetest.NewServer(),
		composed: map[string]compose.Object{}, broken: map[string]bool{}, worked: map[int]bool{},
	}
	w.edit(spec)
	return w
}

func (w *world) edit(text string) {
	w.t.Helper()
	maps.Copy(w.spec, composetest.Parse(w.t, text))
}

func settings() inputv1alpha1.Settings {
	cpu, memory := resource.MustParse("250m"), resource.MustParse("256Mi")
	return inputv1alpha1.Settings{
		Algorithm: inputv1alpha1.AlgorithmSettings{CPU: &cpu, Memory: &memory, CompanionImage: "registry.example.org/companion:v0", MetricsNamespaces: []string{"monitoring"}},
		Database:  inputv1alpha1.DatabaseSettings{CrossplaneNamespace: "crossplane-system"},
	}
}

func (w *world) ask() *compose.Plan {
	w.t.Helper()
	xr := composetest.Object{
		"apiVersion": "capstan.dev/v1alpha1", "kind": "Pipeline",
		"metadata": map[string]any{"name": "clicks", "namespace": "shop"}, "spec": w.spec,
	}
	if w.status != nil {
		xr["status"] = w.status
	}
	spec, problems, _ := definition.Decode[v1alpha1.PipelineSpec](theDefinition(), "clicks", w.spec)
	plan, err := Plan(compose.Request{
		Now: w.now, Composite: xr, Observed: w.composed, Settings: settings(),
		Kinds: map[schema.GroupVersionKind]compose.Availability{
			observev1alpha1.FlinkJobGroupVersionKind: compose.Available, observev1alpha1.LineageGroupVersionKind: compose.Available,
			scrape.PodMonitorGVK: w.podMonitors,
		},
	}, spec, slices.Concat([]check.Problem{}, problems))
	if err != nil {
		w.t.Fatal(err)
	}
	return plan
}

// pass of Crossplane, and what the cluster makes of it. Where Crossplane crashes, the status is not written.
func (w *world) pass(crash bool) {
	w.t.Helper()
	w.observe()
	w.plan = w.ask()
	next, err := w.server.Compose(w.composed, w.plan)
	if err != nil {
		w.t.Fatal(err)
	}
	w.composed = next
	if !crash {
		w.status = composetest.Status(w.t, w.plan)
	}
	w.cluster()
	w.observe()
}

// observe the stream, as the provider does.
func (w *world) observe() {
	if o := w.composed[names.Job]; o != nil && w.report != nil {
		w.composed[names.Job] = with(w.t, o, map[string]any{"status": map[string]any{"atProvider": w.report}})
	}
}

// cluster starts and stops the JobManager as its StatefulSet says.
func (w *world) cluster() {
	o := w.composed[names.JobManager]
	if o == nil {
		return
	}
	var desired *contract.Plan
	image := ""
	if compose.NumberOf(o, 0, "spec", "replicas") > 0 {
		var p contract.Plan
		template := compose.Map(o.Map(), "spec", "template")
		if err := json.Unmarshal([]byte(compose.Text(template, "metadata", "annotations", names.AnnotationPlan)), &p); err != nil {
			w.t.Fatal(err)
		}
		desired = &p
		image, _ = compose.List(template, "spec", "containers")[0].(map[string]any)["image"].(string)
	}
	if w.runs != nil && (desired == nil || desired.Revision != w.runs.Revision) {
		w.save() // a savepoint
		w.runs, w.report.Phase = nil, string(contract.PhaseStopped)
	}
	if w.runs == nil && desired != nil {
		w.start(desired, image)
	}
}

// start a JobManager from the newest state that is not ignored, as the companion does.
func (w *world) start(p *contract.Plan, image string) {
	w.runs, w.image, w.counted = p, image, 0
	r := &observev1alpha1.FlinkJobObservation{Revision: int32(p.Revision), Phase: string(contract.PhaseStarting)}
	if s := newest(w.folder, p.Ignored); s != nil {
		w.counted = s.counted
		r.From = &observev1alpha1.FlinkJobState{Path: "/state", ID: s.id, At: metav1.NewTime(w.now)}
	}
	w.report = r
}

func newest(folder []saving, ignored []int) *saving {
	var found *saving
	for _, s := range folder {
		if !slices.Contains(ignored, s.revision) && (found == nil || s.revision > found.revision || s.revision == found.revision && s.id > found.id) {
			found = &s
		}
	}
	return found
}

// save the state of the JobManager that runs, if its job works.
func (w *world) save() bool {
	if w.runs == nil || w.broken[w.image] {
		return false
	}
	w.folder = append(w.folder, saving{revision: w.runs.Revision, id: int64(len(w.folder) + 1), counted: w.counted})
	return true
}

// run for some time: count, and take a checkpoint.
func (w *world) run(d time.Duration) {
	w.now = w.now.Add(d)
	if w.runs == nil {
		return
	}
	if w.broken[w.image] {
		w.report.Phase, w.report.Restarts = string(contract.PhaseRestarting), w.report.Restarts+1
		w.report.Fault = &observev1alpha1.FlinkJobFault{At: metav1.NewTime(w.now), Message: "java.lang.IllegalStateException: wrong"}
		return
	}
	w.counted++
	w.worked[w.runs.Revision] = w.save()
	w.report.Phase, w.report.Parallelism, w.report.TaskManagers = string(contract.PhaseRunning), 1, 1
	w.report.Checkpoint = &observev1alpha1.FlinkJobCheckpoint{ID: int64(len(w.folder)), At: metav1.NewTime(w.now), Bytes: 10, Millis: 20}
}

// settle passes until nothing changes.
func (w *world) settle() {
	w.t.Helper()
	composetest.Settle(w.t, func() any { return []any{w.status, w.composed} }, func() { w.pass(false) })
}

func with(tb testing.TB, o compose.Object, more map[string]any) compose.Object {
	tb.Helper()
	m := map[string]any{}
	o = composetest.Object(maps.Clone(o.Map()))
	delete(o.Map(), "status")
	for _, part := range []any{o.Map(), more} {
		raw, err := json.Marshal(part)
		if err != nil {
			tb.Fatal(err)
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			tb.Fatal(err)
		}
	}
	return composetest.Object(m)
}

// condition of the last plan, as TYPE=STATUS/REASON.
func (w *world) condition(of string) (is, message string) {
	for _, c := range w.plan.Conditions {
		if string(c.Type) == of {
			return string(c.Status) + "/" + string(c.Reason), c.Message
		}
	}
	return "", ""
}

func (w *world) stream() v1alpha1.PipelineStream {
	st := w.read()
	if st.Stream == nil {
		return v1alpha1.PipelineStream{}
	}
	return *st.Stream
}

// read the status that the last plan has.
func (w *world) read() v1alpha1.PipelineStatus {
	w.t.Helper()
	raw, err := json.Marshal(w.plan.Status)
	if err != nil {
		w.t.Fatal(err)
	}
	var st v1alpha1.PipelineStatus
	if err := json.Unmarshal(raw, &st); err != nil {
		w.t.Fatal(err)
	}
	return st
}

func (w *world) phase() v1alpha1.PipelinePhase {
	return w.read().Phase
}

// has reports whether an object is desired.
func (w *world) has(resource string) bool { return w.plan.Objects[resource].Object != nil }

func contains(s string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
}
