// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kinds for storage.
var GroupVersion = schema.GroupVersion{Group: "storage.capstan.dev", Version: "v1alpha1"}

// BucketGroupVersionKind is the type of a Bucket.
var BucketGroupVersionKind = GroupVersion.WithKind("Bucket")

// VolumeClaimGroupVersionKind is the type of a VolumeClaim.
var VolumeClaimGroupVersionKind = GroupVersion.WithKind("VolumeClaim")

// SchemeBuilder registers the types of this package.
var SchemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Bucket{}, &BucketList{}, &VolumeClaim{}, &VolumeClaimList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme adds the types of this package to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme
