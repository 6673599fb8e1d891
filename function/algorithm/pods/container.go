// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// container that serves. Its root file system stays writable, because images write where they please and a pod's own disk is gone
// with it anyway.
func container(in Inputs) *applycorev1.ContainerApplyConfiguration {
	c := applycorev1.Container().
		WithName(names.Container).
		WithImage(in.Spec.Image).
		WithCommand(in.Spec.Command...).
		WithArgs(in.Spec.Args...).
		WithPorts(applycorev1.ContainerPort().
			WithName(names.PortHTTP).
			WithProtocol(corev1.ProtocolTCP).
			WithContainerPort(*in.Spec.Port)).
		WithResources(resources(in)).
		WithVolumeMounts(mounts(in)...).
		// The last words of a container that ends become a finding.
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(applycorev1.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(applycorev1.Capabilities().WithDrop("ALL"))).
		// Requests still reach a pod for a moment after it has to end.
		WithLifecycle(applycorev1.Lifecycle().
			WithPreStop(applycorev1.LifecycleHandler().
				WithSleep(applycorev1.SleepAction().WithSeconds(preStopSeconds)))).
		WithStartupProbe(startupProbe(in)).
		WithReadinessProbe(readinessProbe(in)).
		WithLivenessProbe(livenessProbe())
	for _, e := range in.Spec.Env {
		c.WithEnv(envVar(e))
	}
	return c
}

func mounts(in Inputs) []*applycorev1.VolumeMountApplyConfiguration {
	var ms []*applycorev1.VolumeMountApplyConfiguration
	if in.Spec.Config != nil {
		ms = append(ms, applycorev1.VolumeMount().
			WithName(volumeConfig).
			WithMountPath(in.Spec.Config.MountPath).
			WithReadOnly(true))
	}
	if in.Spec.Resources.SharedMemory != nil {
		ms = append(ms, applycorev1.VolumeMount().
			WithName(volumeSharedMemory).
			WithMountPath(SharedMemoryPath))
	}
	return slices.Concat(ms, secretMounts(in), modelMounts(in), overlayMounts(in))
}

func envVar(e v1alpha1.EnvVar) *applycorev1.EnvVarApplyConfiguration {
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

// resources of one replica. Memory is requested as it is limited, so that a replica is not ended because its neighbours grew;
// what is written to shared memory counts against the limit. CPU is not limited: unused cycles would be lost. Neither is memory
// that the spec does not name beside a GPU: what its drivers and a model take on the host differs too much for a usual limit.
func resources(in Inputs) *applycorev1.ResourceRequirementsApplyConfiguration {
	r := in.Spec.Resources
	memory := r.Memory.DeepCopy()
	if r.SharedMemory != nil {
		memory.Add(*r.SharedMemory)
	}
	requests := corev1.ResourceList{corev1.ResourceCPU: *r.CPU, corev1.ResourceMemory: memory}
	limits := corev1.ResourceList{}
	if !in.MemoryUnlimited {
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
		out.WithClaims(applycorev1.ResourceClaim().WithName(devices))
	}
	return out
}
