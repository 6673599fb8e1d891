// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"

	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
)

// Manifest of a kind that client-go has no apply configuration for, or none that fits. The API type itself would bring an empty
// status along.
type Manifest[S any] struct {
	applymetav1.TypeMetaApplyConfiguration `json:",inline"`

	Metadata *applymetav1.ObjectMetaApplyConfiguration `json:"metadata"`
	Spec     S                                         `json:"spec"`
}

// NewManifest of a kind.
func NewManifest[S any](apiVersion, kind string, metadata *applymetav1.ObjectMetaApplyConfiguration, spec S) *Manifest[S] {
	return &Manifest[S]{
		TypeMetaApplyConfiguration: *applymetav1.TypeMeta().WithAPIVersion(apiVersion).WithKind(kind),
		Metadata:                   metadata,
		Spec:                       spec,
	}
}

// GetKind of the object.
func (o *Manifest[S]) GetKind() *string { return o.Kind }

// GetName of the object.
func (o *Manifest[S]) GetName() *string { return o.Metadata.Name }

// AsMap is the JSON of a value, decoded.
func AsMap(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller says what it was for.
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err //nolint:wrapcheck // The same.
	}
	return m, nil
}
