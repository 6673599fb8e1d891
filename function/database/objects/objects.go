// SPDX-License-Identifier: Apache-2.0

// Package objects edits observed objects that are kept, as plain data.
package objects

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
)

// With other annotations and some other fields of its spec.
func With(k Kept, annotations, fields map[string]any) Kept {
	k = maps.Clone(k)
	if len(annotations) > 0 {
		k["metadata"] = encoding.Union(compose.Map(k, "metadata"), map[string]any{"annotations": annotations})
	}
	if len(fields) > 0 {
		k["spec"] = encoding.Union(compose.Map(k, "spec"), fields)
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

// Spec of a managed resource without what its schema fills in, such as policies that keep or delete what it manages.
type Spec[T any] struct {
	ForProvider                      T                          `json:"forProvider"`
	ManagementPolicies               xpv2.ManagementPolicies    `json:"managementPolicies,omitempty"`
	WriteConnectionSecretToReference *xpv2.LocalSecretReference `json:"writeConnectionSecretToRef,omitempty"`
}

// Managed resource of a kind.
func Managed[T any](gvk schema.GroupVersionKind, metadata *applymetav1.ObjectMetaApplyConfiguration, parameters T) *compose.Manifest[Spec[T]] {
	return Manifest(gvk, metadata, Spec[T]{ForProvider: parameters})
}

// Manifest of a kind.
func Manifest[T any](gvk schema.GroupVersionKind, metadata *applymetav1.ObjectMetaApplyConfiguration, spec T) *compose.Manifest[T] {
	return compose.NewManifest(gvk.GroupVersion().String(), gvk.Kind, metadata, spec)
}
