// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/pipeline/names"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// A world is a cluster with one Pipeline: what Crossplane applies, and what Kubernetes and the provider make of it.
type world struct {
	t      testing.TB
	now    time.Time
	spec   map[string]any
	status map[string]any
	server *composetest.Server

	// composed objects that Crossplane refers to, and Jobs that are no longer desired and end with their pods.
	composed map[string]compose.Object
	ending   map[string]compose.Object
	// lost objects exist, and Crossplane has no reference to them.
	lost map[string]compose.Object
	// reports of the provider by the name of the Job.
	reports map[string]map[string]any

	// plan of the last pass.
	plan *compose.Plan
}

const (
	byIDSpec   = `{image: registry.example.org/features:1, args: [features], run: {id: a}}`
	cronSpec   = `{image: registry.example.org/features:1, args: [features], schedule: {cron: "0 3 * * *", timeZone: Europe/Berlin}}`
	streamSpec = `{image: registry.example.org/features:1, args: [features]}`
	sparkSpec  = `{engine: Spark, image: registry.example.org/features:1, args: [features.py], run: {id: a}, spark: {executors: 4, conf: {spark.sql.shuffle.partitions: "64"}}}`
	flinkSpec  = `{engine: Flink, image: registry.example.org/clicks:1, flink: {mainClass: a, state: {claimName: a}}}`
	raising    = `{retry: {rules: [{when: {class: OutOfMemory}, do: RetryWithMemory, factor: 2, max: 1Gi}]}}`
)

func newWorld(tb testing.TB, spec string) *world {
	tb.Helper()
	return &world{
		t: tb, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), spec: parse(tb, spec), server: composetest.NewServer(),
		composed: map[string]compose.Object{}, ending: map[string]compose.Object{}, lost: map[string]compose.Object{}, reports: map[string]map[string]any{},
	}
}

func parse(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		tb.Fatal(err)
	}
	return m
}

// edit the spec. A null removes a field.
func (w *world) edit(text string) {
	w.spec = maps.Clone(w.spec)
	for k, v := range parse(w.t, text) {
		if v == nil {
			delete(w.spec, k)
			continue
		}
		w.spec[k] = v
	}
}

func settings() inputv1alpha1.Settings {
	cpu, memory := resource.MustParse("250m"), resource.MustParse("256Mi")
	return inputv1alpha1.Settings{
		Algorithm: inputv1alpha1.AlgorithmSettings{
			CPU: &cpu, Memory: &memory, GPU: inputv1alpha1.AlgorithmGPUSettings{CPU: &cpu, Memory: &memory},
			CompanionImage: "registry.example.org/companion:v0",
			Pod:            inputv1alpha1.AlgorithmPodSettings{Volumes: inputv1alpha1.UsualPodVolumes()},
		},
		Database: inputv1alpha1.DatabaseSettings{CrossplaneNamespace: "crossplane-system"},
	}
}

// ask for a plan without carrying it out. Crossplane calls again until it has what is required.
func (w *world) ask() *compose.Plan {
	w.t.Helper()
	xr := composetest.Object{
		"apiVersion": "capstan.dev/v1alpha1", "kind": "Pipeline",
		"metadata": map[string]any{"name": "daily", "namespace": "shop"}, "spec": w.spec,
	}
	if w.status != nil {
		xr["status"] = w.status
	}
	if o := w.composed[names.History]; o != nil {
		var jobs []any
		for _, name := range slices.Sorted(maps.Keys(w.reports)) {
			j := maps.Clone(w.reports[name])
			j["name"] = name
			jobs = append(jobs, j)
		}
		w.composed[names.History] = with(o, map[string]any{"status": map[string]any{"atProvider": map[string]any{"pipeline": "daily", "jobs": jobs}}})
	}
	r := compose.Request{
		Now: w.now, Composite: xr, Observed: w.composed, Settings: settings(), Sought: map[string]bool{}, Required: map[string]compose.Object{},
		Kinds: map[schema.GroupVersionKind]compose.Availability{observev1alpha1.JobHistoryGroupVersionKind: compose.Available},
	}
	var required map[string]compose.Requirement
	for range 5 {
		p, err := Plan(r)
		if err != nil {
			w.t.Fatal(err)
		}
		if reflect.DeepEqual(required, p.Requires) {
			return p
		}
		required, r.Sought, r.Required = p.Requires, map[string]bool{}, map[string]compose.Object{}
		for name, of := range required {
			r.Sought[name] = true
			if o := w.job(of.Name); o != nil {
				r.Required[name] = o
			}
		}
	}
	w.t.Fatal("what the function requires never stays the same, which Crossplane refuses")
	return nil
}

// job of a name, also one that ends.
func (w *world) job(name string) compose.Object {
	for _, all := range []map[string]compose.Object{w.composed, w.ending, w.lost} {
		if o := all[jobResource(name)]; o != nil {
			return o
		}
	}
	return nil
}

// jobs that exist, by their names.
func (w *world) jobs() []string {
	all := map[string]bool{}
	for _, from := range []map[string]compose.Object{w.composed, w.ending, w.lost} {
		for resource := range from {
			if name, ok := strings.CutPrefix(resource, names.JobPrefix); ok {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// pass is one pass of Crossplane. Where it crashes before it writes the status, only objects are applied.
func (w *world) pass(crash bool) {
	w.t.Helper()
	w.plan = w.ask()
	next, err := w.server.Compose(w.composed, w.plan)
	if err != nil {
		w.t.Fatal(err)
	}
	for resource, o := range w.composed {
		if w.plan.Objects[resource].Object == nil && strings.HasPrefix(resource, names.JobPrefix) {
			w.ending[resource] = with(o, parse(w.t, `{metadata: {deletionTimestamp: "2026-11-20T12:00:00Z"}}`))
		}
	}
	for resource, o := range next {
		switch {
		case w.composed[resource] != nil:
		case w.ending[resource] != nil: // An object of that name still exists.
			next[resource] = w.ending[resource]
			delete(w.ending, resource)
		case w.lost[resource] != nil:
			next[resource] = w.lost[resource]
			delete(w.lost, resource)
		default:
			next[resource] = with(o, parse(w.t, `{metadata: {creationTimestamp: "`+w.now.Format(time.RFC3339)+`"}}`))
		}
	}
	w.composed = next
	if crash {
		return
	}
	st, err := compose.AsMap(w.plan.Status)
	if err != nil {
		w.t.Fatal(err)
	}
	ready := map[bool][2]string{true: {"True", "Available"}, false: {"False", "Creating"}}[w.plan.Ready]
	conditions := []any{map[string]any{"type": "Ready", "status": ready[0], "reason": ready[1]}}
	for _, c := range w.plan.Conditions {
		conditions = append(conditions, map[string]any{"type": string(c.Type), "status": string(c.Status), "reason": string(c.Reason), "message": c.Message})
	}
	st["conditions"] = conditions
	w.status = st
}

// encoded as JSON, to compare.
func encoded(v any) string {
	raw, _ := json.Marshal(v) //nolint:errchkjson // It was decoded from JSON or YAML.
	return string(raw)
}

// settle passes until nothing changes.
func (w *world) settle() {
	w.t.Helper()
	for range 10 {
		before := encoded([]any{w.status, w.composed})
		w.pass(false)
		if after := encoded([]any{w.status, w.composed}); before == after {
			return
		}
	}
	w.t.Fatal("passes never settle")
}

// gone are the pods of Jobs that end.
func (w *world) gone() {
	for resource := range w.ending {
		delete(w.reports, strings.TrimPrefix(resource, names.JobPrefix))
	}
	clear(w.ending)
	for resource, o := range w.composed {
		if compose.TextOf(o, "metadata", "deletionTimestamp") != "" {
			delete(w.composed, resource)
		}
	}
}

// kubernetes changes a Job.
func (w *world) kubernetes(name, change string) {
	if o := w.composed[jobResource(name)]; o != nil {
		w.composed[jobResource(name)] = with(o, parse(w.t, change))
	}
}

// report of the provider about a Job.
func (w *world) report(name, fields string) {
	m := parse(w.t, fields)
	if m["created"] == nil {
		m["created"] = w.now.Format(time.RFC3339)
		if was := w.reports[name]; was != nil {
			m["created"] = was["created"]
		}
	}
	if m["phase"] == "Succeeded" || m["phase"] == "Failed" {
		m["ended"] = w.now.Format(time.RFC3339)
	}
	w.reports[name] = m
}

// Ends of Jobs.
const (
	complete = `{status: {conditions: [{type: Complete, status: "True"}]}}`
	gaveUp   = `{status: {conditions: [{type: Failed, status: "True", reason: PodFailurePolicy}]}}`
	late     = `{status: {conditions: [{type: Failed, status: "True", reason: DeadlineExceeded}]}}`

	failedUser   = `{phase: Failed, attempts: 3, failure: {class: User, action: Fail, exitCode: 2, at: "2026-11-20T12:00:00Z", message: "no such table"}}`
	failedMemory = `{phase: Failed, attempts: 1, failure: {class: OutOfMemory, exitCode: 137, at: "2026-11-20T12:00:00Z", message: "was killed for its memory"}}`
	failedKilled = `{phase: Failed, attempts: 1, failure: {class: Infrastructure, exitCode: 137, at: "2026-11-20T12:00:00Z", message: "the pod was killed from outside"}}`
)

// with changes of an object.
func with(o compose.Object, changes ...map[string]any) compose.Object {
	out := composetest.Object{}
	_ = json.Unmarshal([]byte(encoded(o.Map())), &out)
	for _, change := range changes {
		overlay(out, change)
	}
	return out
}

func overlay(into, change map[string]any) {
	for k, v := range change {
		below, isMap := v.(map[string]any)
		if at, ok := into[k].(map[string]any); ok && isMap && k != "atProvider" {
			overlay(at, below)
			continue
		}
		into[k] = v
	}
}

// condition of the last pass.
func (w *world) condition(t xpv2.ConditionType) string {
	for _, c := range w.plan.Conditions {
		if c.Type == t {
			return string(c.Status) + "/" + string(c.Reason)
		}
	}
	return ""
}

func (w *world) message(t xpv2.ConditionType) string {
	for _, c := range w.plan.Conditions {
		if c.Type == t {
			return c.Message
		}
	}
	return ""
}

func (w *world) phase() v1alpha1.PipelinePhase {
	return v1alpha1.PipelinePhase(compose.Text(w.status, "phase"))
}
