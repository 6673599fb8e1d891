// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// container that serves. Its root file system stays writable, because images
// write where they please and a pod's own disk is gone with it anyway.
func container(s *state) *applycorev1.ContainerApplyConfiguration {
	c := applycorev1.Container().
		WithName(containerName).
		WithImage(s.spec.Image).
		WithCommand(s.spec.Command...).
		WithArgs(s.spec.Args...).
		WithPorts(applycorev1.ContainerPort().
			WithName(portName).
			WithProtocol(corev1.ProtocolTCP).
			WithContainerPort(*s.spec.Port)).
		WithResources(resources(s.spec.Resources)).
		WithVolumeMounts(mounts(s)...).
		// So that the last words of a container that ends can be told.
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(applycorev1.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(applycorev1.Capabilities().WithDrop("ALL"))).
		// Callers are still sent to a pod for a moment after it was told to end.
		WithLifecycle(applycorev1.Lifecycle().
			WithPreStop(applycorev1.LifecycleHandler().
				WithSleep(applycorev1.SleepAction().WithSeconds(preStopSeconds)))).
		WithStartupProbe(startupProbe(s)).
		WithReadinessProbe(readinessProbe(s)).
		WithLivenessProbe(livenessProbe())

	for _, e := range s.spec.Env {
		c.WithEnv(envVar(e))
	}

	if s.spec.Config != nil {
		for _, name := range sortedKeys(s.spec.Config.Env) {
			c.WithEnv(envVar(v1alpha1.EnvVar{Name: name, Value: string(s.spec.Config.Env[name])}))
		}
	}

	return c
}

func mounts(s *state) []*applycorev1.VolumeMountApplyConfiguration {
	var ms []*applycorev1.VolumeMountApplyConfiguration

	if s.hasFiles() {
		ms = append(ms, applycorev1.VolumeMount().
			WithName(volumeConfig).
			WithMountPath(s.spec.Config.MountPath).
			WithReadOnly(true))
	}

	if s.spec.Resources.SharedMemory != nil {
		ms = append(ms, applycorev1.VolumeMount().
			WithName(volumeSharedMemory).
			WithMountPath(sharedMemoryPath))
	}

	return slices.Concat(ms, secretMounts(s), modelMounts(s))
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

// resources of one replica. Memory is requested as it is limited, so that a
// replica is not ended because its neighbours grew; what is written to shared
// memory counts against the limit. CPU is not limited: cycles nobody wants would
// be lost.
func resources(r *v1alpha1.Resources) *applycorev1.ResourceRequirementsApplyConfiguration {
	memory := r.Memory.DeepCopy()
	if r.SharedMemory != nil {
		memory.Add(*r.SharedMemory)
	}

	requests := corev1.ResourceList{corev1.ResourceCPU: *r.CPU, corev1.ResourceMemory: memory}
	limits := corev1.ResourceList{corev1.ResourceMemory: memory}

	if r.GPU != "" {
		count := *resource.NewQuantity(int64(*r.GPUCount), resource.DecimalSI)
		requests[corev1.ResourceName(r.GPU)] = count
		limits[corev1.ResourceName(r.GPU)] = count
	}

	return applycorev1.ResourceRequirements().WithRequests(requests).WithLimits(limits)
}
