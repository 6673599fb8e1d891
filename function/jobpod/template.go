// SPDX-License-Identifier: Apache-2.0

// Package jobpod renders the pods of Jobs in which the companion is process 1, for Trainings and Pipelines.
package jobpod

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/placement"
	"github.com/capstan-dev/capstan/function/podspec"
)

// Names of volumes and of the init container, and where shared memory is mounted.
const (
	volumeBinary       = "crew-bin"
	volumeScratch      = "crew-run"
	volumeSharedMemory = "shared-memory"
	installer          = "companion"
	SharedMemoryPath   = "/dev/shm"
)

// PortState is the name of the port of the state and the metrics.
const PortState = "state"

// leaveAfter is how many seconds a pod stays on a node that does not answer. The default of Kubernetes is five minutes.
const leaveAfter = 30

// Folders of the container that are the companion's, and the port of its state.
type Folders struct {
	Binary, Scratch string
}

// A Pod of a Job.
type Pod struct {
	// Container is the name of the container in which the companion is process 1, and Command its arguments before Args.
	Container string
	Command   []string
	Args      []string
	Image     string
	// CompanionImage of the platform's settings.
	CompanionImage string
	Folders        Folders
	Ports          []*applycorev1.ContainerPortApplyConfiguration

	Env       []v1alpha1.EnvVar
	OwnEnv    []*applycorev1.EnvVarApplyConfiguration
	Resources *v1alpha1.Resources
	// MemoryUnlimited reports whether the memory is only a request.
	MemoryUnlimited bool

	Config v1alpha1.Config
	// ConfigMap with the Config, and ClaimTemplate of the devices.
	ConfigMap, ClaimTemplate string
	Secrets                  []v1alpha1.MountedSecret
	VolumeMounts             []v1alpha1.PodVolumeMount

	// OwnMounts and OwnVolumes are Capstan's beside what this package mounts, and FSGroup the group that owns volumes, or 0.
	OwnMounts  []*applycorev1.VolumeMountApplyConfiguration
	OwnVolumes []*applycorev1.VolumeApplyConfiguration
	FSGroup    int64

	Pod *v1alpha1.JobPod
	// Apart are the labels of pods that prefer nodes of their own, or nil.
	Apart map[string]string
	// Account without rights, where the spec has none.
	Account string
	// Subdomain of the host names, or empty.
	Subdomain string
	// GraceSeconds until the pod is killed.
	GraceSeconds int64

	Metadata    *v1alpha1.PodMetadata
	Labels      map[string]string
	Annotations map[string]string
}

// ReservedVolume reports whether Capstan uses the name of a volume for itself, besides others that the kind has.
func ReservedVolume(name string, others ...string) bool {
	own := []string{volumeBinary, podspec.VolumeConfig, volumeScratch, volumeSharedMemory}
	return slices.Contains(own, name) || slices.Contains(others, name) || strings.HasPrefix(name, "secret-")
}

// Template of the pod. It satisfies the Pod Security Standard "restricted". The companion is copied into it, because a volume of an image
// is not executable before Kubernetes 1.36.
func (p Pod) Template() *applycorev1.PodTemplateSpecApplyConfiguration {
	security := applycorev1.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	security.RunAsUser = p.Pod.SecurityContext.RunAsUser
	if p.FSGroup != 0 {
		security.WithFSGroup(p.FSGroup).WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	}
	pod := applycorev1.PodSpec().
		WithSecurityContext(security).
		WithEnableServiceLinks(false).
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithTerminationGracePeriodSeconds(p.GraceSeconds).
		WithInitContainers(podspec.Companion(p.CompanionImage, installer, []string{"install", "--to=" + p.Folders.Binary}, resource.MustParse("64Mi")).
			WithVolumeMounts(Mount(volumeBinary, p.Folders.Binary))).
		WithContainers(p.container()).
		WithVolumes(p.volumes()...)
	if p.Subdomain != "" {
		pod.WithSubdomain(p.Subdomain)
	}
	for _, ref := range p.Pod.ImagePullSecrets {
		pod.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(ref.Name))
	}
	if p.Resources.DeviceRequest != nil {
		pod.WithResourceClaims(applycorev1.PodResourceClaim().WithName(podspec.DevicesClaim).WithResourceClaimTemplateName(p.ClaimTemplate))
	}
	if account := p.Pod.ServiceAccountName; account != "" {
		pod.WithServiceAccountName(account)
	} else {
		pod.WithServiceAccountName(p.Account).WithAutomountServiceAccountToken(false)
	}
	p.scheduling(pod)
	if p.Apart != nil {
		pod.WithTopologySpreadConstraints(applycorev1.TopologySpreadConstraint().
			WithMaxSkew(1).
			WithTopologyKey(corev1.LabelHostname).
			WithWhenUnsatisfiable(corev1.ScheduleAnyway).
			WithNodeTaintsPolicy(corev1.NodeInclusionPolicyHonor).
			WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(p.Apart)))
	}
	annotations := placement.Annotations(p.Metadata)
	if len(p.Annotations) > 0 {
		all := maps.Clone(annotations)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, p.Annotations)
		annotations = all
	}
	labels := placement.Labels(p.Metadata)
	maps.Copy(labels, p.Labels) // Those that select the pods win.
	return applycorev1.PodTemplateSpec().WithLabels(labels).WithAnnotations(annotations).WithSpec(pod)
}

// scheduling leaves the field nodeSelector of the pods to queues: Kubernetes lets one manager own all of it, and a queue could not
// choose nodes then. What the spec selects is a node affinity.
func (p Pod) scheduling(pod *applycorev1.PodSpecApplyConfiguration) {
	own := podspec.GPUTolerations(p.Resources)
	for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		own = append(own, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(leaveAfter)),
		})
	}
	rest := p.Pod.Scheduling
	rest.NodeSelector = nil
	placement.Apply(pod, &rest, own...)
	affinity := podspec.GPUAffinity(p.Resources)
	selector := p.Pod.NodeSelector
	if len(selector) > 0 && affinity == nil {
		affinity = applycorev1.Affinity().WithNodeAffinity(applycorev1.NodeAffinity().
			WithRequiredDuringSchedulingIgnoredDuringExecution(applycorev1.NodeSelector().WithNodeSelectorTerms(applycorev1.NodeSelectorTerm())))
	}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		term := &affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
		term.WithMatchExpressions(applycorev1.NodeSelectorRequirement().
			WithKey(key).WithOperator(corev1.NodeSelectorOpIn).WithValues(string(selector[key])))
	}
	if affinity != nil {
		pod.WithAffinity(affinity)
	}
}

// container in which the companion is process 1.
func (p Pod) container() *applycorev1.ContainerApplyConfiguration {
	c := applycorev1.Container().
		WithName(p.Container).
		WithImage(p.Image).
		WithCommand(append([]string{path.Join(p.Folders.Binary, "companion")}, p.Command...)...).
		WithArgs(p.Args...).
		WithPorts(p.Ports...).
		WithResources(podspec.Requirements(p.Resources, p.MemoryUnlimited)).
		WithVolumeMounts(p.mounts()...).
		WithEnv(p.OwnEnv...).
		WithSecurityContext(applycorev1.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(applycorev1.Capabilities().WithDrop("ALL")))
	for _, e := range p.Env {
		c.WithEnv(podspec.EnvVar(e))
	}
	return c
}

// Port of the container.
func Port(name string, number int32) *applycorev1.ContainerPortApplyConfiguration {
	return applycorev1.ContainerPort().WithName(name).WithProtocol(corev1.ProtocolTCP).WithContainerPort(number)
}

// Mount of a volume.
func Mount(volume, at string) *applycorev1.VolumeMountApplyConfiguration {
	return applycorev1.VolumeMount().WithName(volume).WithMountPath(at)
}

func (p Pod) mounts() []*applycorev1.VolumeMountApplyConfiguration {
	ms := slices.Concat([]*applycorev1.VolumeMountApplyConfiguration{
		Mount(volumeBinary, p.Folders.Binary).WithReadOnly(true),
		Mount(volumeScratch, p.Folders.Scratch),
	}, p.OwnMounts)
	config, secrets := podspec.ConfigPlace(p.Config), podspec.SecretPlaces(p.Secrets)
	ms = append(ms, podspec.UsualMounts(config, p.VolumeMounts)...)
	if p.Resources.SharedMemory != nil {
		ms = append(ms, Mount(volumeSharedMemory, SharedMemoryPath))
	}
	return slices.Concat(ms, podspec.UsualMounts(secrets, p.VolumeMounts), podspec.Mounts(slices.Concat(config, secrets), p.VolumeMounts))
}

func (p Pod) volumes() []*applycorev1.VolumeApplyConfiguration {
	vs := slices.Concat([]*applycorev1.VolumeApplyConfiguration{
		Volume(volumeBinary).WithEmptyDir(applycorev1.EmptyDirVolumeSource()),
		Volume(volumeScratch).WithEmptyDir(applycorev1.EmptyDirVolumeSource()),
	}, p.OwnVolumes)
	if p.Config != nil {
		vs = append(vs, Volume(podspec.VolumeConfig).WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(p.ConfigMap)))
	}
	if size := p.Resources.SharedMemory; size != nil {
		vs = append(vs, Volume(volumeSharedMemory).WithEmptyDir(applycorev1.EmptyDirVolumeSource().
			WithMedium(corev1.StorageMediumMemory).
			WithSizeLimit(*size)))
	}
	return slices.Concat(vs, podspec.SecretVolumes(p.Secrets), podspec.Volumes(p.Pod.Volumes))
}

// Volume of a pod.
func Volume(name string) *applycorev1.VolumeApplyConfiguration {
	return applycorev1.Volume().WithName(name)
}

// Seconds of a time, 0 for none. A part of a second counts as a whole one.
func Seconds(d *metav1.Duration) int {
	if d == nil {
		return 0
	}
	return int((d.Duration + time.Second - 1) / time.Second)
}
