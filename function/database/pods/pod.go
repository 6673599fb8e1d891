// SPDX-License-Identifier: Apache-2.0

// Package pods has the pods of members, and the parts that other pods of a Database share with them.
package pods

import (
	"maps"
	"slices"
	"strconv"
	"strings"

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
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/placement"
)

// gracePeriodSeconds is how long a member may take to hand over and to end. A server that is killed has to recover.
const gracePeriodSeconds = 300

// lostSeconds is how long a member stays bound to a node that is gone.
const lostSeconds = 30

// SetSpec of a new member.
func SetSpec(s *facts.Cluster, letter, target string) *applyappsv1.StatefulSetSpecApplyConfiguration {
	retain := appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	whenDeleted := retain
	if s.Preview != "" {
		whenDeleted = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	return applyappsv1.StatefulSetSpec().
		WithReplicas(1).
		WithServiceName(s.Called(names.SuffixPods)).
		// A pod that never gets ready must not block its own repair.
		WithPodManagementPolicy(appsv1.ParallelPodManagement).
		WithUpdateStrategy(applyappsv1.StatefulSetUpdateStrategy().WithType(appsv1.RollingUpdateStatefulSetStrategyType)).
		WithRevisionHistoryLimit(2).
		WithPersistentVolumeClaimRetentionPolicy(applyappsv1.StatefulSetPersistentVolumeClaimRetentionPolicy().
			WithWhenDeleted(whenDeleted).WithWhenScaled(retain)).
		WithSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{
			observev1alpha1.LabelDatabase: s.Base(), observev1alpha1.LabelMember: s.Member(letter),
		})).
		WithTemplate(PodTemplate(s, letter, target, false)).
		WithVolumeClaimTemplates(claim(s, letter))
}

// claim of the data of a new member. Its labels identify the Database of the data.
func claim(s *facts.Cluster, letter string) *applycorev1.PersistentVolumeClaimApplyConfiguration {
	c := &applycorev1.PersistentVolumeClaimApplyConfiguration{}
	return c.WithName(names.VolumeData).
		WithLabels(map[string]string{
			observev1alpha1.LabelDatabase: s.Base(),
			observev1alpha1.LabelMember:   s.Member(letter),
			observev1alpha1.LabelIdentity: s.Identity,
		}).
		WithLabels(DataLabels(s)).
		WithSpec(ClaimSpec(s))
}

// DataLabels of a volume of data, beside those that it is found by.
func DataLabels(s *facts.Cluster) map[string]string {
	labels := map[string]string{names.LabelGeneration: strconv.Itoa(max(1, s.Generation))}
	maps.Copy(labels, s.Disposable())
	return labels
}

// ClaimSpec of a volume like the volumes of new members.
func ClaimSpec(s *facts.Cluster) *applycorev1.PersistentVolumeClaimSpecApplyConfiguration {
	spec := applycorev1.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(applycorev1.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: s.Sizes.Created}))
	if c := s.Size.StorageClassName; c != "" {
		spec.WithStorageClassName(c)
	}
	return spec
}

// PodTemplate of a member. It satisfies the Pod Security Standard "restricted".
func PodTemplate(s *facts.Cluster, letter, target string, again bool) *applycorev1.PodTemplateSpecApplyConfiguration {
	labels, annotations := placement.Labels(s.Spec.PodMetadata), placement.Annotations(s.Spec.PodMetadata)
	maps.Copy(labels, s.MemberLabels(letter))
	labels[observev1alpha1.LabelScope] = s.Scope()
	if name := backup.SourceDatabase(s); name != "" {
		labels[names.LabelCopyOf] = name
	}
	annotations[names.AnnotationRevision] = target
	if again {
		annotations[names.AnnotationRestarted] = target
	}
	pod := HardenedPod(s).
		WithServiceAccountName(s.OwnMembers()).
		WithTerminationGracePeriodSeconds(gracePeriodSeconds).
		WithTolerations(
			Lost(corev1.TaintNodeNotReady),
			Lost(corev1.TaintNodeUnreachable),
		).
		WithTopologySpreadConstraints(spread(s)...).
		WithContainers(serverContainer(s, letter)).
		WithVolumes(volumes(s)...).
		WithVolumes(walVolume(s, letter)...).
		WithVolumes(backupVolumes(s)...)
	WithRole(s, pod)
	toPods(pod, s)
	pod.SecurityContext.WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	if s.Exports() {
		pod.WithContainers(exporter(s))
	}
	return applycorev1.PodTemplateSpec().WithLabels(labels).WithAnnotations(annotations).WithSpec(pod)
}

// Lost node: a member leaves it after a while. Kubernetes itself waits for five minutes.
func Lost(taint string) *applycorev1.TolerationApplyConfiguration {
	return applycorev1.Toleration().
		WithKey(taint).
		WithOperator(corev1.TolerationOpExists).
		WithEffect(corev1.TaintEffectNoExecute).
		WithTolerationSeconds(lostSeconds)
}

// spread of the members. Zones are a constraint only where nodes have them, because a node without a zone would get no members.
func spread(s *facts.Cluster) []*applycorev1.TopologySpreadConstraintApplyConfiguration {
	over := func(key string) *applycorev1.TopologySpreadConstraintApplyConfiguration {
		return applycorev1.TopologySpreadConstraint().
			WithMaxSkew(1).
			WithTopologyKey(key).
			WithWhenUnsatisfiable(corev1.DoNotSchedule).
			WithNodeTaintsPolicy(corev1.NodeInclusionPolicyHonor).
			WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(s.Selector()))
	}
	switch hosts := over(corev1.LabelHostname); {
	case s.Spec.Availability.Spread == v1alpha1.SpreadAnywhere:
		return nil
	case s.Spec.Availability.Spread == v1alpha1.SpreadOverZones && len(s.Seen.Zones) > 0:
		return []*applycorev1.TopologySpreadConstraintApplyConfiguration{over(corev1.LabelTopologyZone), hosts}
	default:
		return []*applycorev1.TopologySpreadConstraintApplyConfiguration{hosts}
	}
}

// serverContainer: the program of the members, which runs the server. There is no limit on CPU: a throttled leader would look
// like a lost one.
func serverContainer(s *facts.Cluster, letter string) *applycorev1.ContainerApplyConfiguration {
	return Hardened(applycorev1.Container().
		WithName(s.Traits.App).
		WithImage(s.Image.Name).
		WithPorts(serverPorts(s.Traits)...).
		WithEnv(
			FieldEnv("POD_NAME", "metadata.name"),
			FieldEnv("POD_NAMESPACE", "metadata.namespace"),
			FieldEnv("POD_IP", "status.podIP"),
			Env("CAPSTAN_DATABASE", s.Base()),
			Env("CAPSTAN_MEMBER", s.Member(letter)),
			Env("CAPSTAN_SCOPE", s.Scope()),
			Env("CAPSTAN_IDENTITY", s.Identity),
			Env("CAPSTAN_VERSION", s.Data),
		).
		WithEnv(Logs(s)...).
		WithEnv(ownParameters(s)...).
		WithResources(memberResources(s)).
		WithLivenessProbe(Probe(&s.Names, "/livez", 10, 5, 6)).
		WithReadinessProbe(Probe(&s.Names, "/readyz", 2, 2, 3)).
		WithLifecycle(applycorev1.Lifecycle().WithPreStop(applycorev1.LifecycleHandler().
			WithExec(applycorev1.ExecAction().WithCommand(MemberProgram, "handover")))).
		WithVolumeMounts(
			Mount(names.VolumeData, "/data", false),
			Mount(names.VolumeSocket, s.Traits.SocketDir, false),
			Mount(names.VolumeTLS, "/run/capstan", false),
			Mount(names.VolumeTmp, "/tmp", false),
			Mount(names.VolumeShared, "/dev/shm", false),
			Mount(names.VolumeConfig, "/etc/capstan/config", true),
			Mount(names.VolumeMembers, "/etc/capstan/tls/members", true),
			Mount(names.VolumeServer, "/etc/capstan/tls/server", true),
			Mount(names.VolumeAccess, "/etc/capstan/access", true),
			TokenMount(),
		).
		WithVolumeMounts(walMount(s)...).
		WithVolumeMounts(backupMounts(s)...))
}

// ownParameters of the server, which follow from what its pod has.
func ownParameters(s *facts.Cluster) []*applycorev1.EnvVarApplyConfiguration {
	ps := s.Engine.OwnParameters(s.Fields())
	if len(ps) == 0 {
		return nil
	}
	return []*applycorev1.EnvVarApplyConfiguration{Env("CAPSTAN_PARAMETERS", Verbatim(encoding.JSON(ps)))}
}

// memberResources are the size of a member. Huge pages are beside the memory, and Kubernetes takes no request of them without the same limit.
func memberResources(s *facts.Cluster) *applycorev1.ResourceRequirementsApplyConfiguration {
	r := Resources(s.Size.CPU, s.Size.Memory, s.Size.Memory)
	if h := s.Spec.Resources.HugePages; h != nil {
		name := corev1.ResourceName(corev1.ResourceHugePagesPrefix + h.Size)
		(*r.Requests)[name], (*r.Limits)[name] = h.Amount, h.Amount
	}
	return r
}

func serverPorts(t engine.Traits) []*applycorev1.ContainerPortApplyConfiguration {
	ports := []*applycorev1.ContainerPortApplyConfiguration{
		Port(t.App, t.Ports.Client), Port(t.CoordinationPort, t.Ports.Coordination), Port("health", t.Ports.Health),
	}
	if t.Ports.Peers != 0 {
		ports = append(ports, Port(t.PeersPort, t.Ports.Peers))
	}
	return ports
}

// exporter of metrics. It comes by the socket, with the rights of a monitor. Its memory grows with the number of databases and tables, so
// that the limit is a multiple of what it takes at first.
func exporter(s *facts.Cluster) *applycorev1.ContainerApplyConfiguration {
	e, memory, most := s.Traits.Exporter, resource.MustParse("64Mi"), resource.MustParse("192Mi")
	c := Hardened(applycorev1.Container().
		WithName("exporter").
		WithImage(s.Image.Name).
		WithCommand(e.Command...).
		WithArgs(e.Args...).
		WithArgs(exporterLogs(s)...).
		WithPorts(Port(names.PortMetrics, s.Traits.Ports.Metrics)).
		WithResources(Resources(resource.MustParse("10m"), memory, most)).
		WithVolumeMounts(Mount(names.VolumeSocket, s.Traits.SocketDir, true)))
	if len(s.Spec.Monitoring.Queries) > 0 {
		// The program runs the exporter, and queries beside it.
		c.Command, c.Args = []string{MemberProgram}, slices.Concat([]string{"exporter"}, c.Command, c.Args)
		c.WithVolumeMounts(Mount(names.VolumeConfig, "/etc/capstan/config", true))
	}
	for _, name := range compose.SortedKeys(e.Env) {
		c.WithEnv(Env(name, e.Env[name]))
	}
	c.SecurityContext.WithRunAsUser(e.User).WithRunAsGroup(s.Traits.Group)
	return c
}

// Logs is how the program of a container learns what logs look like, unless they are text.
func Logs(s *facts.Cluster) []*applycorev1.EnvVarApplyConfiguration {
	if !s.LogsJSON() {
		return nil
	}
	return []*applycorev1.EnvVarApplyConfiguration{Env("CAPSTAN_LOGS", string(s.Spec.Logs.Format))}
}

// exporterLogs are arguments of exporters, which are the same for all from the Prometheus project.
func exporterLogs(s *facts.Cluster) []string {
	if !s.LogsJSON() {
		return nil
	}
	return []string{"--log.format=json"}
}

// HardenedPod has no token, its files are of the group of the server, and it runs where spec.pod says.
func HardenedPod(s *facts.Cluster) *applycorev1.PodSpecApplyConfiguration {
	pod := applycorev1.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithSecurityContext(applycorev1.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithRunAsUser(s.Traits.User).
			WithRunAsGroup(s.Traits.Group).
			WithFSGroup(s.Traits.Group).
			WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)))
	for _, name := range s.PullSecrets() {
		pod.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(name))
	}
	placement.Apply(pod, s.Scheduling())
	toNodes(pod, s.NodeAffinity())
	return pod
}

// Hardened container: it satisfies the Pod Security Standard "restricted".
func Hardened(c *applycorev1.ContainerApplyConfiguration) *applycorev1.ContainerApplyConfiguration {
	return c.
		// So that a report can quote the last lines of a container that ended.
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(applycorev1.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(applycorev1.Capabilities().WithDrop("ALL")))
}

// Port of a container.
func Port(name string, number int32) *applycorev1.ContainerPortApplyConfiguration {
	return applycorev1.ContainerPort().WithName(name).WithProtocol(corev1.ProtocolTCP).WithContainerPort(number)
}

// Env is a variable with a value.
func Env(name, value string) *applycorev1.EnvVarApplyConfiguration {
	return applycorev1.EnvVar().WithName(name).WithValue(value)
}

// FieldEnv is a variable with the value of a field of its pod.
func FieldEnv(name, path string) *applycorev1.EnvVarApplyConfiguration {
	return applycorev1.EnvVar().WithName(name).WithValueFrom(applycorev1.EnvVarSource().
		WithFieldRef(applycorev1.ObjectFieldSelector().WithFieldPath(path)))
}

// Resources of a container that may use any CPU that nothing else needs.
func Resources(cpu, memory, most resource.Quantity) *applycorev1.ResourceRequirementsApplyConfiguration {
	return applycorev1.ResourceRequirements().
		WithRequests(corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}).
		WithLimits(corev1.ResourceList{corev1.ResourceMemory: most})
}

// Mount of a volume.
func Mount(volume, path string, readOnly bool) *applycorev1.VolumeMountApplyConfiguration {
	m := applycorev1.VolumeMount().WithName(volume).WithMountPath(path)
	if readOnly {
		m.WithReadOnly(true)
	}
	return m
}

// EmptyVolume on the node's disk, or in memory.
func EmptyVolume(name string, limit resource.Quantity, medium corev1.StorageMedium) *applycorev1.VolumeApplyConfiguration {
	e := applycorev1.EmptyDirVolumeSource().WithSizeLimit(limit)
	if medium != "" {
		e.WithMedium(medium)
	}
	return applycorev1.Volume().WithName(name).WithEmptyDir(e)
}

// ConfigVolume with the keys of a ConfigMap.
func ConfigVolume(name, config string) *applycorev1.VolumeApplyConfiguration {
	return applycorev1.Volume().WithName(name).WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(config))
}

// SecretVolume whose keys only the group of the server reads.
func SecretVolume(name, secret string) *applycorev1.VolumeApplyConfiguration {
	return applycorev1.Volume().WithName(name).WithSecret(applycorev1.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(0o440))
}

// Probe of a program of ours.
func Probe(s *names.Names, path string, period, timeout, failures int32) *applycorev1.ProbeApplyConfiguration {
	return applycorev1.Probe().
		WithHTTPGet(applycorev1.HTTPGetAction().WithPath(path).WithPort(intstr.FromInt32(s.Traits.Ports.Health))).
		WithPeriodSeconds(period).WithTimeoutSeconds(timeout).WithFailureThreshold(failures)
}

// walVolume of a member, if the spec has one. Claims in a StatefulSet cannot change, so this one is none of them, also of a new member.
func walVolume(s *facts.Cluster, letter string) []*applycorev1.VolumeApplyConfiguration {
	if s.Spec.WALStorage == nil {
		return nil
	}
	return []*applycorev1.VolumeApplyConfiguration{applycorev1.Volume().WithName(names.VolumeWAL).
		WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().WithClaimName(s.WALClaim(letter)))}
}

func walMount(s *facts.Cluster) []*applycorev1.VolumeMountApplyConfiguration {
	if s.Spec.WALStorage == nil {
		return nil
	}
	return []*applycorev1.VolumeMountApplyConfiguration{Mount(names.VolumeWAL, s.Traits.LogDir, false)}
}

// volumes beside the data.
func volumes(s *facts.Cluster) []*applycorev1.VolumeApplyConfiguration {
	access := SecretVolume(names.VolumeAccess, s.Called(names.SuffixAccess))
	access.Secret.WithItems(applycorev1.KeyToPath().WithKey(names.KeyVerifier).WithPath(names.KeyVerifier))
	// Workers of one query share memory here. It counts as memory of the container.
	shared := *resource.NewQuantity(s.Size.Memory.Value()/4, resource.BinarySI)
	return []*applycorev1.VolumeApplyConfiguration{
		EmptyVolume(names.VolumeSocket, resource.MustParse("16Mi"), ""),
		EmptyVolume(names.VolumeTLS, resource.MustParse("4Mi"), corev1.StorageMediumMemory),
		EmptyVolume(names.VolumeTmp, resource.MustParse("256Mi"), ""),
		EmptyVolume(names.VolumeShared, shared, corev1.StorageMediumMemory),
		ConfigVolume(names.VolumeConfig, s.OwnMembers()),
		SecretVolume(names.VolumeMembers, s.Called(names.SuffixOfMembers)),
		SecretVolume(names.VolumeServer, s.ServerSecret()),
		access,
		TokenVolume(),
	}
}

// TokenVolume has what the account of a pod needs to use the API server.
func TokenVolume() *applycorev1.VolumeApplyConfiguration {
	return applycorev1.Volume().WithName(names.VolumeToken).WithProjected(applycorev1.ProjectedVolumeSource().
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
		))
}

// TokenMount is where clients of the API server look for it.
func TokenMount() *applycorev1.VolumeMountApplyConfiguration {
	return Mount(names.VolumeToken, "/var/run/secrets/kubernetes.io/serviceaccount", true)
}

// Verbatim text in an environment variable, in which Kubernetes would put the values of others in for $(…).
func Verbatim(text string) string { return strings.ReplaceAll(text, "$", "$$") }
