// SPDX-License-Identifier: Apache-2.0

// Package pods renders the pod templates and the plan of a revision of a stream with Flink.
package pods

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/pipeline/flink/names"
	"github.com/capstan-dev/capstan/function/placement"
	"github.com/capstan-dev/capstan/function/podspec"
)

// Names of volumes, of ports and of the init container.
const (
	volumeBinary  = "capstan-bin"
	volumePlan    = "capstan-plan"
	volumeScratch = "capstan-run"
	volumeState   = "capstan-state"
	installer     = "companion"
	// PortState is the name of the port of the state and the metrics.
	PortState = "state"
)

// StateDir is where the state folder is mounted.
const StateDir = "/capstan/state"

// stateGroup owns the state, so that pods of any user write it.
const stateGroup = 65532

// leaveAfter is how many seconds a TaskManager stays on a node that does not answer. The default of Kubernetes is five minutes.
const leaveAfter = 30

// Inputs are everything that reaches the pods of a revision.
type Inputs struct {
	names.Names

	// Spec with its defaults.
	Spec v1alpha1.PipelineSpec
	// CompanionImage of the platform's settings.
	CompanionImage string
	// Revision is the number of the revision, and Ignored are those whose state is not used.
	Revision int32
	Ignored  []int32
	// Continues: a revision before it has completed a checkpoint.
	Continues bool
}

// ReservedVolume reports whether Capstan uses the name of a volume for itself.
func ReservedVolume(name string) bool {
	return slices.Contains([]string{volumeBinary, podspec.VolumeConfig, volumePlan, volumeScratch, volumeState}, name) || strings.HasPrefix(name, "secret-")
}

// Variables of the companion.
const (
	envAddress = "POD_IP"
	envCPUs    = "CPU_REQUEST"
)

// OwnEnv are the variables of the container that Capstan sets.
func OwnEnv() []string { return []string{envAddress, envCPUs} }

// Plan that the companions follow, as JSON.
func (in Inputs) Plan() (string, error) {
	f := in.Spec.Flink
	p := flink.Plan{
		Version: flink.PlanVersion, Pipeline: in.Name, Revision: int(in.Revision), Continues: in.Continues, JobID: in.JobID(), JobManager: in.Host(),
		StateDir: StateDir, Home: f.Home, MainClass: f.MainClass, Args: in.Spec.Args, Slots: int(*f.Slots),
		CheckpointSeconds: seconds(f.CheckpointEvery), SavepointSeconds: seconds(f.SavepointWithin),
	}
	for _, r := range in.Ignored {
		p.Ignored = append(p.Ignored, int(r))
	}
	for key, value := range f.Conf {
		if p.Config == nil {
			p.Config = map[string]string{}
		}
		p.Config[key] = string(value)
	}
	raw, err := json.Marshal(p)
	return string(raw), err //nolint:wrapcheck // The caller says what it was for.
}

// JobManager is the template of its pod.
func (in Inputs) JobManager(plan string) *applycorev1.PodTemplateSpecApplyConfiguration {
	return in.template(plan, flink.RoleJobManager, in.Spec.Resources, []*applycorev1.ContainerPortApplyConfiguration{port(PortState, flink.StatePort)})
}

// TaskManager is the template of its pods.
func (in Inputs) TaskManager(plan string) *applycorev1.PodTemplateSpecApplyConfiguration {
	t := in.template(plan, flink.RoleTaskManager, in.Spec.Flink.TaskManagerResources, nil)
	for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		t.Spec.WithTolerations(applycorev1.Toleration().
			WithKey(key).WithOperator(corev1.TolerationOpExists).WithEffect(corev1.TaintEffectNoExecute).WithTolerationSeconds(leaveAfter))
	}
	return t
}

// template of the pods of a role. It satisfies the Pod Security Standard "restricted". The companion is process 1, and is copied there,
// because a volume of an image is not executable before Kubernetes 1.36.
func (in Inputs) template(plan, role string, resources *v1alpha1.Resources, ports []*applycorev1.ContainerPortApplyConfiguration) *applycorev1.PodTemplateSpecApplyConfiguration {
	security := applycorev1.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)).
		WithFSGroup(stateGroup).
		WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	security.RunAsUser = in.Spec.Pod.SecurityContext.RunAsUser
	pod := applycorev1.PodSpec().
		WithSecurityContext(security).
		WithEnableServiceLinks(false).
		// The companion takes a savepoint within that time, and TaskManagers wait for it.
		WithTerminationGracePeriodSeconds(int64(seconds(in.Spec.Flink.SavepointWithin)) + flink.LeaveSeconds).
		WithInitContainers(podspec.Companion(in.CompanionImage, installer, []string{"install", "--to=" + flink.BinaryDir}, resource.MustParse("64Mi")).
			WithVolumeMounts(mount(volumeBinary, flink.BinaryDir))).
		WithContainers(in.container(role, resources, ports)).
		WithVolumes(in.volumes()...)
	for _, ref := range in.Spec.Pod.ImagePullSecrets {
		pod.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(ref.Name))
	}
	if account := in.Spec.Pod.ServiceAccountName; account != "" {
		pod.WithServiceAccountName(account)
	} else {
		pod.WithServiceAccountName(in.Flink()).WithAutomountServiceAccountToken(false)
	}
	placement.Apply(pod, &in.Spec.Pod.Scheduling, podspec.GPUTolerations(resources)...)
	if affinity := podspec.GPUAffinity(resources); affinity != nil {
		pod.WithAffinity(affinity)
	}
	labels := placement.Labels(in.Spec.PodMetadata)
	maps.Copy(labels, in.PodLabels(role, in.Revision))
	annotations := placement.Annotations(in.Spec.PodMetadata)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[names.AnnotationPlan] = plan
	return applycorev1.PodTemplateSpec().WithLabels(labels).WithAnnotations(annotations).WithSpec(pod)
}

// container of Flink.
func (in Inputs) container(role string, resources *v1alpha1.Resources, ports []*applycorev1.ContainerPortApplyConfiguration) *applycorev1.ContainerApplyConfiguration {
	c := applycorev1.Container().
		WithName(runner.Container).
		WithImage(in.Spec.Image).
		WithCommand(path.Join(flink.BinaryDir, "companion"), "flink", role).
		WithPorts(ports...).
		WithResources(podspec.Requirements(resources, false)).
		WithEnv(
			field(envAddress, "status.podIP"),
			applycorev1.EnvVar().WithName(envCPUs).WithValueFrom(applycorev1.EnvVarSource().WithResourceFieldRef(
				applycorev1.ResourceFieldSelector().WithResource("requests.cpu").WithDivisor(resource.MustParse("1"))))).
		WithVolumeMounts(in.mounts()...).
		WithSecurityContext(applycorev1.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(applycorev1.Capabilities().WithDrop("ALL")))
	for _, e := range in.Spec.Env {
		c.WithEnv(podspec.EnvVar(e))
	}
	return c
}

func field(name, path string) *applycorev1.EnvVarApplyConfiguration {
	return applycorev1.EnvVar().WithName(name).WithValueFrom(applycorev1.EnvVarSource().WithFieldRef(applycorev1.ObjectFieldSelector().WithFieldPath(path)))
}

func port(name string, number int32) *applycorev1.ContainerPortApplyConfiguration {
	return applycorev1.ContainerPort().WithName(name).WithProtocol(corev1.ProtocolTCP).WithContainerPort(number)
}

func mount(volume, at string) *applycorev1.VolumeMountApplyConfiguration {
	return applycorev1.VolumeMount().WithName(volume).WithMountPath(at)
}

func (in Inputs) mounts() []*applycorev1.VolumeMountApplyConfiguration {
	ms := []*applycorev1.VolumeMountApplyConfiguration{
		mount(volumeBinary, flink.BinaryDir).WithReadOnly(true),
		mount(volumePlan, flink.PlanDir).WithReadOnly(true),
		mount(volumeScratch, flink.ScratchDir),
		mount(volumeState, StateDir),
	}
	config, secrets, own := podspec.ConfigPlace(in.Spec.Config), podspec.SecretPlaces(in.Spec.Secrets), in.Spec.VolumeMounts
	return slices.Concat(ms, podspec.UsualMounts(slices.Concat(config, secrets), own), podspec.Mounts(slices.Concat(config, secrets), own))
}

func (in Inputs) volumes() []*applycorev1.VolumeApplyConfiguration {
	volume := func(name string) *applycorev1.VolumeApplyConfiguration { return applycorev1.Volume().WithName(name) }
	claim := in.Spec.Flink.State.ClaimName
	if claim == "" {
		claim = in.State()
	}
	vs := []*applycorev1.VolumeApplyConfiguration{
		volume(volumeBinary).WithEmptyDir(applycorev1.EmptyDirVolumeSource()),
		volume(volumePlan).WithDownwardAPI(applycorev1.DownwardAPIVolumeSource().WithItems(applycorev1.DownwardAPIVolumeFile().
			WithPath(flink.PlanFile).
			WithFieldRef(applycorev1.ObjectFieldSelector().WithFieldPath("metadata.annotations['" + names.AnnotationPlan + "']")))),
		volume(volumeScratch).WithEmptyDir(applycorev1.EmptyDirVolumeSource()),
		volume(volumeState).WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().WithClaimName(claim)),
	}
	if in.Spec.Config != nil {
		vs = append(vs, volume(podspec.VolumeConfig).WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(in.Config(podspec.ConfigHash(in.Spec.Config)))))
	}
	return slices.Concat(vs, podspec.SecretVolumes(in.Spec.Secrets), podspec.Volumes(in.Spec.Pod.Volumes))
}

// seconds of a time, 0 for none. A part of a second counts as a whole one.
func seconds(d *metav1.Duration) int {
	if d == nil {
		return 0
	}
	return int((d.Duration + time.Second - 1) / time.Second)
}
