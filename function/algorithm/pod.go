// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Names of volumes, and where shared memory is mounted.
const (
	volumeConfig       = "config"
	volumeSharedMemory = "shared-memory"
	sharedMemoryPath   = "/dev/shm"
)

// podTemplate satisfies the Pod Security Standard "restricted".
func podTemplate(s *state) *applycorev1.PodTemplateSpecApplyConfiguration {
	security := applycorev1.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	security.RunAsUser = s.spec.RunAsUser

	pod := applycorev1.PodSpec().
		WithSecurityContext(security).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(30).
		WithContainers(container(s)).
		WithVolumes(volumes(s)...).
		WithTopologySpreadConstraints(spread(s)...)

	for _, ref := range s.spec.ImagePullSecrets {
		pod.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(ref.Name))
	}

	account(pod, s)
	scheduling(pod, s)

	return applycorev1.PodTemplateSpec().WithLabels(s.slotLabels()).WithSpec(pod)
}

// account that pods run under. An own one decides by itself about its token.
func account(pod *applycorev1.PodSpecApplyConfiguration, s *state) {
	if s.spec.ServiceAccountName != "" {
		pod.WithServiceAccountName(s.spec.ServiceAccountName)
		return
	}

	pod.WithServiceAccountName(s.name).WithAutomountServiceAccountToken(false)
}

func scheduling(pod *applycorev1.PodSpecApplyConfiguration, s *state) {
	sc := s.spec.Scheduling

	for label, value := range sc.NodeSelector {
		pod.WithNodeSelector(map[string]string{label: string(value)})
	}

	for _, t := range slices.Concat(sc.Tolerations, gpuToleration(s)) {
		pod.WithTolerations(toleration(t))
	}

	if sc.RuntimeClassName != "" {
		pod.WithRuntimeClassName(sc.RuntimeClassName)
	}

	if sc.PriorityClassName != "" {
		pod.WithPriorityClassName(sc.PriorityClassName)
	}
}

func toleration(t corev1.Toleration) *applycorev1.TolerationApplyConfiguration {
	out := &applycorev1.TolerationApplyConfiguration{TolerationSeconds: t.TolerationSeconds}

	if t.Key != "" {
		out.WithKey(t.Key)
	}

	if t.Operator != "" {
		out.WithOperator(t.Operator)
	}

	if t.Value != "" {
		out.WithValue(t.Value)
	}

	if t.Effect != "" {
		out.WithEffect(t.Effect)
	}

	return out
}

// spread replicas over nodes, and over zones as strictly as asked. Each revision
// is spread by itself, since the pods it replaces are about to go, and nodes
// whose taints keep the pods away do not count.
func spread(s *state) []*applycorev1.TopologySpreadConstraintApplyConfiguration {
	over := func(key string, otherwise corev1.UnsatisfiableConstraintAction) *applycorev1.TopologySpreadConstraintApplyConfiguration {
		return applycorev1.TopologySpreadConstraint().
			WithMaxSkew(1).
			WithTopologyKey(key).
			WithWhenUnsatisfiable(otherwise).
			WithNodeTaintsPolicy(corev1.NodeInclusionPolicyHonor).
			WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(s.selector())).
			WithMatchLabelKeys("pod-template-hash")
	}

	nodes := over(corev1.LabelHostname, corev1.ScheduleAnyway)

	switch s.spec.Availability.Zones {
	case v1alpha1.SpreadRequired:
		return []*applycorev1.TopologySpreadConstraintApplyConfiguration{over(corev1.LabelTopologyZone, corev1.DoNotSchedule), nodes}
	case v1alpha1.SpreadPreferred:
		return []*applycorev1.TopologySpreadConstraintApplyConfiguration{over(corev1.LabelTopologyZone, corev1.ScheduleAnyway), nodes}
	default:
		return []*applycorev1.TopologySpreadConstraintApplyConfiguration{nodes}
	}
}

func volumes(s *state) []*applycorev1.VolumeApplyConfiguration {
	var vs []*applycorev1.VolumeApplyConfiguration

	if s.spec.Config != nil {
		vs = append(vs, applycorev1.Volume().
			WithName(volumeConfig).
			WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(s.configName())))
	}

	if size := s.spec.Resources.SharedMemory; size != nil {
		vs = append(vs, applycorev1.Volume().
			WithName(volumeSharedMemory).
			WithEmptyDir(applycorev1.EmptyDirVolumeSource().
				WithMedium(corev1.StorageMediumMemory).
				WithSizeLimit(*size)))
	}

	return vs
}
