// SPDX-License-Identifier: Apache-2.0

package steady

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/planners"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// AnnotationResource has the name of an object within the composition.
const AnnotationResource = "crossplane.io/composition-resource-name"

// mostRounds is how often Crossplane asks again in one pass for what a planner requires.
const mostRounds = 5

// A Library plans by a planner within this program: without a function's pod, and without Crossplane.
type Library struct {
	Planner planners.Planner
	// Settings of the platform, what is wrong with them, and the EnvironmentConfig they are from.
	Settings     inputv1alpha1.Settings
	SettingsErr  error
	SettingsFrom string
	// Unserved kinds of the cluster, of the optional ones.
	Unserved []schema.GroupVersionKind
	// Find an object that the planner has to look at; nil where there is none.
	Find func(context.Context, compose.Requirement) (map[string]any, error)
}

// Pass over a world.
func (l Library) Pass(ctx context.Context, w World) (Answer, error) {
	r := compose.Request{
		Now: w.Now, Composite: Object(w.XR), Observed: map[string]compose.Object{}, Settings: l.Settings, SettingsErr: l.SettingsErr, SettingsFrom: l.SettingsFrom,
		Kinds: map[schema.GroupVersionKind]compose.Availability{},
	}
	for name, o := range w.Objects {
		r.Observed[name] = Object(o)
	}
	for _, gvk := range l.Planner.Optional {
		r.Kinds[gvk] = compose.Available
		if slices.Contains(l.Unserved, gvk) {
			r.Kinds[gvk] = compose.Unavailable
		}
	}
	var requires map[string]compose.Requirement
	for range mostRounds {
		p, err := l.Planner.Plan(r)
		if err != nil {
			return Answer{}, fmt.Errorf("cannot plan: %w", err)
		}
		a, err := answer(p)
		if err != nil {
			return Answer{}, err
		}
		next := compose.Existing(r, references(a.Objects))
		maps.Copy(next, p.Requires)
		if reflect.DeepEqual(next, requires) {
			return a, nil
		}
		requires, r.Required, r.Sought = next, map[string]compose.Object{}, map[string]bool{}
		for name, of := range requires {
			r.Sought[name] = true
			o, err := l.find(ctx, of)
			if err != nil {
				return Answer{}, err
			}
			if o != nil {
				r.Required[name] = Object(o)
			}
		}
	}
	return Answer{}, errors.New("what the planner requires never stays the same")
}

func (l Library) find(ctx context.Context, of compose.Requirement) (map[string]any, error) {
	if l.Find == nil {
		return nil, nil //nolint:nilnil // There is no cluster to look at.
	}
	return l.Find(ctx, of)
}

// answer of a plan, as Crossplane gets it.
func answer(p *compose.Plan) (Answer, error) {
	a := Answer{Objects: map[string]map[string]any{}}
	for name, d := range p.Objects {
		raw, err := json.Marshal(d.Object)
		if err != nil {
			return a, fmt.Errorf("cannot encode %q: %w", name, err)
		}
		var o map[string]any
		if err := json.Unmarshal(raw, &o); err != nil {
			return a, fmt.Errorf("cannot decode %q: %w", name, err)
		}
		child(child(o, "metadata"), "annotations")[AnnotationResource] = name
		a.Objects[name] = o
	}
	status, ok := copied(p.Status).(map[string]any)
	if !ok {
		status = map[string]any{}
	}
	ready := map[string]any{"type": "Ready", "status": "False", "reason": "Creating"}
	if p.Ready {
		ready = map[string]any{"type": "Ready", "status": "True", "reason": "Available"}
	}
	all := []any{ready}
	for _, c := range p.Conditions {
		all = append(all, map[string]any{"type": string(c.Type), "status": string(c.Status), "reason": string(c.Reason), "message": c.Message})
	}
	status["conditions"] = all
	a.Status = status
	return a, nil
}

// references of objects that have a name of their own.
func references(objects map[string]map[string]any) map[string]compose.Reference {
	refs := map[string]compose.Reference{}
	for resource, o := range objects {
		if name, _ := at(o, "metadata", "name").(string); name != "" {
			refs[resource] = compose.Reference{Kind: schema.FromAPIVersionAndKind(fmt.Sprint(o["apiVersion"]), fmt.Sprint(o["kind"])), Name: name}
		}
	}
	return refs
}

// An Object is decoded JSON as planners read it.
type Object map[string]any

// Map is the object itself.
func (o Object) Map() map[string]any { return o }

// Field at a path, or nil.
func (o Object) Field(path ...string) any { return at(map[string]any(o), path...) }

// Below are the fields at a path.
func (o Object) Below(path ...string) []compose.Entry {
	m, _ := at(map[string]any(o), path...).(map[string]any)
	all := make([]compose.Entry, 0, len(m))
	for k, v := range m {
		below, _ := v.(map[string]any)
		all = append(all, compose.Entry{Key: k, Value: Object(below)})
	}
	return all
}

// Managed fields of the object.
func (o Object) Managed() []compose.Object {
	entries, _ := at(map[string]any(o), "metadata", "managedFields").([]any)
	all := make([]compose.Object, 0, len(entries))
	for _, v := range entries {
		entry, _ := v.(map[string]any)
		all = append(all, Object(entry))
	}
	return all
}
