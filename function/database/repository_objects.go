// SPDX-License-Identifier: Apache-2.0

package database

import (
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

	// labelCopyOf is on the pods of members that begin with the backups of another Database of their namespace, whose volume lets
	// them in by it.
	labelCopyOf = "capstan.dev/copy-of"
)

// identityOfRepository is the label of the claim in place of an identity: backups are kept under the name of the Database, as
// they are in a bucket, and whoever has the name has them.
const identityOfRepository = "repository"

// Ports of the host of a volume of backups, by their names.
const (
	portRepositoryBackups = "backups"
)

// repository of backups on a volume: a pod that serves it, its certificate and that of who may come, and how large it is. A
// Database that no longer keeps its backups there leaves it as it is, as it does a bucket.
func repository(d *compose.Draft, s *cluster) {
	if s.Kinds[CertificateGVK] == compose.Available {
		d.Offer(nameRepositoryCertificate, s.repositoryCertificate())
		d.Offer(nameRepositoryClientCertificate, s.backupLeaf(suffixRepositoryClient, s.traits.CommonNames.Repository))
	}
	d.Offer(nameRepositoryService, s.repositoryService())
	d.Offer(nameRepositoryNetworkPolicy, s.repositoryPolicy())
	d.Offer(nameRepository, s.repositorySet())
	gvk := storagev1alpha1.VolumeClaimGroupVersionKind
	d.Offer(nameRepositoryVolumeClaim, compose.NewManifest(gvk.GroupVersion().String(), gvk.Kind, s.metadata(s.called(suffixRepository)),
		volumeClaimSpec{ForProvider: storagev1alpha1.VolumeClaimParameters{
			Database: s.repositoryBase(),
			Identity: identityOfRepository,
			Members:  []string{s.called(suffixRepository)},
			Size:     s.repositorySize(),
		}}))
}

// repositoryBase is the value of the label of the Database on the claim. No Database has a dot in its name, and no generation is
// called so.
func (s *names) repositoryBase() string { return s.name + "." + suffixRepository }

// repositorySelector of the pod that serves the volume.
func (s *names) repositorySelector() map[string]string {
	return map[string]string{labelRepositoryOf: s.name}
}

// repositoryLabels of that pod. They are not those of members.
func (s *names) repositoryLabels() map[string]string {
	return map[string]string{
		labelName:         s.traits.App + "-repository",
		labelInstance:     s.name,
		labelManagedBy:    "capstan",
		labelRepositoryOf: s.name,
	}
}

// repositoryCertificate is what the host of the volume shows to members, and what opens their backup tool to it: it takes the
// backups.
func (s *names) repositoryCertificate() *compose.Manifest[certificateSpec] {
	c := s.backupLeaf(suffixRepositoryServer, s.traits.CommonNames.Backup)
	name := s.called(suffixRepository)
	c.Spec.DNSNames = []string{
		repositoryHost(s.namespace, s.name), repositoryHost(s.namespace, s.name) + ".cluster.local", name + "." + s.namespace, name,
	}
	c.Spec.Usages = []string{"digital signature", "server auth", "client auth"}
	return c
}

func (s *names) repositoryService() *applycorev1.ServiceApplyConfiguration {
	port := func(name string, number int32) *applycorev1.ServicePortApplyConfiguration {
		return applycorev1.ServicePort().WithName(name).WithProtocol(corev1.ProtocolTCP).WithPort(number).WithTargetPort(intstr.FromString(name))
	}
	return applycorev1.Service(s.called(suffixRepository), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applycorev1.ServiceSpec().
			WithSelector(s.repositorySelector()).
			WithPorts(port(s.traits.BackupPort, s.traits.Ports.Backup), port(portRepositoryBackups, s.traits.Ports.Repository)))
}

// repositoryPolicy lets members, those who take and verify backups, and members of copies reach the host of the volume, and it
// only names and members.
func (s *cluster) repositoryPolicy() *applynetworkingv1.NetworkPolicyApplyConfiguration {
	labelled := func(label string) *compose.Peer {
		return applynetworkingv1.NetworkPolicyPeer().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{label: s.name}))
	}
	members := applynetworkingv1.NetworkPolicyPeer().WithPodSelector(s.everyMember())
	readers := []*compose.Peer{members, labelled(labelVerificationOf), labelled(labelCopyOf)}
	return applynetworkingv1.NetworkPolicy(s.called(suffixRepository), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(s.repositorySelector())).
			WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
			WithIngress(
				ingress(s.traits.Ports.Backup, readers...),
				ingress(s.traits.Ports.Repository, append(readers, labelled(labelBackupOf))...)).
			WithEgress(
				toNameServers(),
				applynetworkingv1.NetworkPolicyEgressRule().WithTo(members).WithPorts(at(corev1.ProtocolTCP, s.traits.Ports.Backup))))
}

// toRepository lets pods reach the host of the volume of backups.
func (s *names) toRepository() *applynetworkingv1.NetworkPolicyEgressRuleApplyConfiguration {
	return applynetworkingv1.NetworkPolicyEgressRule().
		WithTo(applynetworkingv1.NetworkPolicyPeer().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(s.repositorySelector()))).
		WithPorts(at(corev1.ProtocolTCP, s.traits.Ports.Backup), at(corev1.ProtocolTCP, s.traits.Ports.Repository))
}

// repositorySet runs the pod that serves the volume. Its claim cannot be changed once it was made; the VolumeClaim lets it grow.
func (s *cluster) repositorySet() compose.Named {
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
		return set
	}
	return with(plain(set), nil, map[string]any{"volumeClaimTemplates": compose.List(live.Map(), "spec", "volumeClaimTemplates")})
}

// repositoryClaimTemplate has the labels by which it is guarded and let grow.
func (s *cluster) repositoryClaimTemplate() *applycorev1.PersistentVolumeClaimApplyConfiguration {
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

// repositoryImage is that of the leader: the backup tool talks only to another one of its own version, and what is archived must
// not wait for who is not updated yet.
func (s *cluster) repositoryImage() string {
	if o, ok := s.sets[s.letterOf(s.seen.Leader)]; ok {
		for _, c := range compose.List(o.object.Map(), "spec", "template", "spec", "containers") {
			if container, ok := c.(map[string]any); ok && container["name"] == s.traits.App {
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

// readerImage is that of pods which read backups: where a host serves them, its own, for the same reason.
func (s *cluster) readerImage() string {
	if s.isOnVolume() {
		return s.repositoryImage()
	}
	return s.image.name
}

// repositoryPod serves the volume. It satisfies the Pod Security Standard "restricted", and runs where no member does if there is
// such a node.
func (s *cluster) repositoryPod() *applycorev1.PodSpecApplyConfiguration {
	apart := func(weight int32, key string) *applycorev1.WeightedPodAffinityTermApplyConfiguration {
		return applycorev1.WeightedPodAffinityTerm().WithWeight(weight).
			WithPodAffinityTerm(applycorev1.PodAffinityTerm().
				WithTopologyKey(key).
				// Members of all generations have these.
				WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{labelName: s.traits.App, labelInstance: s.name})))
	}
	pod := s.hardenedPod().
		WithTerminationGracePeriodSeconds(60).
		WithAffinity(applycorev1.Affinity().WithPodAntiAffinity(applycorev1.PodAntiAffinity().
			WithPreferredDuringSchedulingIgnoredDuringExecution(apart(100, corev1.LabelHostname), apart(50, corev1.LabelTopologyZone)))).
		WithContainers(hardened(applycorev1.Container().
			WithName("repository").
			WithImage(s.repositoryImage()).
			WithCommand(memberProgram, "repository").
			WithEnv(applycorev1.EnvVar().WithName("POD_IP").WithValueFrom(applycorev1.EnvVarSource().
				WithFieldRef(applycorev1.ObjectFieldSelector().WithFieldPath("status.podIP")))).
			WithPorts(port(s.traits.BackupPort, s.traits.Ports.Backup), port(portRepositoryBackups, s.traits.Ports.Repository), port("health", s.traits.Ports.Health)).
			WithResources(applycorev1.ResourceRequirements().
				WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}).
				WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")})).
			WithLivenessProbe(s.probe("/livez", 10, 5, 3)).
			WithReadinessProbe(s.probe("/readyz", 10, 5, 3)).
			WithVolumeMounts(
				mount(volumeData, "/data", false),
				mount(volumeTmp, "/tmp", false),
				mount(volumeMembers, "/etc/capstan/tls/members", true)))).
		WithVolumes(
			emptyVolume(volumeTmp, resource.MustParse("256Mi"), ""),
			secretVolume(volumeMembers, s.called(suffixRepositoryServer)))
	pod.SecurityContext.WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	s.withKey(pod)
	return pod
}
