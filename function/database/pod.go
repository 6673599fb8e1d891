// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// Containers, and the program of the members.
const (
	containerExporter = "exporter"

	memberProgram = engine.Program
)

// Volumes.
const (
	volumeData    = "data"
	volumeSocket  = "run"
	volumeTLS     = "tls"
	volumeTmp     = "tmp"
	volumeShared  = "shared-memory"
	volumeConfig  = "config"
	volumeMembers = "members"
	volumeServer  = "server"
	volumeAccess  = "access"
	volumeToken   = "token"
)

// gracePeriodSeconds is how long a member may take to hand over and to end. A server that is killed has to recover.
const gracePeriodSeconds = 300

// lostSeconds is how long a member stays bound to a node that is gone.
const lostSeconds = 30

// Keys of the first Credential.
const (
	keyPassword = "password"
	keyVerifier = "verifier"
)

// setSpec of a new member.
func (s *cluster) setSpec(letter, target string) *applyappsv1.StatefulSetSpecApplyConfiguration {
	retain := appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	return applyappsv1.StatefulSetSpec().
		WithReplicas(1).
		WithServiceName(s.called(suffixPods)).
		// A pod that never gets ready must not block its own repair.
		WithPodManagementPolicy(appsv1.ParallelPodManagement).
		WithUpdateStrategy(applyappsv1.StatefulSetUpdateStrategy().WithType(appsv1.RollingUpdateStatefulSetStrategyType)).
		WithRevisionHistoryLimit(2).
		WithPersistentVolumeClaimRetentionPolicy(applyappsv1.StatefulSetPersistentVolumeClaimRetentionPolicy().
			WithWhenDeleted(retain).WithWhenScaled(retain)).
		WithSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{
			observev1alpha1.LabelDatabase: s.base(), observev1alpha1.LabelMember: s.member(letter),
		})).
		WithTemplate(s.podTemplate(letter, target, false)).
		WithVolumeClaimTemplates(s.claim(letter))
}

// claim of the data of a new member. Its labels tell whose data it is.
func (s *cluster) claim(letter string) *applycorev1.PersistentVolumeClaimApplyConfiguration {
	spec := applycorev1.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(applycorev1.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: s.sizes.created}))
	if c := s.size.storageClassName; c != "" {
		spec.WithStorageClassName(c)
	}
	c := &applycorev1.PersistentVolumeClaimApplyConfiguration{}
	return c.WithName(volumeData).
		WithLabels(map[string]string{
			observev1alpha1.LabelDatabase: s.base(),
			observev1alpha1.LabelMember:   s.member(letter),
			observev1alpha1.LabelIdentity: s.identity,
			labelGeneration:               strconv.Itoa(max(1, s.generation)),
		}).
		WithSpec(spec)
}

// podTemplate of a member. It satisfies the Pod Security Standard "restricted".
func (s *cluster) podTemplate(letter, target string, again bool) *applycorev1.PodTemplateSpecApplyConfiguration {
	labels := s.memberLabels(letter)
	labels[observev1alpha1.LabelScope] = s.scope()
	if name := s.sourceDatabase(); name != "" {
		labels[labelCopyOf] = name
	}
	annotations := map[string]string{annotationRevision: target}
	if again {
		annotations[annotationRestarted] = target
	}
	pod := s.hardenedPod().
		WithServiceAccountName(s.ownMembers()).
		WithTerminationGracePeriodSeconds(gracePeriodSeconds).
		WithTolerations(
			lost(corev1.TaintNodeNotReady),
			lost(corev1.TaintNodeUnreachable),
		).
		WithTopologySpreadConstraints(s.spread()...).
		WithContainers(s.serverContainer(letter)).
		WithVolumes(s.volumes()...).
		WithVolumes(s.backupVolumes()...)
	pod.SecurityContext.WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	if s.exports() {
		pod.WithContainers(s.exporter())
	}
	return applycorev1.PodTemplateSpec().WithLabels(labels).WithAnnotations(annotations).WithSpec(pod)
}

// pullSecrets open private registries.
func (s *cluster) pullSecrets() []string {
	names := make([]string, 0, len(s.spec.ImagePullSecrets))
	for _, ref := range s.spec.ImagePullSecrets {
		names = append(names, ref.Name)
	}
	return names
}

// lost node: a member leaves it after a while. Kubernetes itself waits for five minutes.
func lost(taint string) *applycorev1.TolerationApplyConfiguration {
	return applycorev1.Toleration().
		WithKey(taint).
		WithOperator(corev1.TolerationOpExists).
		WithEffect(corev1.TaintEffectNoExecute).
		WithTolerationSeconds(lostSeconds)
}

// spread of the members. A node without a zone would take none if zones were asked for, so that they are only where nodes have
// them.
func (s *cluster) spread() []*applycorev1.TopologySpreadConstraintApplyConfiguration {
	over := func(key string) *applycorev1.TopologySpreadConstraintApplyConfiguration {
		return applycorev1.TopologySpreadConstraint().
			WithMaxSkew(1).
			WithTopologyKey(key).
			WithWhenUnsatisfiable(corev1.DoNotSchedule).
			WithNodeTaintsPolicy(corev1.NodeInclusionPolicyHonor).
			WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(s.selector()))
	}
	var constraints []*applycorev1.TopologySpreadConstraintApplyConfiguration
	if s.spec.Availability.Spread == v1alpha1.SpreadAnywhere {
		return nil
	}
	if s.spec.Availability.Spread == v1alpha1.SpreadOverZones && len(s.seen.Zones) > 0 {
		constraints = append(constraints, over(corev1.LabelTopologyZone))
	}
	return append(constraints, over(corev1.LabelHostname))
}

// serverContainer: the program of the members, which runs the server. There is no limit on CPU: a throttled leader would look
// like a lost one.
func (s *cluster) serverContainer(letter string) *applycorev1.ContainerApplyConfiguration {
	field := func(name, path string) *applycorev1.EnvVarApplyConfiguration {
		return applycorev1.EnvVar().WithName(name).WithValueFrom(applycorev1.EnvVarSource().
			WithFieldRef(applycorev1.ObjectFieldSelector().WithFieldPath(path)))
	}
	value := func(name, v string) *applycorev1.EnvVarApplyConfiguration {
		return applycorev1.EnvVar().WithName(name).WithValue(v)
	}
	return hardened(applycorev1.Container().
		WithName(s.traits.App).
		WithImage(s.image.name).
		WithPorts(port(s.traits.App, s.traits.Ports.Client), port(s.traits.CoordinationPort, s.traits.Ports.Coordination), port("health", s.traits.Ports.Health)).
		WithEnv(
			field("POD_NAME", "metadata.name"),
			field("POD_NAMESPACE", "metadata.namespace"),
			field("POD_IP", "status.podIP"),
			value("CAPSTAN_DATABASE", s.base()),
			value("CAPSTAN_MEMBER", s.member(letter)),
			value("CAPSTAN_SCOPE", s.scope()),
			value("CAPSTAN_IDENTITY", s.identity),
			value("CAPSTAN_VERSION", s.data),
		).
		WithResources(applycorev1.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: s.size.cpu, corev1.ResourceMemory: s.size.memory}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: s.size.memory})).
		WithLivenessProbe(s.probe("/livez", 10, 5, 6)).
		WithReadinessProbe(s.probe("/readyz", 2, 2, 3)).
		WithLifecycle(applycorev1.Lifecycle().WithPreStop(applycorev1.LifecycleHandler().
			WithExec(applycorev1.ExecAction().WithCommand(memberProgram, "handover")))).
		WithVolumeMounts(
			mount(volumeData, "/data", false),
			mount(volumeSocket, s.traits.SocketDir, false),
			mount(volumeTLS, "/run/capstan", false),
			mount(volumeTmp, "/tmp", false),
			mount(volumeShared, "/dev/shm", false),
			mount(volumeConfig, "/etc/capstan/config", true),
			mount(volumeMembers, "/etc/capstan/tls/members", true),
			mount(volumeServer, "/etc/capstan/tls/server", true),
			mount(volumeAccess, "/etc/capstan/access", true),
			mount(volumeToken, "/var/run/secrets/kubernetes.io/serviceaccount", true),
		).
		WithVolumeMounts(s.backupMounts()...))
}

// exports reports whether an exporter runs beside each server.
func (s *cluster) exports() bool { return *s.spec.Monitoring.Enabled }

// exporter of metrics. It comes by the socket, with the rights of a monitor.
func (s *cluster) exporter() *applycorev1.ContainerApplyConfiguration {
	e, memory := s.traits.Exporter, resource.MustParse("64Mi")
	c := hardened(applycorev1.Container().
		WithName(containerExporter).
		WithImage(s.image.name).
		WithCommand(e.Command...).
		WithArgs(e.Args...).
		WithPorts(port(portMetrics, s.traits.Ports.Metrics)).
		WithResources(applycorev1.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: memory}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: memory})).
		WithVolumeMounts(mount(volumeSocket, s.traits.SocketDir, true)))
	for _, name := range compose.SortedKeys(e.Env) {
		c.WithEnv(applycorev1.EnvVar().WithName(name).WithValue(e.Env[name]))
	}
	c.SecurityContext.WithRunAsUser(e.User).WithRunAsGroup(s.traits.Group)
	return c
}

// hardenedPod has no token, and its files are of the group of the server.
func (s *cluster) hardenedPod() *applycorev1.PodSpecApplyConfiguration {
	pod := applycorev1.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithSecurityContext(applycorev1.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithRunAsUser(s.traits.User).
			WithRunAsGroup(s.traits.Group).
			WithFSGroup(s.traits.Group).
			WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)))
	for _, name := range s.pullSecrets() {
		pod.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(name))
	}
	return pod
}

func hardened(c *applycorev1.ContainerApplyConfiguration) *applycorev1.ContainerApplyConfiguration {
	return c.
		// So that the last words of a container that ends can be told.
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(applycorev1.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(applycorev1.Capabilities().WithDrop("ALL")))
}

func port(name string, number int32) *applycorev1.ContainerPortApplyConfiguration {
	return applycorev1.ContainerPort().WithName(name).WithProtocol(corev1.ProtocolTCP).WithContainerPort(number)
}

func mount(volume, path string, readOnly bool) *applycorev1.VolumeMountApplyConfiguration {
	m := applycorev1.VolumeMount().WithName(volume).WithMountPath(path)
	if readOnly {
		m.WithReadOnly(true)
	}
	return m
}

// emptyVolume on the node's disk, or in memory.
func emptyVolume(name string, limit resource.Quantity, medium corev1.StorageMedium) *applycorev1.VolumeApplyConfiguration {
	e := applycorev1.EmptyDirVolumeSource().WithSizeLimit(limit)
	if medium != "" {
		e.WithMedium(medium)
	}
	return applycorev1.Volume().WithName(name).WithEmptyDir(e)
}

// secretVolume whose keys only the group of the server reads.
func secretVolume(name, secret string) *applycorev1.VolumeApplyConfiguration {
	return applycorev1.Volume().WithName(name).WithSecret(applycorev1.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(0o440))
}

// probe of a program of ours.
func (s *names) probe(path string, period, timeout, failures int32) *applycorev1.ProbeApplyConfiguration {
	return applycorev1.Probe().
		WithHTTPGet(applycorev1.HTTPGetAction().WithPath(path).WithPort(intstr.FromInt32(s.traits.Ports.Health))).
		WithPeriodSeconds(period).WithTimeoutSeconds(timeout).WithFailureThreshold(failures)
}

// volumes beside the data.
func (s *cluster) volumes() []*applycorev1.VolumeApplyConfiguration {
	access := secretVolume(volumeAccess, s.called(suffixAccess))
	access.Secret.WithItems(applycorev1.KeyToPath().WithKey(keyVerifier).WithPath(keyVerifier))
	// Workers of one query share memory here. It counts as memory of the container.
	shared := *resource.NewQuantity(s.size.memory.Value()/4, resource.BinarySI)
	return []*applycorev1.VolumeApplyConfiguration{
		emptyVolume(volumeSocket, resource.MustParse("16Mi"), ""),
		emptyVolume(volumeTLS, resource.MustParse("4Mi"), corev1.StorageMediumMemory),
		emptyVolume(volumeTmp, resource.MustParse("256Mi"), ""),
		emptyVolume(volumeShared, shared, corev1.StorageMediumMemory),
		applycorev1.Volume().WithName(volumeConfig).WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(s.ownMembers())),
		secretVolume(volumeMembers, s.called(suffixOfMembers)),
		secretVolume(volumeServer, s.serverSecret()),
		access,
		applycorev1.Volume().WithName(volumeToken).WithProjected(applycorev1.ProjectedVolumeSource().
			WithDefaultMode(0o440).
			WithSources(
				applycorev1.VolumeProjection().WithServiceAccountToken(applycorev1.ServiceAccountTokenProjection().
					WithExpirationSeconds(3600).WithPath("token")),
				applycorev1.VolumeProjection().WithConfigMap(applycorev1.ConfigMapProjection().
					WithName("kube-root-ca.crt").
					WithItems(applycorev1.KeyToPath().WithKey("ca.crt").WithPath("ca.crt"))),
				applycorev1.VolumeProjection().WithDownwardAPI(applycorev1.DownwardAPIProjection().
					WithItems(applycorev1.DownwardAPIVolumeFile().WithPath("namespace").
						WithFieldRef(applycorev1.ObjectFieldSelector().WithFieldPath("metadata.namespace")))),
			)),
	}
}
