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
	"github.com/capstan-dev/capstan/function/database/postgres"
)

// Containers, and the program of the members.
const (
	containerPostgres = "postgres"
	containerExporter = "exporter"

	memberProgram   = "/usr/local/bin/capstan-member"
	exporterProgram = "prometheus-postgres-exporter"
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

// Users of the image. The exporter has one of its own, so that the server tells it
// from the superuser, and shares the group, which may open the socket.
const (
	userPostgres  = 999
	groupPostgres = 999
	userExporter  = 998
)

// gracePeriodSeconds is how long a member may take to hand over and to end. A
// server that is killed has to recover.
const gracePeriodSeconds = 300

// lostSeconds is how long a member stays bound to a node that is gone.
const lostSeconds = 30

// Keys of the first Credential.
const (
	keyPassword = "password"
	keyVerifier = "verifier"
)

// setSpec of a new member.
func (s *state) setSpec(letter, target string) *applyappsv1.StatefulSetSpecApplyConfiguration {
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
func (s *state) claim(letter string) *applycorev1.PersistentVolumeClaimApplyConfiguration {
	spec := applycorev1.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(applycorev1.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: s.newStorage()}))

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
func (s *state) podTemplate(letter, target string, again bool) *applycorev1.PodTemplateSpecApplyConfiguration {
	labels := s.memberLabels(letter)
	labels[observev1alpha1.LabelScope] = s.scope()

	if name := s.copies(); name != "" {
		labels[labelCopyOf] = name
	}

	annotations := map[string]string{annotationRevision: target}
	if again {
		annotations[annotationRestarted] = target
	}

	pod := hardenedPod().
		WithServiceAccountName(s.ownMembers()).
		WithTerminationGracePeriodSeconds(gracePeriodSeconds).
		WithTolerations(
			lost(corev1.TaintNodeNotReady),
			lost(corev1.TaintNodeUnreachable),
		).
		WithTopologySpreadConstraints(s.spread()...).
		WithContainers(s.postgres(letter)).
		WithVolumes(s.volumes()...).
		WithVolumes(s.backupVolumes()...)
	pod.SecurityContext.WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)

	if s.exports() {
		pod.WithContainers(s.exporter())
	}

	for _, name := range s.pullSecrets() {
		pod.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(name))
	}

	return applycorev1.PodTemplateSpec().WithLabels(labels).WithAnnotations(annotations).WithSpec(pod)
}

// pullSecrets open private registries.
func (s *state) pullSecrets() []string {
	names := make([]string, 0, len(s.spec.ImagePullSecrets))
	for _, ref := range s.spec.ImagePullSecrets {
		names = append(names, ref.Name)
	}

	return names
}

// lost node: a member leaves it after a while. Kubernetes itself waits for five
// minutes.
func lost(taint string) *applycorev1.TolerationApplyConfiguration {
	return applycorev1.Toleration().
		WithKey(taint).
		WithOperator(corev1.TolerationOpExists).
		WithEffect(corev1.TaintEffectNoExecute).
		WithTolerationSeconds(lostSeconds)
}

// spread of the members. A node without a zone would take none if zones were asked
// for, so that they are only where nodes have them.
func (s *state) spread() []*applycorev1.TopologySpreadConstraintApplyConfiguration {
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

// postgres container: the program of the members, which runs Patroni, which runs
// the server. There is no limit on CPU: a throttled leader would look like a lost
// one.
func (s *state) postgres(letter string) *applycorev1.ContainerApplyConfiguration {
	field := func(name, path string) *applycorev1.EnvVarApplyConfiguration {
		return applycorev1.EnvVar().WithName(name).WithValueFrom(applycorev1.EnvVarSource().
			WithFieldRef(applycorev1.ObjectFieldSelector().WithFieldPath(path)))
	}

	value := func(name, v string) *applycorev1.EnvVarApplyConfiguration {
		return applycorev1.EnvVar().WithName(name).WithValue(v)
	}

	get := func(path string, period, timeout, failures int32) *applycorev1.ProbeApplyConfiguration {
		return applycorev1.Probe().
			WithHTTPGet(applycorev1.HTTPGetAction().WithPath(path).WithPort(intstr.FromInt32(postgres.PortHealth))).
			WithPeriodSeconds(period).
			WithTimeoutSeconds(timeout).
			WithFailureThreshold(failures)
	}

	return hardened(applycorev1.Container().
		WithName(containerPostgres).
		WithImage(s.image.name).
		WithPorts(port("postgres", postgres.PortPostgres), port("patroni", postgres.PortPatroni), port("health", postgres.PortHealth)).
		WithEnv(
			field("POD_NAME", "metadata.name"),
			field("POD_NAMESPACE", "metadata.namespace"),
			field("POD_IP", "status.podIP"),
			value("CAPSTAN_DATABASE", s.base()),
			value("CAPSTAN_MEMBER", s.member(letter)),
			value("CAPSTAN_SCOPE", s.scope()),
			value("CAPSTAN_IDENTITY", s.identity),
			value("CAPSTAN_VERSION", s.spec.Version),
		).
		WithResources(applycorev1.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: s.size.cpu, corev1.ResourceMemory: s.size.memory}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: s.size.memory})).
		WithLivenessProbe(get("/livez", 10, 5, 6)).
		WithReadinessProbe(get("/readyz", 2, 2, 3)).
		WithLifecycle(applycorev1.Lifecycle().WithPreStop(applycorev1.LifecycleHandler().
			WithExec(applycorev1.ExecAction().WithCommand(memberProgram, "handover")))).
		WithVolumeMounts(
			mount(volumeData, "/data", false),
			mount(volumeSocket, postgres.SocketDir, false),
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

// exports tells whether an exporter runs beside each server.
func (s *state) exports() bool { return *s.spec.Monitoring.Enabled }

// exporter of metrics. It comes by the socket, with the rights of a monitor.
func (s *state) exporter() *applycorev1.ContainerApplyConfiguration {
	memory := resource.MustParse("64Mi")

	c := hardened(applycorev1.Container().
		WithName(containerExporter).
		WithImage(s.image.name).
		WithCommand(exporterProgram).
		// How near transaction ids are to their end is not told unless it is asked for.
		WithArgs("--collector.database_wraparound").
		WithPorts(port(portMetrics, postgres.PortMetrics)).
		WithEnv(applycorev1.EnvVar().
			WithName("DATA_SOURCE_NAME").
			WithValue("host=" + postgres.SocketDir + " user=exporter dbname=postgres sslmode=disable")).
		WithResources(applycorev1.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: memory}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: memory})).
		WithVolumeMounts(mount(volumeSocket, postgres.SocketDir, true)))
	c.SecurityContext.WithRunAsUser(userExporter).WithRunAsGroup(groupPostgres)

	return c
}

// hardenedPod has no token, and its files are of the group of PostgreSQL.
func hardenedPod() *applycorev1.PodSpecApplyConfiguration {
	return applycorev1.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithSecurityContext(applycorev1.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithRunAsUser(userPostgres).
			WithRunAsGroup(groupPostgres).
			WithFSGroup(groupPostgres).
			WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)))
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

// volumes beside the data.
func (s *state) volumes() []*applycorev1.VolumeApplyConfiguration {
	volume := func(name string) *applycorev1.VolumeApplyConfiguration { return applycorev1.Volume().WithName(name) }

	empty := func(name string, limit resource.Quantity, medium corev1.StorageMedium) *applycorev1.VolumeApplyConfiguration {
		e := applycorev1.EmptyDirVolumeSource().WithSizeLimit(limit)
		if medium != "" {
			e.WithMedium(medium)
		}

		return volume(name).WithEmptyDir(e)
	}

	// Only the group of the server reads keys.
	secret := func(name, of string) *applycorev1.VolumeApplyConfiguration {
		return volume(name).WithSecret(applycorev1.SecretVolumeSource().WithSecretName(of).WithDefaultMode(0o440))
	}

	access := secret(volumeAccess, s.called(suffixAccess))
	access.Secret.WithItems(applycorev1.KeyToPath().WithKey(keyVerifier).WithPath(keyVerifier))

	// Workers of one query share memory here. It counts as memory of the container.
	shared := *resource.NewQuantity(s.size.memory.Value()/4, resource.BinarySI)

	return []*applycorev1.VolumeApplyConfiguration{
		empty(volumeSocket, resource.MustParse("16Mi"), ""),
		empty(volumeTLS, resource.MustParse("4Mi"), corev1.StorageMediumMemory),
		empty(volumeTmp, resource.MustParse("256Mi"), ""),
		empty(volumeShared, shared, corev1.StorageMediumMemory),
		volume(volumeConfig).WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(s.ownMembers())),
		secret(volumeMembers, s.called(suffixOfMembers)),
		secret(volumeServer, s.serverSecret()),
		access,
		volume(volumeToken).WithProjected(applycorev1.ProjectedVolumeSource().
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
