// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/postgres"
)

// Names of the objects of a volume of backups within the composition.
const (
	nameRepository                  = "repository"
	nameRepositoryCertificate       = "repository-certificate"
	nameRepositoryClientCertificate = "repository-client-certificate"
	nameRepositoryNetworkPolicy     = "repository-networkpolicy"
	nameRepositoryService           = "repository-service"
	nameRepositoryVolumeClaim       = "repository-volumeclaim"
)

// Labels of what has to do with a volume of backups.
const (
	// labelRepositoryOf is on the pod that serves it, and on its claim.
	labelRepositoryOf = "capstan.dev/repository-of"

	// labelCopyOf is on the pods of members that begin with the backups of another
	// Database of their namespace, whose volume lets them in by it.
	labelCopyOf = "capstan.dev/copy-of"
)

// identityOfRepository is the label of the claim in place of an identity: backups are
// kept under the name of the Database, as they are in a bucket, and whoever has the
// name has them.
const identityOfRepository = "repository"

// Ports of the host of a volume of backups, by their names.
const (
	portRepositoryBackups = "backups"
	portRepositoryArchive = "pgbackrest"
)

// repository of backups on a volume: a pod that serves it, its certificate and that of
// who may come, and how large it is. A Database that no longer keeps its backups there
// leaves it as it is, as it does a bucket.
func (s *state) repository() error {
	if s.Kinds[CertificateGVK] == compose.Available {
		s.offer(nameRepositoryCertificate, s.repositoryCertificate())
		s.offer(nameRepositoryClientCertificate, s.backupLeaf(suffixRepositoryClient, postgres.RepositoryCommonName))
	}

	s.offer(nameRepositoryService, s.repositoryService())
	s.offer(nameRepositoryNetworkPolicy, s.repositoryPolicy())

	set, err := s.repositorySet()
	if err != nil {
		return err
	}

	s.offer(nameRepository, set)

	gvk := storagev1alpha1.VolumeClaimGroupVersionKind
	s.offer(nameRepositoryVolumeClaim, compose.NewManifest(gvk.GroupVersion().String(), gvk.Kind, s.metadata(s.called(suffixRepository)),
		volumeClaimSpec{ForProvider: storagev1alpha1.VolumeClaimParameters{
			Database: s.repositoryBase(),
			Identity: identityOfRepository,
			Members:  []string{s.called(suffixRepository)},
			Size:     s.repositorySize(),
		}}))

	return nil
}

// repositoryBase is the value of the label of the Database on the claim. No Database
// has a dot in its name, and no generation is called so.
func (s *state) repositoryBase() string { return s.name + "." + suffixRepository }

// repositorySelector of the pod that serves the volume.
func (s *state) repositorySelector() map[string]string {
	return map[string]string{labelRepositoryOf: s.name}
}

// repositoryLabels of that pod. They are not those of members.
func (s *state) repositoryLabels() map[string]string {
	return map[string]string{
		labelName:         "postgres-repository",
		labelInstance:     s.name,
		labelManagedBy:    "capstan",
		labelRepositoryOf: s.name,
	}
}

// repositoryCertificate is what the host of the volume shows to members, and what
// opens their pgBackRest to it: it is the one who takes backups.
func (s *state) repositoryCertificate() *compose.Manifest[certificateSpec] {
	c := s.backupLeaf(suffixRepositoryServer, postgres.BackupCommonName)
	name := s.called(suffixRepository)
	c.Spec.DNSNames = []string{
		repositoryHost(s.namespace, s.name), repositoryHost(s.namespace, s.name) + ".cluster.local", name + "." + s.namespace, name,
	}
	c.Spec.Usages = []string{"digital signature", "server auth", "client auth"}

	return c
}

func (s *state) repositoryService() *applycorev1.ServiceApplyConfiguration {
	port := func(name string, number int32) *applycorev1.ServicePortApplyConfiguration {
		return applycorev1.ServicePort().WithName(name).WithProtocol(corev1.ProtocolTCP).WithPort(number).WithTargetPort(intstr.FromString(name))
	}

	return applycorev1.Service(s.called(suffixRepository), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applycorev1.ServiceSpec().
			WithSelector(s.repositorySelector()).
			WithPorts(port(portRepositoryArchive, postgres.PortBackup), port(portRepositoryBackups, postgres.PortRepository)))
}

// repositoryPolicy lets members, those who take and verify backups, and members of
// copies reach the host of the volume, and it only names and members.
func (s *state) repositoryPolicy() *applynetworkingv1.NetworkPolicyApplyConfiguration {
	labelled := func(label string) *peer {
		return applynetworkingv1.NetworkPolicyPeer().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{label: s.name}))
	}

	members := applynetworkingv1.NetworkPolicyPeer().WithPodSelector(s.everyMember())
	readers := []*peer{members, labelled(labelVerificationOf), labelled(labelCopyOf)}

	return applynetworkingv1.NetworkPolicy(s.called(suffixRepository), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(s.repositorySelector())).
			WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
			WithIngress(
				ingress(postgres.PortBackup, readers...),
				ingress(postgres.PortRepository, append(readers, labelled(labelBackupOf))...)).
			WithEgress(
				toNameServers(),
				applynetworkingv1.NetworkPolicyEgressRule().WithTo(members).WithPorts(at(corev1.ProtocolTCP, postgres.PortBackup))))
}

// toRepository lets pods reach the host of the volume of backups.
func (s *state) toRepository() *applynetworkingv1.NetworkPolicyEgressRuleApplyConfiguration {
	return applynetworkingv1.NetworkPolicyEgressRule().
		WithTo(applynetworkingv1.NetworkPolicyPeer().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(s.repositorySelector()))).
		WithPorts(at(corev1.ProtocolTCP, postgres.PortBackup), at(corev1.ProtocolTCP, postgres.PortRepository))
}

// repositorySet runs the pod that serves the volume. Its claim cannot be changed once
// it was made; the VolumeClaim lets it grow.
func (s *state) repositorySet() (named, error) {
	whenDeleted := appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	if s.spec.Backup.OnDelete == v1alpha1.BackupsDeleted {
		whenDeleted = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}

	set := applyappsv1.StatefulSet(s.called(suffixRepository), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applyappsv1.StatefulSetSpec().
			WithReplicas(1).
			WithServiceName(s.called(suffixRepository)).
			// A pod that never gets ready must not block its own repair.
			WithPodManagementPolicy(appsv1.ParallelPodManagement).
			WithRevisionHistoryLimit(2).
			WithPersistentVolumeClaimRetentionPolicy(applyappsv1.StatefulSetPersistentVolumeClaimRetentionPolicy().
				WithWhenDeleted(whenDeleted).WithWhenScaled(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(s.repositorySelector())).
			WithTemplate(applycorev1.PodTemplateSpec().WithLabels(s.repositoryLabels()).WithSpec(s.repositoryPod())))

	live := s.Observed[nameRepository]
	if live == nil {
		set.Spec.WithVolumeClaimTemplates(s.repositoryClaimTemplate())
		return set, nil
	}

	k, err := compose.AsMap(set)
	if err != nil {
		return nil, fmt.Errorf("cannot render the host of the volume of backups: %w", err)
	}

	return with(k, nil, map[string]any{"volumeClaimTemplates": compose.List(live.Map(), "spec", "volumeClaimTemplates")}), nil
}

// repositoryClaimTemplate has the labels by which it is guarded and let grow.
func (s *state) repositoryClaimTemplate() *applycorev1.PersistentVolumeClaimApplyConfiguration {
	spec := applycorev1.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(applycorev1.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: s.repositorySize()}))

	if c := s.repositoryClass(); c != "" {
		spec.WithStorageClassName(c)
	}

	labels := s.repositorySelector()
	maps.Copy(labels, map[string]string{
		observev1alpha1.LabelDatabase: s.repositoryBase(),
		observev1alpha1.LabelMember:   s.called(suffixRepository),
		observev1alpha1.LabelIdentity: identityOfRepository,
	})

	c := &applycorev1.PersistentVolumeClaimApplyConfiguration{}

	return c.WithName(volumeData).WithLabels(labels).WithSpec(spec)
}

// repositoryImage is that of the leader: pgBackRest talks only to another one of its
// own version, and what is archived must not wait for who is not updated yet.
func (s *state) repositoryImage() string {
	if o, ok := s.sets[s.letterOf(s.seen.Leader)]; ok {
		for _, c := range compose.List(o.object.Map(), "spec", "template", "spec", "containers") {
			if container, ok := c.(map[string]any); ok && container["name"] == containerPostgres {
				return compose.Text(container, "image")
			}
		}
	}

	// Between two leaders it stays.
	if o := s.Observed[nameRepository]; o != nil {
		for _, c := range compose.List(o.Map(), "spec", "template", "spec", "containers") {
			if container, ok := c.(map[string]any); ok {
				return compose.Text(container, "image")
			}
		}
	}

	return s.image.name
}

// readerImage is that of pods which read backups: where a host serves them, its own,
// for the same reason.
func (s *state) readerImage() string {
	if s.volumed() {
		return s.repositoryImage()
	}

	return s.image.name
}

// repositoryPod serves the volume. It satisfies the Pod Security Standard
// "restricted", and runs where no member does if there is such a node.
func (s *state) repositoryPod() *applycorev1.PodSpecApplyConfiguration {
	probe := func(path string) *applycorev1.ProbeApplyConfiguration {
		return applycorev1.Probe().
			WithHTTPGet(applycorev1.HTTPGetAction().WithPath(path).WithPort(intstr.FromInt32(postgres.PortHealth))).
			WithPeriodSeconds(10).WithTimeoutSeconds(5).WithFailureThreshold(3)
	}

	apart := func(weight int32, key string) *applycorev1.WeightedPodAffinityTermApplyConfiguration {
		return applycorev1.WeightedPodAffinityTerm().WithWeight(weight).
			WithPodAffinityTerm(applycorev1.PodAffinityTerm().
				WithTopologyKey(key).
				// Members of all generations have these.
				WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{labelName: "postgres", labelInstance: s.name})))
	}

	pod := applycorev1.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(60).
		WithSecurityContext(applycorev1.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithRunAsUser(userPostgres).
			WithRunAsGroup(groupPostgres).
			WithFSGroup(groupPostgres).
			WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
			WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithAffinity(applycorev1.Affinity().WithPodAntiAffinity(applycorev1.PodAntiAffinity().
			WithPreferredDuringSchedulingIgnoredDuringExecution(apart(100, corev1.LabelHostname), apart(50, corev1.LabelTopologyZone)))).
		WithContainers(hardened(applycorev1.Container().
			WithName("repository").
			WithImage(s.repositoryImage()).
			WithCommand(memberProgram, "repository").
			WithEnv(applycorev1.EnvVar().WithName("POD_IP").WithValueFrom(applycorev1.EnvVarSource().
				WithFieldRef(applycorev1.ObjectFieldSelector().WithFieldPath("status.podIP")))).
			WithPorts(port(portRepositoryArchive, postgres.PortBackup), port(portRepositoryBackups, postgres.PortRepository), port("health", postgres.PortHealth)).
			WithResources(applycorev1.ResourceRequirements().
				WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}).
				WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")})).
			WithLivenessProbe(probe("/livez")).
			WithReadinessProbe(probe("/readyz")).
			WithVolumeMounts(
				mount(volumeData, "/data", false),
				mount(volumeTmp, "/tmp", false),
				mount(volumeMembers, "/etc/capstan/tls/members", true)))).
		WithVolumes(
			applycorev1.Volume().WithName(volumeTmp).WithEmptyDir(applycorev1.EmptyDirVolumeSource().WithSizeLimit(resource.MustParse("256Mi"))),
			applycorev1.Volume().WithName(volumeMembers).
				WithSecret(applycorev1.SecretVolumeSource().WithSecretName(s.called(suffixRepositoryServer)).WithDefaultMode(0o440)))

	s.withKey(pod)

	for _, name := range s.pullSecrets() {
		pod.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(name))
	}

	return pod
}
