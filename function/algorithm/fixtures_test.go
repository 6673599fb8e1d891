// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A world is what a planner is asked about, and what becomes of its plans.
type world struct {
	t       testing.TB
	server  *composetest.Server
	request compose.Request

	// experiments of the namespace, by name, and whether Crossplane looks for none of them.
	experiments map[string]composetest.Object
	unread      bool

	// unmeasured is why no check can be measured, or empty.
	unmeasured string
}

// newWorld with an Algorithm of the given spec and nothing else.
func newWorld(tb testing.TB, spec string) *world {
	tb.Helper()
	w := &world{t: tb, server: composetest.NewServer(), experiments: map[string]composetest.Object{}, request: compose.Request{
		Now: now,
		Settings: inputv1alpha1.Settings{Algorithm: inputv1alpha1.AlgorithmSettings{
			CPU:    new(resource.MustParse("250m")),
			Memory: new(resource.MustParse("256Mi")),
			GPU: inputv1alpha1.AlgorithmGPUSettings{
				CPU:    new(resource.MustParse("1")),
				Memory: new(resource.MustParse("4Gi")),
			},
			Pod: inputv1alpha1.AlgorithmPodSettings{Volumes: inputv1alpha1.UsualPodVolumes()},
		}},
		Kinds: map[schema.GroupVersionKind]compose.Availability{
			observev1alpha1.AnalysisGroupVersionKind:      compose.Available,
			registryv1alpha1.ModelVersionGroupVersionKind: compose.Available,
			registryv1alpha1.ModelAliasGroupVersionKind:   compose.Available,
			RouteGVK:          compose.Available,
			GRPCRouteGVK:      compose.Available,
			ServiceMonitorGVK: compose.Available,
			PrometheusRuleGVK: compose.Available,
		},
	}}
	w.request.Composite = composetest.Object{
		"apiVersion": "capstan.dev/v1alpha1",
		"kind":       "Algorithm",
		"metadata":   map[string]any{"name": "reco", "namespace": "shop"},
		"spec":       w.separate(parse(tb, spec)),
	}
	return w
}

// serving world: one whose plan is composed and whose pods serve.
func serving(tb testing.TB, spec string) *world {
	tb.Helper()
	w := newWorld(tb, spec)
	w.compose(w.plan())
	w.compose(w.plan()) // the first pods wait for their ServiceAccount
	w.run(nil)
	w.compose(w.plan()) // and now the ledger knows that they serve
	return w
}

// update to what the spec asks for, as far as plans and running pods lead.
func (w *world) update() {
	w.t.Helper()
	for range 4 {
		w.compose(w.plan())
		for _, slot := range []string{names.SlotA, names.SlotB} {
			if w.occupied(slot) {
				w.runIn(slot, nil)
			}
		}
	}
}

// later world.
func (w *world) later(d time.Duration) { w.request.Now = w.request.Now.Add(d) }

// edit the spec.
func (w *world) edit(spec string) {
	xr := composetest.Object(maps.Clone(w.request.Composite.Map()))
	xr["spec"] = w.separate(parse(w.t, spec))
	w.request.Composite = xr
}

// separate the experiment of a spec, which tests write within it, into an Experiment that the spec names.
func (w *world) separate(spec map[string]any) map[string]any {
	e, within := spec["experiment"].(map[string]any)
	if !within {
		return spec
	}
	name, _ := e["id"].(string)
	delete(e, "id")
	if e["algorithm"] == nil {
		e["algorithm"] = "reco"
	}
	w.experiments[name] = composetest.Object{
		"apiVersion": "capstan.dev/v1alpha1", "kind": "Experiment",
		"metadata": map[string]any{"name": name, "namespace": "shop"}, "spec": e,
	}
	spec["experiment"] = name
	return spec
}

// named otherwise.
func (w *world) named(name string) *world {
	w.request.Composite.Map()["metadata"] = map[string]any{"name": name, "namespace": "shop"}
	return w
}

// synced condition of the Algorithm, and what its status withholds.
func (w *world) synced(message string, withheld []v1alpha1.Withheld) {
	status, err := composetest.Decode(v1alpha1.AlgorithmStatus{Withheld: withheld})
	if err != nil {
		w.t.Fatal(err)
	}
	if message != "" {
		status["conditions"] = []any{map[string]any{"type": "Synced", "status": "False", "message": message}}
	}
	xr := composetest.Object(maps.Clone(w.request.Composite.Map()))
	xr["status"] = map[string]any(status)
	w.request.Composite = xr
}

func (w *world) plan() *compose.Plan {
	w.t.Helper()
	p, err := Plan(w.request)
	if err == nil && w.request.Composite.Map()["spec"].(map[string]any)["experiment"] != nil && !w.unread {
		// As Crossplane does: it finds what the planner requires, and asks again.
		p, err = Plan(w.found(p.Requires))
	}
	if err != nil {
		w.t.Fatalf("Plan: %v", err)
	}
	return p
}

// found is the request with the Experiments that are required.
func (w *world) found(requires map[string]compose.Requirement) compose.Request {
	r := w.request
	r.Required, r.Sought = maps.Clone(r.Required), map[string]bool{}
	if r.Required == nil {
		r.Required = map[string]compose.Object{}
	}
	for resource, required := range requires {
		if required.Kind != v1alpha1.ExperimentGroupVersionKind {
			continue
		}
		r.Sought[resource] = true
		if o := w.experiments[required.Name]; o != nil {
			r.Required[resource] = o
		}
	}
	return r
}

// compose a plan as Crossplane does.
func (w *world) compose(p *compose.Plan) {
	w.t.Helper()
	observed, err := w.server.Compose(w.request.Observed, p)
	if err != nil {
		w.t.Fatal(err)
	}
	w.request.Observed = observed
	w.try()
}

// try the checks of a candidate on the live slot, as the provider does at once when it is asked.
func (w *world) try() {
	w.t.Helper()
	outcome := observev1alpha1.VerdictPass
	if w.unmeasured != "" {
		outcome = observev1alpha1.VerdictNoData
	}
	o := w.request.Observed[names.Analysis]
	if o == nil {
		return
	}
	var trial []any
	for _, v := range compose.List(compose.Map(o.Map(), "spec", "forProvider", "metrics"), "trial") {
		c, _ := v.(map[string]any)
		trial = append(trial, map[string]any{"name": compose.Text(c, "name"), "verdict": string(outcome), "message": w.unmeasured})
	}
	w.change(names.Analysis, func(o composetest.Object) {
		status := compose.Map(o, "status", "atProvider")
		if status == nil && trial == nil {
			return
		}
		status = maps.Clone(status)
		if status == nil {
			status = map[string]any{}
		}
		delete(status, "trial")
		if trial != nil {
			status["trial"] = trial
		}
		whole := maps.Clone(compose.Map(o, "status"))
		if whole == nil {
			whole = map[string]any{}
		}
		whole["atProvider"] = status
		o["status"] = whole
	})
}

// told is the world after Crossplane has written what a plan tells.
func (w *world) told(p *compose.Plan) {
	w.t.Helper()
	status, err := composetest.Decode(p.Status)
	if err != nil {
		w.t.Fatal(err)
	}
	ready := map[string]any{"type": "Ready", "status": "False", "reason": "Creating"}
	if p.Ready {
		ready = map[string]any{"type": "Ready", "status": "True", "reason": "Available"}
	}
	conditions := []any{ready}
	for _, c := range p.Conditions {
		conditions = append(conditions, map[string]any{
			"type": string(c.Type), "status": string(c.Status), "reason": string(c.Reason), "message": c.Message,
		})
	}
	status["conditions"] = conditions
	xr := composetest.Object(maps.Clone(w.request.Composite.Map()))
	xr["status"] = map[string]any(status)
	w.request.Composite = xr
}

// run the controller of slot a's Deployment until all pods serve, then modify its status.
func (w *world) run(modify func(status map[string]any)) { w.runIn(names.SlotA, modify) }

// occupied reports whether a revision runs in a slot, and not only an idle Deployment.
func (w *world) occupied(slot string) bool {
	o := w.request.Observed[names.Deployment(slot)]
	return o != nil && !isIdle(o)
}

// runIn a slot.
func (w *world) runIn(slot string, modify func(status map[string]any)) {
	w.change(names.Deployment(slot), func(d composetest.Object) {
		n := float64(compose.Number(d, 1, "spec", "replicas"))
		status := map[string]any{
			"observedGeneration": float64(compose.Number(d, 0, "metadata", "generation")),
			"replicas":           n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n,
		}
		if modify != nil {
			modify(status)
		}
		d["status"] = status
	})
}

// change a copy of an observed object.
func (w *world) change(resource string, modify func(composetest.Object)) {
	w.t.Helper()
	o, err := composetest.Decode(w.request.Observed[resource].Map())
	if err != nil {
		w.t.Fatal(err)
	}
	modify(o)
	w.request.Observed = maps.Clone(w.request.Observed)
	w.request.Observed[resource] = o
}

// scale the Deployment of slot a as an autoscaler does, by way of the scale subresource.
func (w *world) scale(n float64) { w.scaleIn(names.SlotA, n) }

// scaleIn a slot.
func (w *world) scaleIn(slot string, n float64) {
	w.change(names.Deployment(slot), func(d composetest.Object) {
		compose.Map(d, "spec")["replicas"] = n
		metadata := compose.Map(d, "metadata")
		fields := compose.List(metadata, "managedFields")
		for _, e := range fields {
			delete(compose.Map(e.(map[string]any), "fieldsV1", "f:spec"), "f:replicas")
		}
		metadata["managedFields"] = append(fields, map[string]any{
			"manager": "kube-controller-manager", "operation": "Update", "subresource": "scale", "apiVersion": "apps/v1",
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}},
		})
	})
}

// find sets the findings of the observed Analysis.
func (w *world) find(findings ...observev1alpha1.Finding) {
	w.change(names.Analysis, func(o composetest.Object) {
		raw, _ := json.Marshal(map[string]any{"atProvider": map[string]any{"findings": findings}})
		var status map[string]any
		_ = json.Unmarshal(raw, &status)
		o["status"] = status
	})
	w.try()
}

// object of a plan as decoded JSON, or nil. An idle Deployment is none: no revision runs in its slot.
func object(tb testing.TB, p *compose.Plan, resource string) composetest.Object {
	tb.Helper()
	d, ok := p.Objects[resource]
	if !ok {
		return nil
	}
	o, err := composetest.Decode(d.Object)
	if err != nil {
		tb.Fatal(err)
	}
	if isIdle(o) {
		return nil
	}
	return o
}

// condition of a plan.
func condition(p *compose.Plan, ct xpv2.ConditionType) xpv2.Condition {
	for _, c := range p.Conditions {
		if c.Type == ct {
			return c
		}
	}
	return xpv2.Condition{}
}

func parse(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		tb.Fatal(err)
	}
	return m
}

// full spec: every field has a value that shows.
const full = `
image: registry.example.org/algo/reco:2.1.4
replicas: 3
port: 9000
command: [/server]
args: [--threads=4]
env:
- {name: LOG_LEVEL, value: info}
- {name: EMPTY}
- {name: TOKEN, valueFrom: {secretKeyRef: {name: reco, key: token}}}
- {name: MODE, valueFrom: {configMapKeyRef: {name: reco, key: mode}}}
config: {reco.yaml: "threshold: 0.7"}
resources: {cpu: 500m, memory: 1Gi, gpu: nvidia.com/gpu, gpuCount: 2, sharedMemory: 2Gi}
scaling: {minReplicas: 2, maxReplicas: 10, signal: CPU}
availability: {zones: Required, maxUnavailable: 25%}
pod:
  imagePullSecrets: [{name: registry-login}]
  securityContext: {runAsUser: 65532}
  nodeSelector: {pool: gpu}
  tolerations: [{key: spot, operator: Equal, value: "true", effect: NoExecute, tolerationSeconds: 60}]
  runtimeClassName: nvidia
  priorityClassName: production
`
