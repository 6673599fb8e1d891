// SPDX-License-Identifier: Apache-2.0

// Package pods renders the pod template and the plan of a run from what reaches its pods.
package pods

import (
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/placement"
	"github.com/capstan-dev/capstan/function/podspec"
	"github.com/capstan-dev/capstan/function/training/names"
)

// Names of volumes and of the init container, and where shared memory is mounted.
const (
	volumeBinary       = "crew-bin"
	volumeCheckpoints  = "checkpoints"
	volumePlan         = "crew-plan"
	volumeScratch      = "crew-run"
	volumeSharedMemory = "shared-memory"
	installer          = "companion"
	SharedMemoryPath   = "/dev/shm"
)

// PortState is the name of the port of the state and the metrics.
const PortState = "state"

// checkpointGroup owns the checkpoints, so that pods of any user write them.
const checkpointGroup = 65532

// leaveAfter is how many seconds a pod stays on a node that does not answer. The default of Kubernetes is five minutes.
const leaveAfter = 30

// Inputs are everything that reaches the pods of a run.
type Inputs struct {
	names.Names

	// Spec with its defaults.
	Spec v1alpha1.TrainingSpec
	// MemoryUnlimited reports whether the memory of the spec is only a request.
	MemoryUnlimited bool
	// CompanionImage of the platform's settings.
	CompanionImage string
	// Run is the number of the run.
	Run int32
	// Cycle is the number of the run whose folder has the checkpoints, and Former the one before: see crew.Checkpoints.
	Cycle, Former int32
	// ResumeFrom is the checkpoint that it begins with, when it finds none itself.
	ResumeFrom string
}

// ReservedVolume reports whether Capstan uses the name of a volume for itself.
func ReservedVolume(name string) bool {
	own := []string{volumeBinary, volumeCheckpoints, podspec.VolumeConfig, volumePlan, volumeScratch, volumeSharedMemory}
	return slices.Contains(own, name) || strings.HasPrefix(name, "secret-")
}

// Reserved folders of the container.
func Reserved() []string { return []string{path.Dir(crew.BinaryDir)} }

// Template of the pods. It satisfies the Pod Security Standard "restricted". The companion is process 1 of the container of the ranks. It is
// copied there, because a volume of an image is not executable before Kubernetes 1.36.
func (in Inputs) Template(plan string) *applycorev1.PodTemplateSpecApplyConfiguration {
	security := applycorev1.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	security.RunAsUser = in.Spec.Pod.SecurityContext.RunAsUser
	if in.Spec.Checkpoint != nil {
		security.WithFSGroup(checkpointGroup).WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	}
	pod := applycorev1.PodSpec().
		WithSecurityContext(security).
		WithEnableServiceLinks(false).
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithSubdomain(in.Crew()).
		// The crew ends the ranks within the grace period, and then itself.
		WithTerminationGracePeriodSeconds(int64(seconds(in.Spec.GracePeriod)) + crew.LeaveSeconds).
		WithInitContainers(podspec.Companion(in.CompanionImage, installer, []string{"install", "--to=" + crew.BinaryDir}, resource.MustParse("64Mi")).
			WithVolumeMounts(mount(volumeBinary, crew.BinaryDir))).
		WithContainers(worker(in)).
		WithVolumes(volumes(in, plan)...)
	for _, ref := range in.Spec.Pod.ImagePullSecrets {
		pod.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(ref.Name))
	}
	if r := in.Spec.Resources.DeviceRequest; r != nil {
		pod.WithResourceClaims(applycorev1.PodResourceClaim().
			WithName(podspec.DevicesClaim).
			WithResourceClaimTemplateName(in.DeviceClaim(podspec.DevicesHash(r))))
	}
	if account := in.Spec.Pod.ServiceAccountName; account != "" {
		pod.WithServiceAccountName(account)
	} else {
		pod.WithServiceAccountName(in.Crew()).WithAutomountServiceAccountToken(false)
	}
	scheduling(pod, in)
	return applycorev1.PodTemplateSpec().
		WithLabels(labels(in)).
		WithAnnotations(placement.Annotations(in.Spec.PodMetadata)).
		WithSpec(pod)
}

// labels of the pods. Those that select them win.
func labels(in Inputs) map[string]string {
	all := placement.Labels(in.Spec.PodMetadata)
	maps.Copy(all, in.RunLabels(in.Run))
	return all
}

// scheduling leaves the field nodeSelector of the pods to queues: Kubernetes lets one manager own all of it, and a queue could not
// choose nodes then. What the spec selects is a node affinity.
func scheduling(pod *applycorev1.PodSpecApplyConfiguration, in Inputs) {
	own := podspec.GPUTolerations(in.Spec.Resources)
	for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		own = append(own, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(leaveAfter)),
		})
	}
	rest := in.Spec.Pod.Scheduling
	rest.NodeSelector = nil
	placement.Apply(pod, &rest, own...)
	affinity := podspec.GPUAffinity(in.Spec.Resources)
	selector := in.Spec.Pod.NodeSelector
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

// worker is the container of the ranks.
func worker(in Inputs) *applycorev1.ContainerApplyConfiguration {
	c := applycorev1.Container().
		WithName(crew.Container).
		WithImage(in.Spec.Image).
		WithCommand(path.Join(crew.BinaryDir, "companion"), "crew", "--").
		WithArgs(slices.Concat(in.Spec.Command, in.Spec.Args)...).
		WithPorts(
			port("crew", crew.Port),
			port(PortState, crew.StatePort)).
		WithResources(podspec.Requirements(in.Spec.Resources, in.MemoryUnlimited)).
		WithVolumeMounts(mounts(in)...).
		WithSecurityContext(applycorev1.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(applycorev1.Capabilities().WithDrop("ALL")))
	for _, e := range in.Spec.Env {
		c.WithEnv(podspec.EnvVar(e))
	}
	return c
}

func port(name string, number int32) *applycorev1.ContainerPortApplyConfiguration {
	return applycorev1.ContainerPort().WithName(name).WithProtocol(corev1.ProtocolTCP).WithContainerPort(number)
}

func mount(volume, at string) *applycorev1.VolumeMountApplyConfiguration {
	return applycorev1.VolumeMount().WithName(volume).WithMountPath(at)
}

func mounts(in Inputs) []*applycorev1.VolumeMountApplyConfiguration {
	ms := []*applycorev1.VolumeMountApplyConfiguration{
		mount(volumeBinary, crew.BinaryDir).WithReadOnly(true),
		mount(volumePlan, crew.PlanDir).WithReadOnly(true),
		mount(volumeScratch, crew.ScratchDir),
	}
	if c := in.Spec.Checkpoint; c != nil {
		m := mount(volumeCheckpoints, c.Path)
		if c.SubPath != "" {
			m.WithSubPath(c.SubPath)
		}
		ms = append(ms, m)
	}
	config, secrets := podspec.ConfigPlace(in.Spec.Config), podspec.SecretPlaces(in.Spec.Secrets)
	own := in.Spec.VolumeMounts
	ms = append(ms, podspec.UsualMounts(config, own)...)
	if in.Spec.Resources.SharedMemory != nil {
		ms = append(ms, mount(volumeSharedMemory, SharedMemoryPath))
	}
	return slices.Concat(ms, podspec.UsualMounts(secrets, own), podspec.Mounts(slices.Concat(config, secrets), own))
}

func volumes(in Inputs, plan string) []*applycorev1.VolumeApplyConfiguration {
	volume := func(name string) *applycorev1.VolumeApplyConfiguration { return applycorev1.Volume().WithName(name) }
	vs := []*applycorev1.VolumeApplyConfiguration{
		volume(volumeBinary).WithEmptyDir(applycorev1.EmptyDirVolumeSource()),
		volume(volumePlan).WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(plan)),
		volume(volumeScratch).WithEmptyDir(applycorev1.EmptyDirVolumeSource()),
	}
	if c := in.Spec.Checkpoint; c != nil {
		claim := c.ClaimName
		if claim == "" {
			claim = in.CheckpointClaim()
		}
		vs = append(vs, volume(volumeCheckpoints).WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().WithClaimName(claim)))
	}
	if in.Spec.Config != nil {
		vs = append(vs, volume(podspec.VolumeConfig).WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(in.Config(podspec.ConfigHash(in.Spec.Config)))))
	}
	if size := in.Spec.Resources.SharedMemory; size != nil {
		vs = append(vs, volume(volumeSharedMemory).WithEmptyDir(applycorev1.EmptyDirVolumeSource().
			WithMedium(corev1.StorageMediumMemory).
			WithSizeLimit(*size)))
	}
	return slices.Concat(vs, podspec.SecretVolumes(in.Spec.Secrets), podspec.Volumes(in.Spec.Pod.Volumes))
}
