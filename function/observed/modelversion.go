// SPDX-License-Identifier: Apache-2.0

package observed

import (
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// A ModelVersion is the view of one.
type ModelVersion struct{ m map[string]any }

// NewModelVersion is the view of an observed ModelVersion.
func NewModelVersion(o compose.Object) ModelVersion { return ModelVersion{o.Map()} }

// Asks is the version that it asks the registry for, and the kind and name of the ProviderConfig.
func (v ModelVersion) Asks() (p registryv1alpha1.ModelVersionParameters, config string) {
	p, _ = decode[registryv1alpha1.ModelVersionParameters](compose.Map(v.m, "spec", "forProvider"))
	ref := compose.Map(v.m, "spec", "providerConfigRef")
	return p, compose.Text(ref, "kind") + "/" + compose.Text(ref, "name")
}

// Status is what the registry reports.
func (v ModelVersion) Status() registryv1alpha1.ModelVersionObservation {
	st, _ := decode[registryv1alpha1.ModelVersionObservation](compose.Map(v.m, "status", "atProvider"))
	return st
}

// Condition of a type: its status and message, and whether it is about the latest spec.
func (v ModelVersion) Condition(t xpv2.ConditionType) (status corev1.ConditionStatus, message string, current bool) {
	c := compose.Condition(v.m, string(t))
	return corev1.ConditionStatus(compose.Text(c, "status")), compose.Text(c, "message"),
		compose.Number(c, 0, "observedGeneration") >= compose.Number(v.m, 0, "metadata", "generation")
}

// Failure is why the registry could not be asked, in the most specific words.
func (v ModelVersion) Failure() string {
	if status, message, _ := v.Condition(v1alpha1.TypeConnected); status == corev1.ConditionFalse {
		return message
	}
	_, message, _ := v.Condition(xpv2.TypeSynced)
	return message
}
