// SPDX-License-Identifier: Apache-2.0

package database

import (
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
)

// manifest of a kind that client-go has no apply configuration for, or none that
// fits. The API type itself would bring an empty status along.
type manifest[S any] struct {
	applymetav1.TypeMetaApplyConfiguration `json:",inline"`

	Metadata *applymetav1.ObjectMetaApplyConfiguration `json:"metadata"`
	Spec     S                                         `json:"spec"`
}

func newManifest[S any](apiVersion, kind string, metadata *applymetav1.ObjectMetaApplyConfiguration, spec S) *manifest[S] {
	return &manifest[S]{
		TypeMetaApplyConfiguration: *applymetav1.TypeMeta().WithAPIVersion(apiVersion).WithKind(kind),
		Metadata:                   metadata,
		Spec:                       spec,
	}
}

// GetKind of the object.
func (o *manifest[S]) GetKind() *string { return o.Kind }

// GetName of the object.
func (o *manifest[S]) GetName() *string { return o.Metadata.Name }

// metadata of an object of the Database.
func (s *state) metadata(name string) *applymetav1.ObjectMetaApplyConfiguration {
	return applymetav1.ObjectMeta().WithName(name).WithNamespace(s.namespace).WithLabels(s.labels())
}
