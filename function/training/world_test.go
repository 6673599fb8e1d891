// SPDX-License-Identifier: Apache-2.0

package training

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/training/names"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// A world is a cluster with one Training: what Crossplane applies, and what Kubernetes and the provider make of it.
type world struct {
	t      testing.TB
	now    time.Time
	spec   map[string]any
	status map[string]any
	server *composetest.Server
	// settings of the platform.
	settings inputv1alpha1.Settings

	// composed objects that Crossplane refers to, and Jobs that are no longer desired and end with their pods.
	composed map[string]compose.Object
	ending   map[string]compose.Object
	// lost objects exist, and Crossplane has no reference to them.
	lost map[string]compose.Object

	// plan of the last pass.
	plan *compose.Plan
}

const usualSpec = `{image: registry.example.org/train:1, args: [train], workers: 4, checkpoint: {claim: {resources: {requests: {storage: 1Gi}}}}}`

func newWorld(tb testing.TB, spec string) *world {
	tb.Helper()
	return &world{
		t: tb, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), spec: parse(tb, spec), server: composetest.NewServer(), settings: settings(),
		composed: map[string]compose.Object{}, ending: map[string]compose.Object{}, lost: map[string]compose.Object{},
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

// edit the spec.
func (w *world) edit(text string) { maps.Copy(w.spec, parse(w.t, text)) }

func settings() inputv1alpha1.Settings {
	cpu, memory := resource.MustParse("250m"), resource.MustParse("256Mi")
	return inputv1alpha1.Settings{
		Algorithm: inputv1alpha1.AlgorithmSettings{
			CPU: &cpu, Memory: &memory, GPU: inputv1alpha1.AlgorithmGPUSettings{CPU: &cpu, Memory: &memory},
			CompanionImage: "registry.example.org/companion:v0", MetricsNamespaces: []string{"monitoring"},
			MLflow: &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "mlflow"},
			Pod:    inputv1alpha1.AlgorithmPodSettings{Volumes: inputv1alpha1.UsualPodVolumes()},
		},
		Database: inputv1alpha1.DatabaseSettings{CrossplaneNamespace: "crossplane-system"},
	}
}

// ask for a plan without carrying it out. Crossplane calls again until it has what is required.
func (w *world) ask() *compose.Plan {
	w.t.Helper()
	xr := composetest.Object{
		"apiVersion": "capstan.dev/v1alpha1", "kind": "Training",
		"metadata": map[string]any{"name": "fraud", "namespace": "payments"}, "spec": w.spec,
	}
	if w.status != nil {
		xr["status"] = w.status
	}
	r := compose.Request{
		Now: w.now, Composite: xr, Observed: w.composed, Settings: w.settings, Sought: map[string]bool{}, Required: map[string]compose.Object{},
		Kinds: map[schema.GroupVersionKind]compose.Availability{
			observev1alpha1.RunGroupVersionKind: compose.Available, registryv1alpha1.ModelVersionGroupVersionKind: compose.Available,
			registryv1alpha1.ModelAliasGroupVersionKind: compose.Available,
		},
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
		for resource, o := range all {
			if strings.HasPrefix(resource, names.JobPrefix) && compose.TextOf(o, "metadata", "name") == name {
				return o
			}
		}
	}
	return nil
}

// jobs that exist, by their names within the composition.
func (w *world) jobs() map[string]compose.Object {
	all := map[string]compose.Object{}
	for _, from := range []map[string]compose.Object{w.composed, w.ending} {
		for resource, o := range from {
			if strings.HasPrefix(resource, names.JobPrefix) {
				all[resource] = o
			}
		}
	}
	return all
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
			w.ending[resource] = with(o, `{metadata: {deletionTimestamp: "2026-11-20T12:00:00Z"}}`)
		}
	}
	for resource, o := range next {
		if w.composed[resource] == nil && w.ending[resource] != nil {
			// An object of that name still exists.
			next[resource] = w.ending[resource]
			delete(w.ending, resource)
			continue
		}
		if w.composed[resource] == nil {
			next[resource] = with(o, `{metadata: {creationTimestamp: "`+w.now.Format(time.RFC3339)+`"}}`)
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
	conditions := []any{map[string]any{"type": "Ready", "status": map[bool]string{true: "True", false: "False"}[w.plan.Ready], "reason": map[bool]string{true: "Available", false: "Creating"}[w.plan.Ready]}}
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
	clear(w.ending)
	for resource, o := range w.composed {
		if compose.TextOf(o, "metadata", "deletionTimestamp") != "" {
			delete(w.composed, resource)
		}
	}
}

// current run by the ledger of the Service or the status.
func (w *world) run() int32 {
	_, run := w.currentJob()
	return run
}

func (w *world) currentJob() (resource string, run int32) {
	for r := range w.composed {
		if n := names.RunOf(names.JobPrefix, r); n > run {
			resource, run = r, n
		}
	}
	return resource, run
}

// kubernetes changes the Job that is desired.
func (w *world) kubernetes(change string) {
	if resource, run := w.currentJob(); run > 0 {
		w.composed[resource] = with(w.composed[resource], change)
	}
}

// report of the provider about the present run.
func (w *world) report(fields string) {
	o := w.composed[names.Run]
	if o == nil {
		return
	}
	m := parse(w.t, fields)
	m["number"] = o.Field("spec", "forProvider", "number")
	w.composed[names.Run] = with(o, "{}", map[string]any{"status": map[string]any{"atProvider": m}})
}

// with changes of an object.
func with(o compose.Object, text string, more ...map[string]any) compose.Object {
	out := composetest.Object{}
	_ = json.Unmarshal([]byte(encoded(o.Map())), &out)
	var m map[string]any
	_ = yaml.Unmarshal([]byte(text), &m)
	for _, change := range append(more, m) {
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

func (w *world) phase() v1alpha1.TrainingPhase {
	return v1alpha1.TrainingPhase(compose.Text(w.status, "phase"))
}
