// SPDX-License-Identifier: Apache-2.0

// Package pods renders the pod template and the plan of a run from what reaches its pods.
package pods

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/podspec"
	"github.com/capstan-dev/capstan/function/training/names"
)

// Names of volumes beside the volumes of every Job.
const (
	volumeCheckpoints = "checkpoints"
	volumePlan        = "crew-plan"
)

// checkpointGroup owns the checkpoints, so that pods of any user write them.
const checkpointGroup = 65532

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
	return jobpod.ReservedVolume(name, volumeCheckpoints, volumePlan)
}

// Reserved folders of the container.
func Reserved() []string { return []string{path.Dir(crew.BinaryDir)} }

// Template of the pods.
func (in Inputs) Template(plan string) *applycorev1.PodTemplateSpecApplyConfiguration {
	s := in.Spec
	pod := jobpod.Pod{
		Container: crew.Container, Image: s.Image, CompanionImage: in.CompanionImage,
		Command: []string{"crew", "--"}, Args: slices.Concat(s.Command, s.Args),
		Folders: jobpod.Folders{Binary: crew.BinaryDir, Scratch: crew.ScratchDir},
		Ports:   []*applycorev1.ContainerPortApplyConfiguration{jobpod.Port("crew", crew.Port), jobpod.Port(jobpod.PortState, crew.StatePort)},
		Env:     s.Env, Resources: s.Resources, MemoryUnlimited: in.MemoryUnlimited,
		Config: s.Config, Secrets: s.Secrets, VolumeMounts: s.VolumeMounts,
		OwnMounts:  []*applycorev1.VolumeMountApplyConfiguration{jobpod.Mount(volumePlan, crew.PlanDir).WithReadOnly(true)},
		OwnVolumes: []*applycorev1.VolumeApplyConfiguration{jobpod.Volume(volumePlan).WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(plan))},
		Pod:        s.Pod, Account: in.Crew(), Subdomain: in.Crew(),
		// The crew ends the ranks within the grace period, and then itself.
		GraceSeconds: int64(jobpod.Seconds(s.GracePeriod)) + crew.LeaveSeconds,
		Metadata:     s.PodMetadata, Labels: in.RunLabels(in.Run),
	}
	if *s.Spares > 0 && !in.onOneNode() {
		pod.Apart = in.RunPods(in.Run)
	}
	if s.Config != nil {
		pod.ConfigMap = in.Config(podspec.ConfigHash(s.Config))
	}
	if r := s.Resources.DeviceRequest; r != nil {
		pod.ClaimTemplate = in.DeviceClaim(podspec.DevicesHash(r))
	}
	if c := s.Checkpoint; c != nil {
		m, claim := jobpod.Mount(volumeCheckpoints, c.Path), c.ClaimName
		if c.SubPath != "" {
			m.WithSubPath(c.SubPath)
		}
		if claim == "" {
			claim = in.CheckpointClaim()
		}
		pod.FSGroup = checkpointGroup
		pod.OwnMounts = append(pod.OwnMounts, m)
		pod.OwnVolumes = append(pod.OwnVolumes,
			jobpod.Volume(volumeCheckpoints).WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().WithClaimName(claim)))
	}
	return pod.Template()
}

// onOneNode reports whether all pods have to be on the node where their checkpoints are. One on another node would wait for the volume.
func (in Inputs) onOneNode() bool {
	c := in.Spec.Checkpoint
	return c != nil && c.Claim != nil && c.AccessMode() == corev1.ReadWriteOnce
}
