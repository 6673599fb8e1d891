// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

var begin = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A world is a cluster with one Preview and its originals: what Crossplane applies, and what becomes of it.
type world struct {
	t        testing.TB
	now      time.Time
	spec     map[string]any
	status   map[string]any
	server   *composetest.Server
	settings inputv1alpha1.Settings

	// originals by kind and name, composed objects that Crossplane refers to, and those that end.
	originals map[string]composetest.Object
	composed  map[string]compose.Object
	ending    map[string]compose.Object

	plan *compose.Plan
}

const (
	usualSpec = `{ttl: 24h, algorithm: {of: shop, image: "x:2"}, database: {of: orders-db, data: LatestBackup}}`
	usualShop = `{image: "x:1", replicas: 3, env: [{name: URI, valueFrom: {secretKeyRef: {name: orders-db-app, key: uri}}}]}`
	usualDB   = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, backup: {enabled: true}}`
)

func newWorld(tb testing.TB, spec string) *world {
	tb.Helper()
	w := &world{
		t: tb, now: begin, spec: composetest.Parse(tb, spec), server: composetest.NewServer(), originals: map[string]composetest.Object{},
		composed: map[string]compose.Object{}, ending: map[string]compose.Object{},
	}
	w.original("Algorithm", "shop", usualShop)
	w.original("Database", "orders-db", usualDB)
	return w
}

// original that allows previews.
func (w *world) original(kind, name, spec string) {
	w.originals[kind+"/"+name] = composetest.Object{
		"apiVersion": "capstan.dev/v1alpha1", "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": "payments", "annotations": map[string]any{v1alpha1.AnnotationPreviews: v1alpha1.PreviewsAllowed}},
		"spec":     composetest.Parse(w.t, spec),
	}
}

// edit the spec. A null removes a field.
func (w *world) edit(text string) {
	for k, v := range composetest.Parse(w.t, text) {
		if v == nil {
			delete(w.spec, k)
			continue
		}
		w.spec[k] = v
	}
}

// request about the Preview as it is.
func (w *world) request() compose.Request {
	xr := composetest.Object{
		"apiVersion": "capstan.dev/v1alpha1", "kind": "Preview",
		"metadata": map[string]any{"name": "pr-1", "namespace": "payments", "creationTimestamp": begin.Format(time.RFC3339)}, "spec": w.spec,
	}
	if w.status != nil {
		xr["status"] = w.status
	}
	return compose.Request{
		Now: w.now, Composite: xr, Observed: w.composed, Settings: w.settings,
	}
}

// ask for a plan without carrying it out. Crossplane calls again until it has what is required.
func (w *world) ask() *compose.Plan {
	w.t.Helper()
	return composetest.Ask(w.t, Plan, w.request(), w.find)
}

// find an object of the cluster.
func (w *world) find(of compose.Requirement) compose.Object {
	if of.Namespace != "payments" {
		w.t.Errorf("a Preview may only look into its own namespace, and requires %+v", of)
	}
	if o, ok := w.originals[of.Kind.Kind+"/"+of.Name]; ok {
		return o
	}
	for _, all := range []map[string]compose.Object{w.composed, w.ending} {
		for _, o := range all {
			gvk := schema.FromAPIVersionAndKind(compose.TextOf(o, "apiVersion"), compose.TextOf(o, "kind"))
			if gvk == of.Kind && compose.TextOf(o, "metadata", "name") == of.Name {
				return o
			}
		}
	}
	return nil
}

// pass is one pass of Crossplane.
func (w *world) pass() {
	w.t.Helper()
	w.plan = w.ask()
	next, err := w.server.Compose(w.composed, w.plan)
	if err != nil {
		w.t.Fatal(err)
	}
	for resource, o := range w.composed {
		if next[resource] == nil {
			w.ending[resource] = o
		}
	}
	for resource, o := range next {
		if w.composed[resource] == nil {
			next[resource] = composetest.With(o, composetest.Parse(w.t, `{metadata: {ownerReferences: [{apiVersion: capstan.dev/v1alpha1, kind: Preview, name: pr-1, controller: true}]}}`))
		}
	}
	w.composed = next
	w.status = composetest.Status(w.t, w.plan)
}

// settle passes until nothing changes.
func (w *world) settle() {
	w.t.Helper()
	composetest.Settle(w.t, func() any { return []any{w.status, w.composed} }, w.pass)
}

// serve makes every copy ready.
func (w *world) serve() {
	for resource, o := range w.composed {
		w.composed[resource] = composetest.With(o, composetest.Parse(w.t, `{status: {conditions: [{type: Ready, status: "True"}], endpoint: "http://pr-1.payments.svc"}}`))
	}
}

// phase that the status has.
func (w *world) phase() v1alpha1.PreviewPhase {
	return v1alpha1.PreviewPhase(compose.Text(w.status, "phase"))
}

// condition that the last plan has.
func (w *world) condition(kind string) map[string]any {
	return compose.Condition(map[string]any{"status": w.status}, kind)
}
