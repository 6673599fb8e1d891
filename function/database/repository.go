// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// Suffixes of what belongs to the host of a volume of backups.
const (
	suffixRepository       = "repository"
	suffixRepositoryClient = "pg-repository"
	suffixRepositoryServer = "pg-repository-server"
)

// partsOfStorage is how many times the size of a member's volume that of backups has, unless the spec says otherwise: weekly full
// ones of a month, compressed, with what is archived in between.
const partsOfStorage = 3

// isOnVolume reports whether backups go to a volume of the Database's own: because the spec says so, or because they did before,
// or because the platform says so. What a Database has is not changed by settings.
func (s *cluster) isOnVolume() bool {
	if b := s.spec.Backup; b != nil && b.To != nil {
		return b.To.Volume != nil
	}
	for _, name := range s.opened {
		switch name {
		case s.called(suffixRepositoryClient):
			return true
		case s.called(suffixBackupBucket):
			return false
		}
	}
	switch {
	case s.Observed[nameBackupBucket] != nil:
		return false
	case s.Observed[nameRepository] != nil:
		return true
	default:
		return s.spec.Backup != nil && s.Settings.Database.Backup.To == inputv1alpha1.BackupToVolume
	}
}

// opens are the Secrets that open where backups go, of the members that exist: those of the active generation first.
func bucketSecrets(r compose.Request, n names) []string {
	var active, others []string
	for _, resource := range compose.SortedKeys(r.Observed) {
		o := r.Observed[resource].Map()
		g, ok := generationOf(resource)
		if !ok || compose.Text(o, "kind") != kindStatefulSet {
			continue
		}
		switch name := secretOf(compose.List(o, "spec", "template", "spec", "volumes"), volumeBackup); {
		case name == "":
		case g == n.generation:
			active = append(active, name)
		default:
			others = append(others, name)
		}
	}
	return append(active, others...)
}

// repositoryHost is the host of the volume of backups of a Database of a namespace.
func repositoryHost(namespace, name string) string {
	return fmt.Sprintf("%s-%s.%s.svc", name, suffixRepository, namespace)
}

// served is the host of the volume that backups go to, or that members still go to until they are recreated after backups were
// moved, or "". Each goes by the Secret that it has.
func (s *cluster) repositoryAddress() string {
	if !s.isOnVolume() && !slices.Contains(s.opened, s.called(suffixRepositoryClient)) {
		return ""
	}
	return repositoryHost(s.namespace, s.name)
}

// repositoryVolume that the spec asks for, which may say nothing.
func (s *cluster) repositoryVolume() v1alpha1.DatabaseBackupVolume {
	if b := s.spec.Backup; b != nil && b.To != nil && b.To.Volume != nil {
		return *b.To.Volume
	}
	return v1alpha1.DatabaseBackupVolume{}
}

// repositorySize is how large the volume of backups should be. It never shrinks.
func (s *cluster) repositorySize() resource.Quantity {
	size := *resource.NewQuantity(s.spec.Storage.Value()*partsOfStorage, resource.BinarySI)
	if q := s.repositoryVolume().Size; q != nil {
		size = *q
	}
	if was := s.repositoryClaimed(); was.Cmp(size) > 0 {
		return was
	}
	return size
}

// repositoryClaimed is the size that was asked for last.
func (s *cluster) repositoryClaimed() resource.Quantity {
	o := s.Observed[nameRepositoryVolumeClaim]
	if o == nil {
		return resource.Quantity{}
	}
	q, err := resource.ParseQuantity(compose.Text(o.Map(), "spec", "forProvider", "size"))
	if err != nil {
		return resource.Quantity{}
	}
	return q
}

// repositoryClass of the volume, or "" for the cluster's default.
func (s *cluster) repositoryClass() string {
	if c := s.repositoryVolume().StorageClassName; c != "" {
		return c
	}
	if c := s.Settings.Database.Backup.StorageClassName; c != "" {
		return c
	}
	return s.size.storageClassName
}

// repositoryMade is the claim that the StatefulSet was made with, if there is one.
func (s *cluster) repositoryMade() map[string]any {
	o := s.Observed[nameRepository]
	if o == nil {
		return nil
	}
	for _, c := range compose.List(o.Map(), "spec", "volumeClaimTemplates") {
		if claim, ok := c.(map[string]any); ok {
			return claim
		}
	}
	return nil
}

// checkRepository holds what the schema cannot say of the volume of backups: one that was moved away from and back to has no
// value before.
func (s *cluster) checkRepository() []check.Problem {
	v := s.repositoryVolume()
	var ps []check.Problem
	if was := s.repositoryClaimed(); v.Size != nil && v.Size.Cmp(was) < 0 {
		ps = append(ps, check.Invalid("spec.backup.to.volume.size", v.Size.String(),
			fmt.Sprintf("the volume has %s and cannot shrink: set that, or more", was.String())))
	}
	made := s.repositoryMade()
	if made == nil || v.StorageClassName == "" {
		return ps
	}
	if class := compose.Text(made, "spec", "storageClassName"); class != v.StorageClassName {
		ps = append(ps, check.Invalid("spec.backup.to.volume.storageClassName", v.StorageClassName, fmt.Sprintf(
			"the volume stays in the class it was made in, which is %q: set that, or leave the field out", class)))
	}
	return ps
}

// repositoryDisk is how full the volume of backups is, as the leader tells.
func (s *cluster) repositoryDisk() observev1alpha1.RepositoryReport {
	if !s.isOnVolume() {
		return observev1alpha1.RepositoryReport{}
	}
	return s.backupReport().Repository
}

// repositoryClaim is the name of the persistent volume claim.
func (s *names) repositoryClaim() string { return volumeData + "-" + s.called(suffixRepository) + "-0" }

// repositoryFill tells why the volume of backups needs room, if it does: the reason of StorageHealthy and its message.
func (s *cluster) repositoryFill() (xpv2.ConditionReason, string) {
	switch s.repositoryDisk().Disk {
	case diskFull:
		return v1alpha1.ReasonStorageFull, fmt.Sprintf("the volume of backups (%s) is over 95 %% full, and once it is full, what is to be archived waits on that of the leader: %s",
			s.repositoryClaim(), s.repositoryRoom())
	case diskLow:
		return v1alpha1.ReasonStorageLow, fmt.Sprintf("the volume of backups (%s) is over 85 %% full: %s", s.repositoryClaim(), s.repositoryRoom())
	default:
		return "", ""
	}
}

// repositoryGrowth tells how the volume of backups comes to the size that is wanted, and whether it does not.
func (s *cluster) repositoryGrowth() (words string, stuck bool) {
	for _, v := range observeVolumes(s.Observed[nameRepositoryVolumeClaim]).Volumes {
		switch v.State {
		case storagev1alpha1.VolumeFailed, storagev1alpha1.VolumeNotExpandable:
			return v.Message, true
		case storagev1alpha1.VolumeGrowing, storagev1alpha1.VolumeFileSystemPending:
			return "it is made larger", false
		}
	}
	return "", false
}

// repositoryRoom tells what to do about a volume of backups that fills up.
func (s *cluster) repositoryRoom() string {
	size := s.repositorySize()
	switch words, stuck := s.repositoryGrowth(); {
	case stuck:
		return fmt.Sprintf("it is to grow to %s, and cannot: %s", size.String(), words)
	case words != "":
		return words
	default:
		return fmt.Sprintf("raise spec.backup.to.volume.size (%s), or let spec.backup.retention keep less", size.String())
	}
}

// repositoryTrouble is why the host of the volume of backups does not answer, as far as its StatefulSet tells.
func (s *cluster) repositoryTrouble() string {
	o := s.Observed[nameRepository]
	if o == nil || ready(o) {
		return ""
	}
	return fmt.Sprintf("the pod that serves the volume of backups is not ready: see kubectl -n %s describe pod %s-0", s.namespace, s.called(suffixRepository))
}

// repositoryStatus is the volume that backups go to, if it is one.
func (s *cluster) repositoryStatus() *v1alpha1.BackupVolumeStatus {
	if !s.isOnVolume() {
		return nil
	}
	st := &v1alpha1.BackupVolumeStatus{Claim: s.repositoryClaim(), UsedPercent: s.repositoryDisk().UsedPercent}
	for _, v := range observeVolumes(s.Observed[nameRepositoryVolumeClaim]).Volumes {
		st.Size = v.Granted
	}
	return st
}
