// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"

	resourcev1 "k8s.io/api/resource/v1"
	applyresourcev1 "k8s.io/client-go/applyconfigurations/resource/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// ClaimTemplateGVK is the kind of the claims of devices, which not every cluster serves: Kubernetes has it since 1.34.
var ClaimTemplateGVK = resourcev1.SchemeGroupVersion.WithKind("ResourceClaimTemplate")

// DevicesClaim is the name of the claim within the pod, and of its one request.
const DevicesClaim = "devices"

// Devices that each replica claims from a DRA driver. The count is exact: a claim that got fewer would serve more slowly than
// what was measured.
func Devices(r *v1alpha1.DeviceRequest) *applyresourcev1.ResourceClaimSpecApplyConfiguration {
	exactly := applyresourcev1.ExactDeviceRequest().
		WithDeviceClassName(r.DeviceClassName).
		WithAllocationMode(resourcev1.DeviceAllocationModeExactCount).
		WithCount(*r.Count)
	for _, s := range r.Selectors {
		exactly.WithSelectors(applyresourcev1.DeviceSelector().
			WithCEL(applyresourcev1.CELDeviceSelector().WithExpression(s.CEL.Expression)))
	}
	return applyresourcev1.ResourceClaimSpec().WithDevices(applyresourcev1.DeviceClaim().
		WithRequests(applyresourcev1.DeviceRequest().WithName(DevicesClaim).WithExactly(exactly)))
}

// ClaimTemplate of the claims of pods, which cannot change: its name should have the DevicesHash.
func ClaimTemplate(name, namespace string, labels map[string]string, r *v1alpha1.DeviceRequest) *applyresourcev1.ResourceClaimTemplateApplyConfiguration {
	return applyresourcev1.ResourceClaimTemplate(name, namespace).
		WithLabels(labels).
		WithSpec(applyresourcev1.ResourceClaimTemplateSpec().
			WithLabels(labels).
			WithSpec(Devices(r)))
}

// DevicesHash is the same for claims of the same devices.
func DevicesHash(r *v1alpha1.DeviceRequest) string {
	raw, _ := json.Marshal(Devices(r)) //nolint:errchkjson // Numbers and text always marshal.
	return compose.Hash(raw)
}
