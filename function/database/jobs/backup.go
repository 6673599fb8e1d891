// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/certificates"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/objects"
	"github.com/capstan-dev/capstan/function/database/pods"
	"github.com/capstan-dev/capstan/function/database/repository"
)

// bucketParameters without what the schema fills in.
type bucketParameters struct {
	ForceDestroy bool `json:"forceDestroy,omitempty"`
}

// Backups of the Database: a bucket, and the pods that take backups and when. Objects of backups that the spec no longer mentions
// stay, so that no edit deletes a bucket.
func Backups(d *compose.Draft, s *facts.Cluster) {
	if s.Spec.Backup == nil {
		noBackups(d, s)
		return
	}
	switch {
	case backup.IsOnVolume(s):
		repository.Compose(d, s)
	case s.Spec.Backup.To == nil:
		d.Offer(names.BackupBucket, bucket(s))
	}
	// The pods that take backups show it to the members' backup tool. It gives no access to the server.
	if s.Kinds[names.CertificateGVK] == compose.Available {
		d.Offer(names.BackupCertificate, certificates.BackupLeaf(&s.Names, names.SuffixBackupClient, s.Traits.CommonNames.Backup))
	}
	if !s.BacksUp() {
		noBackups(d, s)
		return
	}
	if s.Identity == "" {
		return
	}
	d.Offer(names.Backup, scheduled(s, names.SuffixBackup, backup.Schedule(s), backupLabels(&s.Names), backupJobSpec(s)))
	backupNow(d, s)
	verify(d, s)
	snapshots(d, s)
}

// bucket that only this Database uses.
func bucket(s *facts.Cluster) compose.Named {
	deleted := s.Spec.Backup.OnDelete == v1alpha1.BackupsDeleted
	b := objects.Managed(storagev1alpha1.BucketGroupVersionKind, s.Metadata(s.Called(names.SuffixBackup)), bucketParameters{ForceDestroy: deleted})
	b.Spec.WriteConnectionSecretToReference = &xpv2.LocalSecretReference{Name: s.Called(names.SuffixBackupBucket)}
	b.Spec.ManagementPolicies = xpv2.ManagementPolicies{
		xpv2.ManagementActionObserve, xpv2.ManagementActionCreate, xpv2.ManagementActionUpdate, xpv2.ManagementActionLateInitialize,
	}
	if deleted {
		b.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionAll}
	}
	return b
}

// noBackups removes the objects that take and verify backups.
func noBackups(d *compose.Draft, s *facts.Cluster) {
	d.Remove(names.Backup)
	noVerify(d, s)
	noSnapshots(d)
}

// backupNow composes a Job for the requested id, and one until there is a first backup. A Job stays as it was made: its template
// cannot be changed.
func backupNow(d *compose.Draft, s *facts.Cluster) {
	ids := map[string]bool{}
	if id := s.Spec.Backup.Now; id != "" {
		ids[backup.NowName(id)] = true
	}
	// A failed Job is removed when it is time for another one, which is made once the first is gone.
	if again, failed := backup.FirstAgain(s); s.Leads() && s.Seen.Backup != nil && s.Seen.Backup.Asked && s.Seen.Backup.Label == "" && !backup.Past(s, again, failed) {
		ids[backup.NowName(backup.FirstBackup)] = true
	}
	if backup.FollowsGap(s) {
		ids[backup.NowName(backup.GapBackup)] = true
	}
	for name := range ids {
		switch {
		case s.Observed[names.BackupNowPrefix+name] != nil:
			d.Keep(names.BackupNowPrefix + name)
		case s.Leads():
			d.Offer(names.BackupNowPrefix+name, once(s, s.Called(names.SuffixBackup+"-"+name), backupJobSpec(s)))
		}
	}
	maps.Copy(ids, forSignals(d, s))
	removeOthers(d, s, names.BackupNowPrefix, ids)
}

// forSignals composes a Job for each Signal, one after the other, and returns their ids. One that runs is kept until it ends, also when its
// Signal has ended before.
func forSignals(d *compose.Draft, s *facts.Cluster) map[string]bool {
	ids, busy := map[string]bool{}, false
	for resource, o := range s.Observed {
		if id, ok := strings.CutPrefix(resource, names.BackupNowPrefix); ok && backup.RunsForSignal(o) {
			busy, ids[id] = true, true
		}
	}
	for _, signal := range s.Signals.Backups() {
		id := backup.SignalName(signal)
		switch {
		case s.Observed[names.BackupNowPrefix+id] != nil:
			ids[id] = true
		case !busy && s.Leads():
			busy = true
			d.Offer(names.BackupNowPrefix+id, applybatchv1.Job(s.Called(names.SuffixBackup+"-"+id), s.Namespace).WithLabels(s.Labels()).
				WithAnnotations(map[string]string{names.AnnotationSignal: signal.Name}).WithSpec(backupJobSpec(s)))
		}
	}
	for id := range ids {
		d.Keep(names.BackupNowPrefix + id)
	}
	return ids
}

// backupLabels of the pods that take backups. Members have other labels.
func backupLabels(s *names.Names) map[string]string {
	return s.OtherPods()[names.PodsBackup]
}

// backupJobSpec is one backup.
func backupJobSpec(s *facts.Cluster) *applybatchv1.JobSpecApplyConfiguration {
	pod := podOf(s, applycorev1.Container().
		WithName("backup").
		WithImage(s.Image.Name).
		WithCommand(pods.MemberProgram, "backup").
		WithResources(backupResources(s)).
		WithVolumeMounts(
			pods.Mount(names.VolumeTmp, "/tmp", false),
			pods.Mount(names.VolumeConfig, "/etc/capstan/config", true),
			pods.Mount(names.VolumeMembers, "/etc/capstan/tls/members", true)),
		pods.EmptyVolume(names.VolumeTmp, resource.MustParse("256Mi"), ""),
		pods.ConfigVolume(names.VolumeConfig, s.OwnMembers()),
		pods.SecretVolume(names.VolumeMembers, s.Called(names.SuffixBackupClient)))
	// The host of a volume takes the backup at the request of this pod.
	if !backup.TakenByHost(s) {
		pod.WithVolumes(pods.SecretVolume(names.VolumeBackup, backup.BucketSecret(s)))
		pod.Containers[0].WithVolumeMounts(pods.Mount(names.VolumeBackup, "/etc/capstan/backup", true))
		pods.WithKey(s, pod)
		pods.WithRole(s, pod)
	}
	if s.Traits.Backups.Copies {
		withVolume(s, pod, backupLabels(&s.Names))
	}
	return jobSpec(pod, backupLabels(&s.Names), 2, backup.Deadline(s))
}
