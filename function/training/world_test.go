// SPDX-License-Identifier: Apache-2.0

package training

import (
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/jobpod/jobtest"
	"github.com/capstan-dev/capstan/function/scrape"
	"github.com/capstan-dev/capstan/function/training/names"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// A world is a cluster with one Training: what Crossplane applies, and what Kubernetes and the provider make of it.
type world struct {
	*jobtest.Cluster

	t      testing.TB
	now    time.Time
	spec   map[string]any
	status map[string]any
	// settings of the platform.
	settings inputv1alpha1.Settings
	// podMonitors says whether the cluster serves the kind.
	podMonitors compose.Availability
	// lineages says whether the provider serves the kind.
	lineages compose.Availability
	// workloads says whether it serves Kueue's, and workload is what Kueue says of the Job.
	workloads compose.Availability
	workload  compose.Object

	// plan of the last pass.
	plan *compose.Plan
}

const usualSpec = `{image: registry.example.org/train:1, args: [train], workers: 4, checkpoint: {claim: {resources: {requests: {storage: 1Gi}}}}}`

func newWorld(tb testing.TB, spec string) *world {
	tb.Helper()
	return &world{
		t: tb, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), spec: composetest.Parse(tb, spec), settings: settings(), lineages: compose.Available,
		Cluster: jobtest.NewCluster(names.JobPrefix),
	}
}

// edit the spec.
func (w *world) edit(text string) { maps.Copy(w.spec, composetest.Parse(w.t, text)) }

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
		Now: w.now, Composite: xr, Observed: w.Composed, Settings: w.settings,
		Kinds: map[schema.GroupVersionKind]compose.Availability{
			observev1alpha1.RunGroupVersionKind: compose.Available, scrape.PodMonitorGVK: w.podMonitors, registryv1alpha1.ModelVersionGroupVersionKind: compose.Available,
			registryv1alpha1.ModelAliasGroupVersionKind: compose.Available, jobpod.WorkloadGVK: w.workloads, observev1alpha1.LineageGroupVersionKind: w.lineages,
		},
	}
	return composetest.Ask(w.t, Plan, r, w.find)
}

// find what the plan requires.
func (w *world) find(of compose.Requirement) compose.Object {
	if of.Kind == jobpod.WorkloadGVK {
		if w.workload == nil || compose.TextOf(w.workload, "metadata", "namespace") != of.Namespace ||
			compose.TextOf(w.workload, "metadata", "labels", of.Label.Key) != of.Label.Value {
			return nil
		}
		return w.workload
	}
	return w.Find(of)
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

// current run by the ledger of the Service or the status.
func (w *world) run() int32 {
	_, run := w.currentJob()
	return run
}

func (w *world) currentJob() (resource string, run int32) {
	for r := range w.Composed {
		if n := names.RunOf(names.JobPrefix, r); n > run {
			resource, run = r, n
		}
	}
	return resource, run
}

// kubernetes changes the Job that is desired.
func (w *world) kubernetes(change string) {
	if resource, run := w.currentJob(); run > 0 {
		w.Composed[resource] = composetest.With(w.Composed[resource], composetest.Parse(w.t, change))
	}
}

// report of the provider about the present run.
func (w *world) report(fields string) {
	o := w.Composed[names.Run]
	if o == nil {
		return
	}
	m := composetest.Parse(w.t, fields)
	m["number"] = o.Field("spec", "forProvider", "number")
	w.Composed[names.Run] = composetest.With(o, map[string]any{"status": map[string]any{"atProvider": m}})
}

// condition of the last pass.
func (w *world) condition(t xpv2.ConditionType) string {
	return composetest.Condition(w.plan, t)
}

func (w *world) phase() v1alpha1.TrainingPhase {
	return v1alpha1.TrainingPhase(compose.Text(w.status, "phase"))
}
