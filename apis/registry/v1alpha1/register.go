// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the entries of a model registry.
var GroupVersion = schema.GroupVersion{Group: "registry.capstan.dev", Version: "v1alpha1"}

// Kinds of this package.
var (
	RegisteredModelGroupVersionKind = GroupVersion.WithKind("RegisteredModel")
	ModelVersionGroupVersionKind    = GroupVersion.WithKind("ModelVersion")
	ModelAliasGroupVersionKind      = GroupVersion.WithKind("ModelAlias")
)

// SchemeBuilder registers the types of this package.
var SchemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&RegisteredModel{}, &RegisteredModelList{},
		&ModelVersion{}, &ModelVersionList{},
		&ModelAlias{}, &ModelAliasList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme adds the types of this package to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme
