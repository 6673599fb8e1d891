// SPDX-License-Identifier: Apache-2.0

// Package objects edits observed objects that are kept, as plain data.
package objects

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// With other annotations and some other fields of its spec.
func With(k Kept, annotations, fields map[string]any) Kept {
	metadata := maps.Clone(compose.Map(k, "metadata"))
	if metadata == nil {
		metadata = map[string]any{}
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	k = maps.Clone(k)
	k["metadata"] = metadata
	if len(fields) > 0 {
		spec := map[string]any{}
		maps.Copy(spec, compose.Map(k, "spec"))
		maps.Copy(spec, fields)
		k["spec"] = spec
	}
	return k
}

// Plain data of an apply configuration.
func Plain(o any) Kept {
	m, err := compose.AsMap(o)
	if err != nil {
		panic(err) // It is none.
	}
	return m
}

// Kept object, as a named one.
type Kept map[string]any

// GetKind of the object.
func (k Kept) GetKind() *string { return new(compose.Text(k, "kind")) }

// GetName of the object.
func (k Kept) GetName() *string { return new(compose.Text(k, "metadata", "name")) }

// Manifest of a kind.
func Manifest[T any](gvk schema.GroupVersionKind, metadata *applymetav1.ObjectMetaApplyConfiguration, spec T) *compose.Manifest[T] {
	return compose.NewManifest(gvk.GroupVersion().String(), gvk.Kind, metadata, spec)
}
