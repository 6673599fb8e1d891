// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// storageHealthy reports the worst problem of the volumes.
func storageHealthy(s *decision.Pass) xpv2.Condition {
	var full, low, foreign []string
	known := true
	for _, letter := range compose.SortedKeys(s.Sets) {
		m := s.SeenMember(letter)
		switch {
		case m.Reason == string(v1alpha1.ReasonVolumeOfAnother):
			foreign = append(foreign, about(m))
		case m.Disk == facts.DiskFull:
			full = append(full, fill(s.Cluster, m))
		case m.Disk == facts.DiskLow:
			low = append(low, fill(s.Cluster, m))
		case m.VolumeSize == "":
			known = false
		}
	}
	failed := having(s.Cluster, storagev1alpha1.VolumeFailed)
	stuck := having(s.Cluster, storagev1alpha1.VolumeNotExpandable)
	need, backups := backup.RepositoryFill(s.Cluster)
	switch {
	case len(foreign) > 0:
		return no(v1alpha1.ReasonVolumeOfAnother, strings.Join(foreign, "; "))
	case len(full) > 0:
		return no(v1alpha1.ReasonStorageFull,
			"over 95 % full, and a server stops when it cannot write: "+strings.Join(full, "; ")+". "+makeRoom(s.Cluster))
	case len(failed) > 0:
		return no(v1alpha1.ReasonGrowthFailed, fmt.Sprintf(
			"volumes cannot grow to %s yet, and Capstan tries again: %s", s.Sizes.Wanted.String(), strings.Join(failed, "; ")))
	case len(stuck) > 0:
		return no(v1alpha1.ReasonGrowthUnsupported, fmt.Sprintf(
			"volumes cannot grow to %s: %s", s.Sizes.Wanted.String(), strings.Join(stuck, "; ")))
	case len(low) > 0:
		reason := v1alpha1.ReasonStorageLow
		switch w := s.Sizes; {
		case w.Bound:
			reason = v1alpha1.ReasonGrowthBound
		case w.Held != "":
			reason = v1alpha1.ReasonGrowthHeld
		}
		return no(reason, "over 85 % full: "+strings.Join(low, "; ")+". "+makeRoom(s.Cluster))
	case backups != "":
		return no(need, backups)
	case len(s.Sets) == 0 || !known:
		return unknown(v1alpha1.ReasonVolumePending, "volumes are being created, or their usage is not known yet")
	case growing(s.Cluster):
		return yes(v1alpha1.ReasonGrowing, "every volume has room, and volumes are growing: "+progress(s.Cluster))
	default:
		return yes(v1alpha1.ReasonStorageReady, "every volume has room")
	}
}

func fill(s *facts.Cluster, m observev1alpha1.TopologyMember) string {
	words := "the volume of " + m.Name
	if m.VolumeSize != "" {
		words += " (" + m.VolumeSize + ")"
	}
	if why := s.Engine.Filling(s.Name, m.Name, m.Volume); why != "" {
		words += ": " + why
	}
	return words
}

// makeRoom is the remedy for volumes that fill up.
func makeRoom(s *facts.Cluster) string {
	failed, stuck := having(s, storagev1alpha1.VolumeFailed), having(s, storagev1alpha1.VolumeNotExpandable)
	switch w := s.Sizes; {
	case len(failed) > 0:
		return fmt.Sprintf("They cannot grow to %s: %s", w.Wanted.String(), strings.Join(failed, "; "))
	case len(stuck) > 0:
		return "Remove data, or create another Database with a storage class that allows growth, and move the data: " + strings.Join(stuck, "; ")
	case growing(s):
		return "They are growing: " + progress(s)
	case w.Bound:
		return fmt.Sprintf("They have reached spec.storageGrowth.max (%s): raise it or spec.storage, or remove data", s.Spec.StorageGrowth.Max.String())
	case w.Held != "":
		return "Capstan does not grow them for this cause. When the cause is fixed, the room is free again; raising spec.storage helps until then"
	default:
		return fmt.Sprintf("Raise spec.storage (%s), which takes effect without a restart and also while the server is stopped, or remove data", s.Spec.Storage.String())
	}
}

// growing reports whether volumes are smaller than desired.
func growing(s *facts.Cluster) bool {
	granted := s.Sizes.Granted
	return len(granted) > 0 && granted[0].Cmp(s.Sizes.Wanted) < 0
}

func progress(s *facts.Cluster) string {
	var words []string
	size := s.Sizes.Wanted
	for _, letter := range compose.SortedKeys(s.Sets) {
		if q, ok := s.GrantedTo(letter); ok && q.Cmp(size) < 0 {
			words = append(words, fmt.Sprintf("%s from %s to %s", s.Member(letter), q.String(), size.String()))
		}
	}
	return strings.Join(words, ", ")
}

// having a state: what these volumes report.
func having(s *facts.Cluster, state string) []string {
	var words []string
	for _, v := range s.OnDisk.Volumes {
		if v.State == state {
			words = append(words, fmt.Sprintf("%s has %s: %s", v.Member, v.Granted, v.Message))
		}
	}
	return words
}

// storageStatus is how large and how full volumes are, once there are any.
func storageStatus(s *facts.Cluster) *v1alpha1.StorageStatus {
	if len(s.Sets) == 0 || len(s.Problems) > 0 {
		return nil
	}
	st := &v1alpha1.StorageStatus{Wanted: s.Sizes.Wanted.String(), State: s.OnDisk.State}
	if has := s.Sizes.Granted; len(has) > 0 && len(has) == len(s.Sets) {
		st.Size = has[0].String()
	}
	for _, v := range s.OnDisk.Volumes {
		o := v1alpha1.VolumeStatus{Member: v.Member, Size: v.Granted}
		if m := s.SeenMember(s.LetterOf(v.Member)).Volume; m != nil {
			o.UsedPercent, o.Fill, o.Diverged = m.UsedPercent, m.Fill, facts.Stamp(m.Diverged)
		}
		st.Volumes = append(st.Volumes, o)
	}
	return st
}

// fullStop is why there is no leader when a volume is full, or "".
func fullStop(s *facts.Cluster) string {
	for _, letter := range compose.SortedKeys(s.Sets) {
		if m := s.SeenMember(letter); m.Disk == facts.DiskFull && !m.Ready {
			return fmt.Sprintf("there is no leader, because a volume is full: %s. %s", fill(s, m), makeRoom(s))
		}
	}
	return ""
}
