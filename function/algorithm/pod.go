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

// preStopSeconds are how long a container goes on before it is told to end,
// because callers are still sent to it.
const preStopSeconds = 5

// podTemplate of a revision, whatever slot it runs in. It satisfies the Pod
// Security Standard "restricted".
func podTemplate(s *state) *applycorev1.PodTemplateSpecApplyConfiguration {
	security := applycorev1.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	security.RunAsUser = s.spec.RunAsUser

	// A claim would belong to root, and what fills it is not.
	if m := s.spec.Model; m != nil && m.Cache != nil {
		security.WithFSGroup(cacheGroup).WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	}

	pod := applycorev1.PodSpec().
		WithSecurityContext(security).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(preStopSeconds + int64(*s.spec.Availability.DrainSeconds)).
		WithInitContainers(initContainers(s)...).
		WithContainers(container(s)).
		WithVolumes(volumes(s)...).
		WithTopologySpreadConstraints(spread(s)...)

	for _, name := range pullSecrets(s) {
		pod.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(name))
	}

	account(pod, s)
	scheduling(pod, s)

	return applycorev1.PodTemplateSpec().
		WithLabels(s.labels()).
		WithAnnotations(revisionAnnotation(s)).
		WithAnnotations(secretAnnotations(s)).
		WithAnnotations(warmUpAnnotations(s)).
		WithSpec(pod)
}

// revisionAnnotation tells whose pods they are, so that what is found out about them is
// not held against the next ones in their slot.
func revisionAnnotation(s *state) map[string]string {
	if s.target == "" {
		return nil
	}

	return map[string]string{annotationRevision: s.target}
}

// pullSecrets open private registries. A node mounts an image with the same ones
// that it runs images with.
func pullSecrets(s *state) []string {
	names := make([]string, 0, len(s.spec.ImagePullSecrets)+1)
	for _, ref := range s.spec.ImagePullSecrets {
		names = append(names, ref.Name)
	}

	if s.mountsImage() && s.spec.Model.Credentials != nil && !slices.Contains(names, s.spec.Model.Credentials.Name) {
		names = append(names, s.spec.Model.Credentials.Name)
	}

	return names
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

	for _, t := range slices.Concat(sc.Tolerations, gpuTolerations(s)) {
		pod.WithTolerations(toleration(t))
	}

	if a := affinity(s); a != nil {
		pod.WithAffinity(a)
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

// affinity to nodes with the right GPU, and, with a volume that only one node can
// have, to the node that has it.
func affinity(s *state) *applycorev1.AffinityApplyConfiguration {
	a := gpuAffinity(s)
	if !s.onOneNode() {
		return a
	}

	if a == nil {
		a = applycorev1.Affinity()
	}

	return a.WithPodAffinity(applycorev1.PodAffinity().
		WithRequiredDuringSchedulingIgnoredDuringExecution(applycorev1.PodAffinityTerm().
			WithTopologyKey(corev1.LabelHostname).
			WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{labelAlgorithm: s.name}))))
}

// onOneNode tells whether all replicas share a volume that only one node can have.
func (s *state) onOneNode() bool {
	m := s.spec.Model
	return m != nil && m.Cache != nil && m.Cache.AccessMode == corev1.ReadWriteOnce
}

// spread replicas over nodes, and over zones as strictly as asked. Each revision
// is spread by itself, since the pods it replaces are about to go, and nodes
// whose taints keep the pods away do not count.
func spread(s *state) []*applycorev1.TopologySpreadConstraintApplyConfiguration {
	if s.onOneNode() {
		return nil
	}

	over := func(key string, otherwise corev1.UnsatisfiableConstraintAction) *applycorev1.TopologySpreadConstraintApplyConfiguration {
		return applycorev1.TopologySpreadConstraint().
			WithMaxSkew(1).
			WithTopologyKey(key).
			WithWhenUnsatisfiable(otherwise).
			WithNodeTaintsPolicy(corev1.NodeInclusionPolicyHonor).
			WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{labelAlgorithm: s.name})).
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

	if s.hasFiles() {
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

	return slices.Concat(vs, secretVolumes(s), modelVolumes(s), warmUpVolumes(s))
}
