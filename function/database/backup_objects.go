// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// Names of the objects of backups within the composition.
const (
	nameBackupBucket      = "backup-bucket"
	nameBackupCertificate = "backup-certificate"
	nameBackup            = "backup"
	nameBackupNowPrefix   = "backup-now-"

	// firstBackup is the id of the backup that is taken as soon as there is a leader: without one nothing can be restored.
	firstBackup = "first"

	// firstBackupAgain is how long after the first backup failed it is tried again.
	firstBackupAgain = 10 * time.Minute
)

// bucketSpec without what the schema fills in.
type bucketSpec struct {
	ManagementPolicies               xpv2.ManagementPolicies    `json:"managementPolicies,omitempty"`
	WriteConnectionSecretToReference *xpv2.LocalSecretReference `json:"writeConnectionSecretToRef"`
	ForProvider                      bucketParameters           `json:"forProvider"`
}

type bucketParameters struct {
	ForceDestroy bool `json:"forceDestroy,omitempty"`
}

// backup of the Database: a bucket, who takes backups and when. What was made for backups that are no longer mentioned stays, so
// that no bucket goes by an edit.
func backup(d *compose.Draft, s *cluster) {
	if s.spec.Backup == nil {
		if s.Observed[nameBackup] != nil {
			d.Remove(nameBackup)
		}
		noVerify(d, s)
		return
	}
	switch {
	case s.isOnVolume():
		repository(d, s)
	case s.spec.Backup.To == nil:
		d.Offer(nameBackupBucket, s.bucket())
	}
	backupCertificate(d, s)
	if !s.takesBackups() {
		d.Remove(nameBackup)
		noVerify(d, s)
		return
	}
	if s.identity == "" {
		return
	}
	d.Offer(nameBackup, s.backupCronJob())
	backupNow(d, s)
	verify(d, s)
}

// bucket of the backups' own.
func (s *cluster) bucket() compose.Named {
	spec := bucketSpec{WriteConnectionSecretToReference: &xpv2.LocalSecretReference{Name: s.called(suffixBackupBucket)}}
	if s.spec.Backup.OnDelete == v1alpha1.BackupsDeleted {
		spec.ForProvider.ForceDestroy = true
		spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionAll}
	} else {
		spec.ManagementPolicies = xpv2.ManagementPolicies{
			xpv2.ManagementActionObserve, xpv2.ManagementActionCreate, xpv2.ManagementActionUpdate, xpv2.ManagementActionLateInitialize,
		}
	}
	gvk := storagev1alpha1.BucketGroupVersionKind
	return compose.NewManifest(gvk.GroupVersion().String(), gvk.Kind, s.metadata(s.called(suffixBackup)), spec)
}

// backupCertificate of the pods that take backups. It opens the members' backup tool and nothing of the server.
func backupCertificate(d *compose.Draft, s *cluster) {
	if s.Kinds[CertificateGVK] != compose.Available {
		return
	}
	d.Offer(nameBackupCertificate, s.backupLeaf(suffixBackupClient, s.traits.CommonNames.Backup))
}

// backupLeaf is a certificate of a client that stands for no role of the server.
func (s *names) backupLeaf(suffix, commonName string) *compose.Manifest[certificateSpec] {
	return s.certificate(s.called(suffix), certificateSpec{
		CommonName:     commonName,
		Duration:       lifeOfLeaf,
		RenewBefore:    renewLeaf,
		IssuerRef:      s.issuedBy(suffixCA),
		PrivateKey:     privateKey{"ECDSA", 256, "Always"},
		SecretName:     s.called(suffix),
		SecretTemplate: &secretTemplate{Labels: map[string]string{labelPartOf: "capstan"}},
		Usages:         []string{"digital signature", "client auth"},
	})
}

// backupCronJob takes backups on schedule.
func (s *cluster) backupCronJob() compose.Named {
	return applybatchv1.CronJob(s.called(suffixBackup), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applybatchv1.CronJobSpec().
			WithSchedule(s.schedule()).
			// Of members that are stopped nothing can be read.
			WithSuspend(s.hibernated()).
			WithTimeZone("Etc/UTC").
			// Two at a time would hold each other up.
			WithConcurrencyPolicy(batchv1.ForbidConcurrent).
			// One that was missed while the control plane was away is made up for.
			WithStartingDeadlineSeconds(3600).
			WithSuccessfulJobsHistoryLimit(1).
			WithFailedJobsHistoryLimit(1).
			WithJobTemplate(applybatchv1.JobTemplateSpec().
				WithLabels(s.backupLabels()).
				WithSpec(s.backupJobSpec())))
}

// backupNow composes a Job for the id that is asked for, and one until there is a first backup. A Job stays as it was made: its
// template cannot be changed.
func backupNow(d *compose.Draft, s *cluster) {
	ids := map[string]bool{}
	if id := s.spec.Backup.Now; id != "" {
		ids[nowName(id)] = true
	}
	// A Job that failed goes when it is time for another, which is made once it is gone.
	if again, failed := s.firstAgain(); s.leads() && s.seen.Backup != nil && s.seen.Backup.Asked && s.seen.Backup.Label == "" && !s.past(again, failed) {
		ids[nowName(firstBackup)] = true
	}
	for name := range ids {
		switch {
		case s.Observed[nameBackupNowPrefix+name] != nil:
			d.Keep(nameBackupNowPrefix + name)
		case s.leads():
			d.Offer(nameBackupNowPrefix+name, applybatchv1.Job(s.called(suffixBackup+"-"+name), s.namespace).
				WithLabels(s.labels()).
				WithSpec(s.backupJobSpec()))
		}
	}
	for resource := range s.Observed {
		if name, ok := strings.CutPrefix(resource, nameBackupNowPrefix); ok && !ids[name] {
			d.Remove(resource)
		}
	}
}

// firstAgain is when the first backup is tried again, if it failed.
func (s *cluster) firstAgain() (time.Time, bool) {
	_, ended, failed := failure(s.Observed[nameBackupNowPrefix+nowName(firstBackup)])
	return ended.Add(firstBackupAgain), failed
}

// nowName of an id, which may be longer than there is room in a name.
func nowName(id string) string { return compose.Hash([]byte(id)) }

// backupLabels of the pods that take backups. They are not those of members.
func (s *names) backupLabels() map[string]string {
	return map[string]string{
		labelName:      s.traits.App + "-backup",
		labelInstance:  s.name,
		labelManagedBy: "capstan",
		labelBackupOf:  s.name,
	}
}

// backupJobSpec is one backup. A pod that fails is not started again in place, so that its log stays.
func (s *cluster) backupJobSpec() *applybatchv1.JobSpecApplyConfiguration {
	pod := s.hardenedPod().
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithContainers(hardened(applycorev1.Container().
			WithName("backup").
			WithImage(s.image.name).
			WithCommand(memberProgram, "backup").
			WithResources(applycorev1.ResourceRequirements().
				WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}).
				WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")})).
			WithVolumeMounts(
				mount(volumeTmp, "/tmp", false),
				mount(volumeConfig, "/etc/capstan/config", true),
				mount(volumeMembers, "/etc/capstan/tls/members", true)))).
		WithVolumes(
			emptyVolume(volumeTmp, resource.MustParse("256Mi"), ""),
			applycorev1.Volume().WithName(volumeConfig).
				WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(s.ownMembers())),
			secretVolume(volumeMembers, s.called(suffixBackupClient)))
	// The host of a volume takes the backup, and this pod asks it to.
	if !s.isOnVolume() {
		pod.WithVolumes(secretVolume(volumeBackup, s.bucketSecret()))
		pod.Containers[0].WithVolumeMounts(mount(volumeBackup, "/etc/capstan/backup", true))
		s.withKey(pod)
	}
	return applybatchv1.JobSpec().
		WithBackoffLimit(2).
		WithActiveDeadlineSeconds(int64(backupDeadline.Seconds())).
		WithTemplate(applycorev1.PodTemplateSpec().WithLabels(s.backupLabels()).WithSpec(pod))
}

// backupPeers are the pods that take backups: no others reach the members' backup tool.
func (s *cluster) backupPeers() []*compose.IngressRule {
	if !s.archives() {
		return nil
	}
	by := map[string]string{labelBackupOf: s.name}
	if s.isOnVolume() {
		by = s.repositorySelector()
	}
	return []*compose.IngressRule{ingress(s.traits.Ports.Backup, applynetworkingv1.NetworkPolicyPeer().
		WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(by)))}
}

// backupVolumes of a member. A member starts without them: the bucket may come later, and a Database does not depend on it.
func (s *cluster) backupVolumes() []*applycorev1.VolumeApplyConfiguration {
	optional := func(name, of string) *applycorev1.VolumeApplyConfiguration {
		v := secretVolume(name, of)
		v.Secret.WithOptional(true)
		return v
	}
	var volumes []*applycorev1.VolumeApplyConfiguration
	if s.archives() {
		volumes = append(volumes, optional(volumeBackup, s.bucketSecret()))
		if k := s.backupKey(); k.encrypted() {
			volumes = append(volumes, k.optional(volumeBackupKey))
		}
	}
	if name := s.sourceSecret(); name != "" {
		volumes = append(volumes, optional(volumeSource, name))
		if k := s.sourceKey(); k.encrypted() {
			volumes = append(volumes, k.optional(volumeSourceKey))
		}
	}
	if name := s.sourceDatabase(); name != "" {
		volumes = append(volumes, optional(volumeSourceRepository, name+"-"+suffixRepositoryClient))
	}
	return volumes
}

// copies is the Database of this namespace that this one begins with a copy of, if it does. Whether that has a bucket or a volume
// is not known here.
func (s *cluster) sourceDatabase() string {
	if s.generation > 1 || s.spec.From == nil || s.spec.From.Database == nil {
		return ""
	}
	return s.spec.From.Database.Name
}

// backupMounts of the container of the server.
func (s *cluster) backupMounts() []*applycorev1.VolumeMountApplyConfiguration {
	volumes := s.backupVolumes()
	mounts := make([]*applycorev1.VolumeMountApplyConfiguration, 0, len(volumes))
	for _, v := range volumes {
		mounts = append(mounts, mount(*v.Name, "/etc/capstan/"+*v.Name, true))
	}
	return mounts
}
