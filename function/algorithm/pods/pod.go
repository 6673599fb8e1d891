// SPDX-License-Identifier: Apache-2.0

// Package pods renders the pod template of a revision from what reaches its pods.
package pods

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/placement"
	"github.com/capstan-dev/capstan/function/podspec"
)

// Names of volumes, and where shared memory is mounted.
const (
	volumeSharedMemory = "shared-memory"
	SharedMemoryPath   = "/dev/shm"
)

// annotationSecrets names, on pods, the content of the Secrets whose change makes a revision.
const annotationSecrets = "capstan.dev/secrets" //nolint:gosec // The name of an annotation.

// preStopSeconds are how long a container continues before it ends, because requests still reach it.
const preStopSeconds = 5

// Inputs are everything that reaches the pods of a revision.
type Inputs struct {
	names.Names

	Spec v1alpha1.AlgorithmSpec

	// MemoryUnlimited reports whether the memory of the spec is only a request.
	MemoryUnlimited bool

	// CompanionImage of the platform's settings.
	CompanionImage string

	// Revision that the pods are of.
	Revision string

	// Model that they fetch, or nil.
	Model *Source

	// Fingerprints of the Secrets whose changes make revisions.
	Fingerprints map[string]string
}

// Template of the pods, the same in both slots. It satisfies the Pod Security Standard "restricted".
func (in Inputs) Template() *applycorev1.PodTemplateSpecApplyConfiguration {
	security := applycorev1.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	security.RunAsUser = in.Spec.Pod.SecurityContext.RunAsUser
	// A claim would belong to root, and what fills it is not.
	if m := in.Spec.Model; m != nil && m.Cache != nil {
		security.WithFSGroup(cacheGroup).WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	}
	pod := applycorev1.PodSpec().
		WithSecurityContext(security).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(preStopSeconds + int64(*in.Spec.Availability.DrainSeconds)).
		WithInitContainers(slices.Concat(overlayContainers(in), initContainers(in))...).
		WithContainers(container(in)).
		WithVolumes(volumes(in)...).
		WithTopologySpreadConstraints(spread(in)...)
	for _, name := range pullSecrets(in) {
		pod.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(name))
	}
	if r := in.Spec.Resources.DeviceRequest; r != nil {
		pod.WithResourceClaims(applycorev1.PodResourceClaim().
			WithName(podspec.DevicesClaim).
			WithResourceClaimTemplateName(in.DeviceClaim(podspec.DevicesHash(r))))
	}
	account(pod, in)
	scheduling(pod, in)
	return applycorev1.PodTemplateSpec().
		WithLabels(labels(in)).
		WithAnnotations(annotations(in)).
		WithSpec(pod)
}

// pullSecrets open private registries. A node mounts an image with the same ones that it runs images with.
func pullSecrets(in Inputs) []string {
	names := make([]string, 0, len(in.Spec.Pod.ImagePullSecrets)+1)
	for _, ref := range in.Spec.Pod.ImagePullSecrets {
		names = append(names, ref.Name)
	}
	if MountsImage(in.Spec.Model) && in.Spec.Model.Credentials != "" && !slices.Contains(names, in.Spec.Model.Credentials) {
		names = append(names, in.Spec.Model.Credentials)
	}
	return names
}

// account that pods run under. An own one decides by itself about its token.
func account(pod *applycorev1.PodSpecApplyConfiguration, in Inputs) {
	if in.Spec.Pod.ServiceAccountName != "" {
		pod.WithServiceAccountName(in.Spec.Pod.ServiceAccountName)
		return
	}
	pod.WithServiceAccountName(in.Name).WithAutomountServiceAccountToken(false)
}

func scheduling(pod *applycorev1.PodSpecApplyConfiguration, in Inputs) {
	placement.Apply(pod, &in.Spec.Pod.Scheduling, podspec.GPUTolerations(in.Spec.Resources)...)
	if a := affinity(in); a != nil {
		pod.WithAffinity(a)
	}
}

// affinity to nodes with the right GPU, and, with a volume that only one node can have, to the node that has it.
func affinity(in Inputs) *applycorev1.AffinityApplyConfiguration {
	a := podspec.GPUAffinity(in.Spec.Resources)
	if !in.onOneNode() {
		return a
	}
	if a == nil {
		a = applycorev1.Affinity()
	}
	return a.WithPodAffinity(applycorev1.PodAffinity().
		WithRequiredDuringSchedulingIgnoredDuringExecution(applycorev1.PodAffinityTerm().
			WithTopologyKey(corev1.LabelHostname).
			WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{names.LabelAlgorithm: in.Name}))))
}

// onOneNode reports whether all replicas share a volume that only one node can have.
func (in Inputs) onOneNode() bool {
	m := in.Spec.Model
	return m != nil && m.Cache != nil && slices.Contains(m.Cache.AccessModes, corev1.ReadWriteOnce)
}

// spread replicas over nodes, and over zones as strictly as asked. Each revision is spread by itself, since the pods it replaces
// are about to go, and nodes whose taints keep the pods away do not count.
func spread(in Inputs) []*applycorev1.TopologySpreadConstraintApplyConfiguration {
	if in.onOneNode() {
		return nil
	}
	over := func(key string, otherwise corev1.UnsatisfiableConstraintAction) *applycorev1.TopologySpreadConstraintApplyConfiguration {
		return applycorev1.TopologySpreadConstraint().
			WithMaxSkew(1).
			WithTopologyKey(key).
			WithWhenUnsatisfiable(otherwise).
			WithNodeTaintsPolicy(corev1.NodeInclusionPolicyHonor).
			WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{names.LabelAlgorithm: in.Name})).
			WithMatchLabelKeys("pod-template-hash")
	}
	nodes := over(corev1.LabelHostname, corev1.ScheduleAnyway)
	switch in.Spec.Availability.Zones {
	case v1alpha1.SpreadRequired:
		return []*applycorev1.TopologySpreadConstraintApplyConfiguration{over(corev1.LabelTopologyZone, corev1.DoNotSchedule), nodes}
	case v1alpha1.SpreadPreferred:
		return []*applycorev1.TopologySpreadConstraintApplyConfiguration{over(corev1.LabelTopologyZone, corev1.ScheduleAnyway), nodes}
	default:
		return []*applycorev1.TopologySpreadConstraintApplyConfiguration{nodes}
	}
}

func volumes(in Inputs) []*applycorev1.VolumeApplyConfiguration {
	var vs []*applycorev1.VolumeApplyConfiguration
	if in.Spec.Config != nil {
		vs = append(vs, applycorev1.Volume().
			WithName(podspec.VolumeConfig).
			WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(in.Config(podspec.ConfigHash(in.Spec.Config)))))
	}
	if size := in.Spec.Resources.SharedMemory; size != nil {
		vs = append(vs, applycorev1.Volume().
			WithName(volumeSharedMemory).
			WithEmptyDir(applycorev1.EmptyDirVolumeSource().
				WithMedium(corev1.StorageMediumMemory).
				WithSizeLimit(*size)))
	}
	return slices.Concat(vs, podspec.SecretVolumes(in.Spec.Secrets), modelVolumes(in), warmUpVolumes(in), podspec.Volumes(in.Spec.Pod.Volumes))
}

// annotations of the pods: their revision, so that findings about them are not held against the next ones in their slot, a hash
// of the fingerprints of Secrets, which says nothing about what is in them, and the body of the requests that warm a replica up.
func annotations(in Inputs) map[string]string {
	m := placement.Annotations(in.Spec.PodMetadata)
	if in.Revision != "" {
		m[names.AnnotationRevision] = in.Revision
	}
	if len(in.Fingerprints) > 0 {
		raw, _ := json.Marshal(in.Fingerprints) //nolint:errchkjson // A map of strings always marshals.
		m[annotationSecrets] = compose.Hash(raw)
	}
	if body := warmUpBody(in); body != "" {
		m[annotationWarmUp] = body
	}
	return m
}
