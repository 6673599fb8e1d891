// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of databases, logins and grants.
var GroupVersion = schema.GroupVersion{Group: "access.capstan.dev", Version: "v1alpha1"}

// AccessGroupVersionKind is the type of an Access.
var AccessGroupVersionKind = GroupVersion.WithKind("Access")

// SchemeBuilder registers the types of this package.
var SchemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Access{}, &AccessList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme adds the types of this package to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme
