// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of credentials.
var GroupVersion = schema.GroupVersion{Group: "credentials.capstan.dev", Version: "v1alpha1"}

// CredentialGroupVersionKind is the type of a Credential.
var CredentialGroupVersionKind = GroupVersion.WithKind("Credential")

// SchemeBuilder registers the types of this package.
var SchemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Credential{}, &CredentialList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme adds the types of this package to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme
