// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/podspec"
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
		WithResources(podspec.Requirements(in.Spec.Resources, in.MemoryUnlimited)).
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
		c.WithEnv(podspec.EnvVar(e))
	}
	return c
}

func mounts(in Inputs) []*applycorev1.VolumeMountApplyConfiguration {
	config, secrets, model := podspec.ConfigPlace(in.Spec.Config), podspec.SecretPlaces(in.Spec.Secrets), modelPlace(in)
	own := in.Spec.VolumeMounts
	ms := podspec.UsualMounts(config, own)
	if in.Spec.Resources.SharedMemory != nil {
		ms = append(ms, applycorev1.VolumeMount().
			WithName(volumeSharedMemory).
			WithMountPath(SharedMemoryPath))
	}
	return slices.Concat(ms, podspec.UsualMounts(secrets, own), podspec.UsualMounts(model, own),
		podspec.Mounts(slices.Concat(config, secrets, model), own))
}
