// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/jobpod/jobtest"
	"github.com/capstan-dev/capstan/function/pipeline/names"
	"github.com/capstan-dev/capstan/function/scrape"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// A world is a cluster with one Pipeline: what Crossplane applies, and what Kubernetes and the provider make of it.
type world struct {
	*jobtest.Cluster

	t      testing.TB
	now    time.Time
	spec   map[string]any
	status map[string]any

	// reports of the provider by the name of the Job.
	reports map[string]map[string]any

	// podMonitors reports whether the cluster serves them, and scrapes are the namespaces whose pods scrape.
	podMonitors compose.Availability
	scrapes     []string

	// alone: no provider is installed that sends events about runs.
	alone bool

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
		t: tb, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), spec: composetest.Parse(tb, spec),
		Cluster: jobtest.NewCluster(names.JobPrefix), reports: map[string]map[string]any{},
	}
}

// edit the spec. A null removes a field.
func (w *world) edit(text string) {
	w.spec = maps.Clone(w.spec)
	for k, v := range composetest.Parse(w.t, text) {
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
	if o := w.Composed[names.History]; o != nil {
		var jobs []any
		for _, name := range slices.Sorted(maps.Keys(w.reports)) {
			j := maps.Clone(w.reports[name])
			j["name"] = name
			jobs = append(jobs, j)
		}
		w.Composed[names.History] = composetest.With(o, map[string]any{"status": map[string]any{"atProvider": map[string]any{"pipeline": "daily", "jobs": jobs}}})
	}
	events := compose.Available
	if w.alone {
		events = compose.Unavailable
	}
	r := compose.Request{
		Now: w.now, Composite: xr, Observed: w.Composed, Settings: settings(),
		Kinds: map[schema.GroupVersionKind]compose.Availability{
			observev1alpha1.JobHistoryGroupVersionKind: compose.Available, observev1alpha1.LineageGroupVersionKind: events,
			scrape.PodMonitorGVK: w.podMonitors,
		},
	}
	r.Settings.Algorithm.MetricsNamespaces = w.scrapes
	return composetest.Ask(w.t, Plan, r, w.Find)
}

// job of a name, also one that ends.
func (w *world) job(name string) compose.Object { return w.Jobs()[jobResource(name)] }

// jobs that exist, by their names.
func (w *world) jobs() []string {
	var all []string
	for _, resource := range slices.Sorted(maps.Keys(w.Jobs())) {
		all = append(all, strings.TrimPrefix(resource, names.JobPrefix))
	}
	return all
}

// pass is one pass of Crossplane. Where it crashes before it writes the status, only objects are applied.
func (w *world) pass(crash bool) {
	w.t.Helper()
	w.plan = w.ask()
	w.Compose(w.t, w.plan, w.now)
	if !crash {
		w.status = composetest.Status(w.t, w.plan)
	}
}

// settle passes until nothing changes.
func (w *world) settle() {
	w.t.Helper()
	composetest.Settle(w.t, func() any { return []any{w.status, w.Composed} }, func() { w.pass(false) })
}

// gone are the pods of Jobs that end.
func (w *world) gone() {
	for resource := range w.Ending {
		delete(w.reports, strings.TrimPrefix(resource, names.JobPrefix))
	}
	w.Gone()
}

// kubernetes changes a Job.
func (w *world) kubernetes(name, change string) {
	if o := w.Composed[jobResource(name)]; o != nil {
		w.Composed[jobResource(name)] = composetest.With(o, composetest.Parse(w.t, change))
	}
}

// report of the provider about a Job.
func (w *world) report(name, fields string) {
	m := composetest.Parse(w.t, fields)
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

// condition of the last pass.
func (w *world) condition(t xpv2.ConditionType) string {
	return composetest.Condition(w.plan, t)
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
