// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// PipelineSettings are the choices of a platform team for every Pipeline.
type PipelineSettings struct {
	// Lineage is the config with the address of the server for OpenLineage, for Pipelines and Trainings with spec.lineage. With kind ProviderConfig each
	// namespace has its own. Default: the ClusterProviderConfig openlineage.
	//
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "openlineage"}
	// +optional
	Lineage *xpv2.ProviderConfigReference `json:"lineage,omitempty"`
}
