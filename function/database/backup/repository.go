// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// partsOfStorage is the default size of the backup volume, in volumes of a member: it holds the weekly full backups of a month,
// compressed, and the archive between them.
const partsOfStorage = 3

// IsOnVolume reports whether backups go to a volume of the Database: because the spec says so, because they went there before, or
// because the settings say so. Settings never move the backups that a Database has.
func IsOnVolume(s *facts.Cluster) bool {
	if b := s.Spec.Backup; b != nil && b.To != nil {
		return b.To.Volume != nil
	}
	for _, name := range s.Opened {
		switch name {
		case s.Called(names.SuffixRepositoryClient):
			return true
		case s.Called(names.SuffixBackupBucket):
			return false
		}
	}
	switch {
	case s.Observed[names.BackupBucket] != nil:
		return false
	case s.Observed[names.Repository] != nil:
		return true
	default:
		return s.Spec.Backup != nil && s.Settings.Database.Backup.To == inputv1alpha1.BackupToVolume
	}
}

// TakenByHost reports whether the host of the volume takes the backups: the pod that requests one neither reads nor writes it.
func TakenByHost(s *facts.Cluster) bool { return IsOnVolume(s) && s.Traits.BackupPort != "" }

// RepositoryHost is the host of the volume of backups of a Database of a namespace.
func RepositoryHost(namespace, name string) string {
	return fmt.Sprintf("%s-%s.%s.svc", name, names.SuffixRepository, namespace)
}

// repositoryAddress is the host of the backup volume, or "". After backups were moved elsewhere, members use it until they are
// recreated: each uses the Secret that it has.
func repositoryAddress(s *facts.Cluster) string {
	if !IsOnVolume(s) && !slices.Contains(s.Opened, s.Called(names.SuffixRepositoryClient)) {
		return ""
	}
	return RepositoryHost(s.Namespace, s.Name)
}

// RepositoryVolume that the spec asks for, which may say nothing.
func RepositoryVolume(s *facts.Cluster) v1alpha1.DatabaseBackupVolume {
	if b := s.Spec.Backup; b != nil && b.To != nil && b.To.Volume != nil {
		return *b.To.Volume
	}
	return v1alpha1.DatabaseBackupVolume{}
}

// RepositorySize is how large the volume of backups should be. It never shrinks.
func RepositorySize(s *facts.Cluster) resource.Quantity {
	size := *resource.NewQuantity(s.Spec.Storage.Value()*partsOfStorage, resource.BinarySI)
	if q := RepositoryVolume(s).Size; q != nil {
		size = *q
	}
	if was := RepositoryClaimed(s); was.Cmp(size) > 0 {
		return was
	}
	return size
}

// RepositoryClaimed is the size that was requested last.
func RepositoryClaimed(s *facts.Cluster) resource.Quantity {
	return facts.ClaimedBy(s.Observed[names.RepositoryVolumeClaim])
}

// RepositoryClass of the volume, or "" for the cluster's default.
func RepositoryClass(s *facts.Cluster) string {
	return cmp.Or(RepositoryVolume(s).StorageClassName, s.Settings.Database.Backup.StorageClassName, s.Size.StorageClassName)
}

// RepositoryMade is the claim that the StatefulSet was made with, if there is one.
func RepositoryMade(s *facts.Cluster) map[string]any {
	if o := s.Observed[names.Repository]; o != nil {
		return facts.First(compose.List(o.Map(), "spec", "volumeClaimTemplates"))
	}
	return nil
}

// RepositoryDisk is how full the backup volume is, as the leader reports.
func RepositoryDisk(s *facts.Cluster) observev1alpha1.RepositoryReport {
	if !IsOnVolume(s) {
		return observev1alpha1.RepositoryReport{}
	}
	return s.BackupReport().Repository
}

// RepositoryClaim is the name of the persistent volume claim.
func RepositoryClaim(s *names.Names) string {
	return names.VolumeData + "-" + s.Called(names.SuffixRepository) + "-0"
}

// RepositoryFill is the reason and message of StorageHealthy when the backup volume needs more free space.
func RepositoryFill(s *facts.Cluster) (xpv2.ConditionReason, string) {
	switch RepositoryDisk(s).Disk {
	case facts.DiskFull:
		return v1alpha1.ReasonStorageFull, fmt.Sprintf("the backup volume (%s) is over 95 %% full; when it is full, the archive waits on the volume of the leader: %s",
			RepositoryClaim(&s.Names), RepositoryRoom(s))
	case facts.DiskLow:
		return v1alpha1.ReasonStorageLow, fmt.Sprintf("the backup volume (%s) is over 85 %% full: %s", RepositoryClaim(&s.Names), RepositoryRoom(s))
	default:
		return "", ""
	}
}

// repositoryGrowth is how the backup volume grows to the desired size, in words, and whether it cannot.
func repositoryGrowth(s *facts.Cluster) (words string, stuck bool) {
	for _, v := range facts.ObserveVolumes(s.Observed[names.RepositoryVolumeClaim]).Volumes {
		switch v.State {
		case storagev1alpha1.VolumeFailed, storagev1alpha1.VolumeNotExpandable:
			return v.Message, true
		case storagev1alpha1.VolumeGrowing, storagev1alpha1.VolumeFileSystemPending:
			return "it is growing", false
		}
	}
	return "", false
}

// RepositoryRoom is the remedy for a backup volume that fills up.
func RepositoryRoom(s *facts.Cluster) string {
	size := RepositorySize(s)
	switch words, stuck := repositoryGrowth(s); {
	case stuck:
		return fmt.Sprintf("it cannot grow to %s: %s", size.String(), words)
	case words != "":
		return words
	default:
		return fmt.Sprintf("raise spec.backup.to.volume.size (%s), or lower spec.backup.retention", size.String())
	}
}

// RepositoryTrouble is why the host of the backup volume does not answer, as far as its StatefulSet shows.
func RepositoryTrouble(s *facts.Cluster) string {
	o := s.Observed[names.Repository]
	if o == nil || facts.Ready(o) {
		return ""
	}
	return fmt.Sprintf("the pod that serves the backup volume is not ready: run kubectl -n %s describe pod %s-0", s.Namespace, s.Called(names.SuffixRepository))
}

// RepositoryStatus is the volume that backups go to, if it is one.
func RepositoryStatus(s *facts.Cluster) *v1alpha1.BackupVolumeStatus {
	if !IsOnVolume(s) {
		return nil
	}
	st := &v1alpha1.BackupVolumeStatus{Claim: RepositoryClaim(&s.Names), UsedPercent: RepositoryDisk(s).UsedPercent}
	for _, v := range facts.ObserveVolumes(s.Observed[names.RepositoryVolumeClaim]).Volumes {
		st.Size = v.Granted
	}
	return st
}
