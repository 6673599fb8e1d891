// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/edge"
	"github.com/capstan-dev/capstan/function/memo"
	"github.com/capstan-dev/capstan/function/planners"
	"github.com/capstan-dev/capstan/function/server"
)

// contextKeyNow overrides the clock with a time in RFC 3339, for previews.
const contextKeyNow = "capstan.dev/now"

// Crossplane applies composed objects one by one on every pass, and takes no message above 4 MiB. Neither can be
// configured. Both limits leave room for other steps of the pipeline.
const (
	maxObjects = 80
	maxBytes   = 2 << 20
)

// A Function answers a request of Crossplane with what the planner of the composite resource's kind decides.
type Function struct {
	kinds map[schema.GroupKind]planners.Planner
	clock func() time.Time
	memo  *memo.Memo[remembered]
}

// newFunction for kinds, at the time of a clock.
func newFunction(ks map[schema.GroupKind]planners.Planner, clock func() time.Time) *Function {
	return &Function{kinds: ks, clock: clock, memo: memo.New[remembered](maxSettings)}
}

// Run never fails. A fatal result ends Crossplane's pass before anything is applied or deleted.
func (f *Function) Run(_ context.Context, req *edge.Request) *edge.Answer {
	k := f.kinds[kindOf(req).GroupKind()]
	a, err := f.run(req, k)
	if err != nil {
		a = server.Fatal(req, err.Error())
		a.Rest.Requirements = requirements(req, k.Optional, nil)
	}
	return a
}

// kindOf the composite resource.
func kindOf(req *edge.Request) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(req.XR.Text("apiVersion"), req.XR.Text("kind"))
}

func (f *Function) run(req *edge.Request, k planners.Planner) (*edge.Answer, error) {
	if req.XR == nil {
		return nil, errors.New("function-capstan is for Compositions only: there is no composite resource to compose " +
			"for, as in an Operation. Use it in the pipeline of a Composition")
	}
	gvk := kindOf(req)
	if k.Plan == nil {
		return nil, fmt.Errorf("cannot compose for %q: function-capstan composes for %s only", gvk.GroupKind(), strings.Join(f.names(), ", "))
	}
	now, err := f.now(req)
	if err != nil {
		return nil, err
	}
	settings, settingsErr := remember(f.memo, req)
	from := settingsFrom(req)
	if missed := compose.ComposedWith(req.Observed, k.Remembers); from == "" && missed != "" {
		settingsErr = errMissed(missed)
	}
	r := compose.Request{
		Now:          now,
		Composite:    req.XR,
		Observed:     req.Observed,
		Settings:     settings,
		SettingsErr:  settingsErr,
		SettingsFrom: from,
		Unsupported:  unsupported(req),
		Required:     required(req),
		Sought:       sought(req),
		Kinds:        availability(req, k.Optional),
	}
	p, err := k.Plan(r)
	if err != nil {
		return nil, fmt.Errorf("cannot plan %s %q: %w", gvk.Kind, nameOf(req), err)
	}
	if n := len(p.Objects); n > maxObjects {
		return nil, fmt.Errorf("cannot compose %s %q: it takes %d objects, and the limit is %d. Ask for less in its "+
			"spec, or divide it into several of kind %s", gvk.Kind, nameOf(req), n, maxObjects, gvk.Kind)
	}
	a, err := respond(req, p)
	if err != nil {
		return nil, fmt.Errorf("cannot answer for %s %q: %w", gvk.Kind, nameOf(req), err)
	}
	requires := compose.Existing(r, references(a.Composed))
	maps.Copy(requires, p.Requires)
	a.Rest.Requirements = requirements(req, k.Optional, requires)
	wire, err := a.Wire()
	if err != nil {
		return nil, fmt.Errorf("cannot answer for %s %q: %w", gvk.Kind, nameOf(req), err)
	}
	if n := len(wire); n > maxBytes {
		name, size := largest(a.Composed)
		return nil, fmt.Errorf("cannot compose %s %q: its objects take %d KiB, and the limit is %d KiB. The largest is "+
			"%q with %d KiB: make what it holds smaller in the spec", gvk.Kind, nameOf(req), n>>10, maxBytes>>10, name, size>>10)
	}
	return a, nil
}

// nameOf the composite resource with its namespace.
func nameOf(req *edge.Request) string {
	return req.XR.Text("metadata", "namespace") + "/" + req.XR.Text("metadata", "name")
}

// largest object and its size in bytes.
func largest(rs map[string]edge.Resource) (string, int) {
	name, size := "", -1
	for _, n := range slices.Sorted(maps.Keys(rs)) {
		if s := len(rs[n].Object); s > size {
			name, size = n, s
		}
	}
	return name, size
}

// references of planned objects that have a name of their own, by their names within the composition.
func references(composed map[string]edge.Resource) map[string]compose.Reference {
	refs := make(map[string]compose.Reference, len(composed))
	for resource, r := range composed {
		o := r.View()
		if name := o.Text("metadata", "name"); name != "" {
			refs[resource] = compose.Reference{
				Kind: schema.FromAPIVersionAndKind(o.Text("apiVersion"), o.Text("kind")), Name: name,
			}
		}
	}
	return refs
}

// now is the time of the request's context, or of the clock.
func (f *Function) now(req *edge.Request) (time.Time, error) {
	if !req.Context.Has(contextKeyNow) {
		return f.clock().UTC(), nil
	}
	s, ok := req.Context.Field(contextKeyNow).(string)
	if !ok {
		return time.Time{}, fmt.Errorf("cannot use context key %q: it must be a string", contextKeyNow)
	}
	now, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot use context key %q: %w", contextKeyNow, err)
	}
	return now.UTC(), nil
}

// names of the kinds that the function composes for, sorted.
func (f *Function) names() []string {
	names := make([]string, 0, len(f.kinds))
	for gk := range f.kinds {
		names = append(names, gk.String())
	}
	slices.Sort(names)
	return names
}
