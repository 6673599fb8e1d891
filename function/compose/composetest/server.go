// SPDX-License-Identifier: Apache-2.0

// Package composetest applies plans as Crossplane and the API server do, for tests of planners: with the API server's own code
// for server-side apply, and without defaults, admission or controllers.
package composetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/capstan-dev/capstan/function/compose"
)

// Manager is a name that Crossplane applies composed objects under.
const Manager = "apiextensions.crossplane.io/composed/0123456789abcdef"

// An Object is decoded JSON.
type Object map[string]any

// Map is the object as decoded JSON.
func (o Object) Map() map[string]any { return o }

// Field at a path.
func (o Object) Field(path ...string) any { return compose.Field(o, path...) }

// Below are the fields at a path.
func (o Object) Below(path ...string) []compose.Entry {
	m := compose.Map(o, path...)
	all := make([]compose.Entry, 0, len(m))
	for k, v := range m {
		below, _ := v.(map[string]any)
		all = append(all, compose.Entry{Key: k, Value: Object(below)})
	}
	return all
}

// Managed fields of the object.
func (o Object) Managed() []compose.Object {
	entries := compose.List(o, "metadata", "managedFields")
	all := make([]compose.Object, 0, len(entries))
	for _, v := range entries {
		entry, _ := v.(map[string]any)
		all = append(all, Object(entry))
	}
	return all
}

// Decode anything that marshals to a JSON object.
func Decode(v any) (Object, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot marshal: %w", err)
	}
	var o Object
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("cannot unmarshal: %w", err)
	}
	return o, nil
}

// A Server applies objects.
type Server struct {
	known    managedfields.TypeConverter
	managers map[schema.GroupVersionKind]*managedfields.FieldManager
}

// NewServer that knows the kinds of Kubernetes. Other kinds are taken as they come.
func NewServer() *Server {
	return &Server{
		known:    applyconfigurations.NewTypeConverter(scheme.Scheme),
		managers: map[schema.GroupVersionKind]*managedfields.FieldManager{},
	}
}

// Compose a plan: what it leaves out is gone, what it holds is applied as Crossplane does.
func (s *Server) Compose(observed map[string]compose.Object, p *compose.Plan) (map[string]compose.Object, error) {
	next := map[string]compose.Object{}
	for resource, d := range p.Objects {
		o, err := Decode(d.Object)
		if err != nil {
			return nil, fmt.Errorf("cannot decode %q: %w", resource, err)
		}
		meta := &unstructured.Unstructured{Object: o}
		meta.SetLabels(with(meta.GetLabels(), "crossplane.io/composite", "xr"))
		meta.SetAnnotations(with(meta.GetAnnotations(), "crossplane.io/composition-resource-name", resource))
		live, err := s.Apply(observed[resource], o, Manager)
		if err != nil {
			return nil, fmt.Errorf("cannot apply %q: %w", resource, err)
		}
		next[resource] = live
	}
	return next, nil
}

// Apply an object over a live one, if any, by force.
func (s *Server) Apply(live compose.Object, o Object, manager string) (Object, error) {
	want, err := Decode(o)
	if err != nil {
		return nil, err
	}
	applied := &unstructured.Unstructured{Object: want}
	gvk := applied.GroupVersionKind()
	before := &unstructured.Unstructured{Object: map[string]any{}}
	before.SetGroupVersionKind(gvk)
	if live != nil {
		before = &unstructured.Unstructured{Object: live.Map()}
	}
	out, err := s.manager(gvk).Apply(before.DeepCopy(), applied, manager, true)
	if err != nil {
		return nil, err
	}
	next, err := Decode(out)
	if err != nil {
		return nil, err
	}
	return counted(live, next), nil
}

// counted is an object with the generation that its spec has come to.
func counted(live compose.Object, next Object) Object {
	generation := int64(1)
	if live != nil {
		generation = compose.Number(live.Map(), 0, "metadata", "generation")
		if !reflect.DeepEqual(live.Map()["spec"], next["spec"]) {
			generation++
		}
	}
	if m := compose.Map(next, "metadata"); m != nil && next["spec"] != nil {
		m["generation"] = float64(generation)
	}
	return next
}

func (s *Server) manager(gvk schema.GroupVersionKind) *managedfields.FieldManager {
	if m, ok := s.managers[gvk]; ok {
		return m
	}
	converter := s.known
	if !scheme.Scheme.Recognizes(gvk) {
		converter = managedfields.NewDeducedTypeConverter()
	}
	s.managers[gvk] = managedfieldstest.NewFakeFieldManager(converter, gvk)
	return s.managers[gvk]
}

func with(m map[string]string, k, v string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[k] = v
	return out
}
