// SPDX-License-Identifier: Apache-2.0

// Package repository composes the host of a volume of backups.
package repository

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/certificates"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/members"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/network"
	"github.com/capstan-dev/capstan/function/database/objects"
	"github.com/capstan-dev/capstan/function/database/pods"
)

// identityOfRepository is the label of the claim in place of an identity: backups are kept under the name of the Database, as
// in a bucket, and belong to the Database that has the name.
const identityOfRepository = "repository"

// portRepositoryBackups is the name of the port that serves backups.
const portRepositoryBackups = "backups"

// Compose what backups on a volume need: a pod that serves the volume, the certificates of server and clients, and the size of
// the volume. A Database that no longer keeps its backups there leaves it as it is, as it does a bucket.
func Compose(d *compose.Draft, s *facts.Cluster) {
	if s.Kinds[names.CertificateGVK] == compose.Available {
		d.Offer(names.RepositoryCertificate, repositoryCertificate(&s.Names))
		d.Offer(names.RepositoryClientCertificate, certificates.BackupLeaf(&s.Names, names.SuffixRepositoryClient, s.Traits.CommonNames.Repository))
	}
	d.Offer(names.RepositoryService, repositoryService(&s.Names))
	d.Offer(names.RepositoryNetworkPolicy, repositoryPolicy(s))
	d.Offer(names.Repository, repositorySet(s))
	gvk := storagev1alpha1.VolumeClaimGroupVersionKind
	d.Offer(names.RepositoryVolumeClaim, objects.Manifest(gvk, s.Metadata(s.Called(names.SuffixRepository)),
		members.VolumeClaimSpec{ForProvider: storagev1alpha1.VolumeClaimParameters{
			Database: repositoryBase(&s.Names),
			Identity: identityOfRepository,
			Members:  []string{s.Called(names.SuffixRepository)},
			Size:     backup.RepositorySize(s),
		}}))
}

// repositoryBase is the value of the label of the Database on the claim. No Database has a dot in its name, and no generation is
// called so.
func repositoryBase(s *names.Names) string { return s.Name + "." + names.SuffixRepository }

// repositoryCertificate is what the host of the volume shows to members. Where it takes the backups, it opens their backup tool to it as well.
func repositoryCertificate(s *names.Names) *compose.Manifest[certificates.Spec] {
	c := certificates.BackupLeaf(s, names.SuffixRepositoryServer, s.Traits.CommonNames.RepositoryHost)
	name := s.Called(names.SuffixRepository)
	c.Spec.DNSNames = []string{
		backup.RepositoryHost(s.Namespace, s.Name), backup.RepositoryHost(s.Namespace, s.Name) + ".cluster.local", name + "." + s.Namespace, name,
	}
	c.Spec.Usages = []string{"digital signature", "server auth", "client auth"}
	return c
}

func repositoryService(s *names.Names) *applycorev1.ServiceApplyConfiguration {
	spec := applycorev1.ServiceSpec().WithSelector(s.RepositorySelector())
	if s.Traits.BackupPort != "" {
		spec.WithPorts(network.ServicePort(s.Traits.BackupPort, s.Traits.Ports.Backup))
	}
	return applycorev1.Service(s.Called(names.SuffixRepository), s.Namespace).
		WithLabels(s.Labels()).
		WithSpec(spec.WithPorts(network.ServicePort(portRepositoryBackups, s.Traits.Ports.Repository)))
}

// repositoryPolicy lets members, Jobs that take and verify backups, and members of copies reach the host of the volume. The host
// reaches only name servers and members, and nothing where it takes no backups.
func repositoryPolicy(s *facts.Cluster) *applynetworkingv1.NetworkPolicyApplyConfiguration {
	labelled := func(label string) *compose.Peer { return network.Pods(map[string]string{label: s.Name}) }
	members := network.Members(s)
	readers := []*compose.Peer{members, labelled(names.LabelVerificationOf), labelled(names.LabelCopyOf)}
	rules := []*compose.IngressRule{network.Ingress(s.Traits.Ports.Repository, append(readers, labelled(names.LabelBackupOf))...)}
	if s.Traits.BackupPort == "" {
		return network.NewPolicy(&s.Names, names.SuffixRepository, s.RepositorySelector(), rules)
	}
	return network.NewPolicy(&s.Names, names.SuffixRepository, s.RepositorySelector(),
		append([]*compose.IngressRule{network.Ingress(s.Traits.Ports.Backup, readers...)}, rules...),
		network.ToNameServers(), network.To(members, s.Traits.Ports.Backup))
}

// repositorySet runs the pod that serves the volume. Its claim cannot be changed once it was made; the VolumeClaim lets it grow.
func repositorySet(s *facts.Cluster) compose.Named {
	whenDeleted := appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	if s.Spec.Backup.OnDelete == v1alpha1.BackupsDeleted {
		whenDeleted = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	set := applyappsv1.StatefulSet(s.Called(names.SuffixRepository), s.Namespace).
		WithLabels(s.Labels()).
		WithSpec(applyappsv1.StatefulSetSpec().
			WithReplicas(1).
			WithServiceName(s.Called(names.SuffixRepository)).
			// A pod that never gets ready must not block its own repair.
			WithPodManagementPolicy(appsv1.ParallelPodManagement).
			WithRevisionHistoryLimit(2).
			WithPersistentVolumeClaimRetentionPolicy(applyappsv1.StatefulSetPersistentVolumeClaimRetentionPolicy().
				WithWhenDeleted(whenDeleted).WithWhenScaled(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(s.RepositorySelector())).
			WithTemplate(applycorev1.PodTemplateSpec().WithLabels(s.OtherPods()[names.PodsRepository]).WithSpec(repositoryPod(s))))
	live := s.Observed[names.Repository]
	if live == nil {
		set.Spec.WithVolumeClaimTemplates(repositoryClaimTemplate(s))
		return set
	}
	return objects.With(objects.Plain(set), nil, map[string]any{"volumeClaimTemplates": compose.List(live.Map(), "spec", "volumeClaimTemplates")})
}

// repositoryClaimTemplate has the labels by which it is guarded and let grow.
func repositoryClaimTemplate(s *facts.Cluster) *applycorev1.PersistentVolumeClaimApplyConfiguration {
	spec := applycorev1.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(applycorev1.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: backup.RepositorySize(s)}))
	if c := backup.RepositoryClass(s); c != "" {
		spec.WithStorageClassName(c)
	}
	labels := s.RepositorySelector()
	maps.Copy(labels, map[string]string{
		observev1alpha1.LabelDatabase: repositoryBase(&s.Names),
		observev1alpha1.LabelMember:   s.Called(names.SuffixRepository),
		observev1alpha1.LabelIdentity: identityOfRepository,
	})
	c := &applycorev1.PersistentVolumeClaimApplyConfiguration{}
	return c.WithName(names.VolumeData).WithLabels(labels).WithSpec(spec)
}

// repositoryImage is the leader's image: the backup tool talks only to its own version, and the archive must not wait until the
// repository is updated.
func repositoryImage(s *facts.Cluster) string {
	containers := []string{"spec", "template", "spec", "containers"}
	if o, ok := s.Sets[s.LetterOf(s.Seen.Leader)]; ok {
		if c := facts.Entry(compose.List(o.Object.Map(), containers...), s.Traits.App); c != nil {
			return compose.Text(c, "image")
		}
	}
	// Between two leaders it stays.
	if o := s.Observed[names.Repository]; o != nil {
		if c := facts.First(compose.List(o.Map(), containers...)); c != nil {
			return compose.Text(c, "image")
		}
	}
	return s.Image.Name
}

// ReaderImage is the image of pods that read backups: where a host serves them, the host's, for the same reason.
func ReaderImage(s *facts.Cluster) string {
	if backup.IsOnVolume(s) {
		return repositoryImage(s)
	}
	return s.Image.Name
}

// repositoryPod serves the volume. It satisfies the Pod Security Standard "restricted", and runs where no member does if there is
// such a node.
func repositoryPod(s *facts.Cluster) *applycorev1.PodSpecApplyConfiguration {
	apart := func(weight int32, key string) *applycorev1.WeightedPodAffinityTermApplyConfiguration {
		return applycorev1.WeightedPodAffinityTerm().WithWeight(weight).
			WithPodAffinityTerm(applycorev1.PodAffinityTerm().
				WithTopologyKey(key).
				// Members of all generations have these.
				WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{names.LabelName: s.Traits.App, names.LabelInstance: s.Name})))
	}
	ports := []*applycorev1.ContainerPortApplyConfiguration{pods.Port(portRepositoryBackups, s.Traits.Ports.Repository), pods.Port("health", s.Traits.Ports.Health)}
	if s.Traits.BackupPort != "" {
		ports = append([]*applycorev1.ContainerPortApplyConfiguration{pods.Port(s.Traits.BackupPort, s.Traits.Ports.Backup)}, ports...)
	}
	pod := pods.HardenedPod(s).
		WithTerminationGracePeriodSeconds(60).
		WithContainers(pods.Hardened(applycorev1.Container().
			WithName("repository").
			WithImage(repositoryImage(s)).
			WithCommand(pods.MemberProgram, "repository").
			WithEnv(applycorev1.EnvVar().WithName("POD_IP").WithValueFrom(applycorev1.EnvVarSource().
				WithFieldRef(applycorev1.ObjectFieldSelector().WithFieldPath("status.podIP")))).
			WithPorts(ports...).
			WithResources(pods.Resources(resource.MustParse("100m"), resource.MustParse("128Mi"), resource.MustParse("1Gi"))).
			WithLivenessProbe(pods.Probe(&s.Names, "/livez", 10, 5, 3)).
			WithReadinessProbe(pods.Probe(&s.Names, "/readyz", 10, 5, 3)).
			WithVolumeMounts(
				pods.Mount(names.VolumeData, "/data", false),
				pods.Mount(names.VolumeTmp, "/tmp", false),
				pods.Mount(names.VolumeMembers, "/etc/capstan/tls/members", true)))).
		WithVolumes(
			pods.EmptyVolume(names.VolumeTmp, resource.MustParse("256Mi"), ""),
			pods.SecretVolume(names.VolumeMembers, s.Called(names.SuffixRepositoryServer)))
	pod.SecurityContext.WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	pods.Apart(pod, apart(100, corev1.LabelHostname), apart(50, corev1.LabelTopologyZone))
	if backup.TakenByHost(s) {
		pods.WithKey(s, pod)
	}
	return pod
}
