// SPDX-License-Identifier: Apache-2.0

// Package podspec renders the parts of a pod that the specs of several kinds describe in the same fields: variables, resources, devices,
// Secrets, volumes, and containers that keep the Pod Security Standard "restricted".
package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// EnvVar of a container.
func EnvVar(e v1alpha1.EnvVar) *applycorev1.EnvVarApplyConfiguration {
	out := applycorev1.EnvVar().WithName(e.Name)
	switch from := e.ValueFrom; {
	case from == nil && e.Value == "":
		// The API server stores no empty value, and would report one as a change.
		return out
	case from == nil:
		return out.WithValue(e.Value)
	case from.SecretKeyRef != nil:
		return out.WithValueFrom(applycorev1.EnvVarSource().WithSecretKeyRef(applycorev1.SecretKeySelector().
			WithName(from.SecretKeyRef.Name).
			WithKey(from.SecretKeyRef.Key)))
	default:
		return out.WithValueFrom(applycorev1.EnvVarSource().WithConfigMapKeyRef(applycorev1.ConfigMapKeySelector().
			WithName(from.ConfigMapKeyRef.Name).
			WithKey(from.ConfigMapKeyRef.Key)))
	}
}

// Requirements of a container. Memory is requested as it is limited, so that a replica is not ended because its neighbours grew;
// what is written to shared memory counts against the limit. CPU is not limited: unused cycles would be lost. Neither is memory
// that the spec does not name beside a GPU: what its drivers and a model take on the host differs too much for a usual limit.
func Requirements(r *v1alpha1.Resources, memoryUnlimited bool) *applycorev1.ResourceRequirementsApplyConfiguration {
	memory := r.Memory.DeepCopy()
	if r.SharedMemory != nil {
		memory.Add(*r.SharedMemory)
	}
	requests := corev1.ResourceList{corev1.ResourceCPU: *r.CPU, corev1.ResourceMemory: memory}
	limits := corev1.ResourceList{}
	if !memoryUnlimited {
		limits[corev1.ResourceMemory] = memory
	}
	if r.GPU != "" {
		count := *resource.NewQuantity(int64(*r.GPUCount), resource.DecimalSI)
		requests[corev1.ResourceName(r.GPU)] = count
		limits[corev1.ResourceName(r.GPU)] = count
	}
	out := applycorev1.ResourceRequirements().WithRequests(requests)
	if len(limits) > 0 {
		out.WithLimits(limits)
	}
	if r.DeviceRequest != nil {
		out.WithClaims(applycorev1.ResourceClaim().WithName(DevicesClaim))
	}
	return out
}
