// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

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
	var foreign []string
	full, low := volumesOf(s.Cluster, facts.DiskFull), volumesOf(s.Cluster, facts.DiskLow)
	known := true
	for _, letter := range compose.SortedKeys(s.Sets) {
		m := s.SeenMember(letter)
		switch {
		case m.Reason == string(v1alpha1.ReasonVolumeOfAnother):
			foreign = append(foreign, about(m))
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
	case full.any():
		return no(v1alpha1.ReasonStorageFull,
			"over 95 % full, and a server stops when it cannot write: "+full.words()+". "+makeRoom(s.Cluster, full))
	case len(failed) > 0:
		return no(v1alpha1.ReasonGrowthFailed, fmt.Sprintf(
			"volumes cannot grow to %s yet, and Capstan tries again: %s", wanted(s.Cluster, storagev1alpha1.VolumeFailed), strings.Join(failed, "; ")))
	case len(stuck) > 0:
		return no(v1alpha1.ReasonGrowthUnsupported, fmt.Sprintf(
			"volumes cannot grow to %s: %s", wanted(s.Cluster, storagev1alpha1.VolumeNotExpandable), strings.Join(stuck, "; ")))
	case low.any():
		reason := v1alpha1.ReasonStorageLow
		switch w := s.Sizes; {
		case w.Bound && len(low.data) > 0:
			reason = v1alpha1.ReasonGrowthBound
		case w.Held != "", s.Spec.StorageGrowth != nil && len(low.data) == 0:
			reason = v1alpha1.ReasonGrowthHeld
		}
		return no(reason, "over 85 % full: "+low.words()+". "+makeRoom(s.Cluster, low))
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

// fillings are volumes that fill up, in words: of data, and of logs alone.
type fillings struct{ data, logs []string }

func (f fillings) any() bool     { return len(f.data)+len(f.logs) > 0 }
func (f fillings) words() string { return strings.Join(slices.Concat(f.data, f.logs), "; ") }

// volumesOf members that are in use as a class says.
func volumesOf(s *facts.Cluster, class string) fillings {
	var f fillings
	for _, letter := range compose.SortedKeys(s.Sets) {
		m := s.SeenMember(letter)
		if m.Disk == class {
			f.data = append(f.data, fill(s, m))
		}
		if m.WALDisk == class {
			f.logs = append(f.logs, fillWAL(s, letter, m))
		}
	}
	return f
}

func fill(s *facts.Cluster, m observev1alpha1.TopologyMember) string {
	return filling(s, "the volume of "+m.Name, m.VolumeSize, m.Name, m.Volume)
}

func fillWAL(s *facts.Cluster, letter string, m observev1alpha1.TopologyMember) string {
	v, _ := s.WALVolume(letter)
	return filling(s, "the volume for the "+s.Traits.Log+" of "+m.Name, v.Granted, m.Name, m.WALVolume)
}

// filling volume of a member, with its size if that is known, and what fills it.
func filling(s *facts.Cluster, words, size, member string, report *observev1alpha1.VolumeReport) string {
	if size != "" {
		words += " (" + size + ")"
	}
	if why := s.Engine.Filling(s.Name, member, report); why != "" {
		words += ": " + why
	}
	return words
}

// wanted size of the volumes in a state.
func wanted(s *facts.Cluster, state string) string {
	var sizes []string
	is := func(holds string) bool {
		return slices.ContainsFunc(s.OnDisk.Volumes, func(v storagev1alpha1.VolumeObservation) bool { return v.State == state && v.Holds == holds })
	}
	if is("") {
		sizes = append(sizes, s.Sizes.Wanted.String())
	}
	if is(storagev1alpha1.HoldsWAL) && s.Spec.WALStorage != nil {
		sizes = append(sizes, s.Spec.WALStorage.String()+" for the "+s.Traits.Log)
	}
	return strings.Join(sizes, " and ")
}

// makeRoom is the remedy for volumes that fill up.
func makeRoom(s *facts.Cluster, f fillings) string {
	failed, stuck := having(s, storagev1alpha1.VolumeFailed), having(s, storagev1alpha1.VolumeNotExpandable)
	switch w := s.Sizes; {
	case len(failed) > 0:
		return fmt.Sprintf("They cannot grow to %s: %s", wanted(s, storagev1alpha1.VolumeFailed), strings.Join(failed, "; "))
	case len(stuck) > 0:
		return "Remove data, or create another Database with a storage class that allows growth, and move the data: " + strings.Join(stuck, "; ")
	case growing(s):
		return "They are growing: " + progress(s)
	case len(f.data) == 0 && s.Spec.WALStorage != nil:
		return fmt.Sprintf("Capstan does not grow volumes for the %s by itself. When the cause is fixed, the room is free again; raising spec.walStorage (%s) "+
			"helps until then, without a restart and also while the server is stopped", s.Traits.Log, s.Spec.WALStorage.String())
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
	granted, logs := s.Sizes.Granted, s.Sizes.Logs
	return len(granted) > 0 && granted[0].Cmp(s.Sizes.Wanted) < 0 || len(logs) > 0 && logs[0].Cmp(*s.Spec.WALStorage) < 0
}

func progress(s *facts.Cluster) string {
	var words []string
	size := s.Sizes.Wanted
	for _, letter := range compose.SortedKeys(s.Sets) {
		if q, ok := s.GrantedTo(letter); ok && q.Cmp(size) < 0 {
			words = append(words, fmt.Sprintf("%s from %s to %s", s.Member(letter), q.String(), size.String()))
		}
		if v, ok := s.WALVolume(letter); ok && s.Spec.WALStorage != nil {
			if q, err := resource.ParseQuantity(v.Granted); err == nil && q.Cmp(*s.Spec.WALStorage) < 0 {
				words = append(words, fmt.Sprintf("for the %s of %s from %s to %s", s.Traits.Log, v.Member, v.Granted, s.Spec.WALStorage.String()))
			}
		}
	}
	return strings.Join(words, ", ")
}

// having a state: what these volumes report.
func having(s *facts.Cluster, state string) []string {
	var words []string
	for _, v := range s.OnDisk.Volumes {
		switch {
		case v.State != state:
		case v.Holds != "" && v.Granted == "":
			words = append(words, fmt.Sprintf("%s has no volume for its %s: %s", v.Member, s.Traits.Log, v.Message))
		case v.Holds != "":
			words = append(words, fmt.Sprintf("%s has %s for its %s: %s", v.Member, v.Granted, s.Traits.Log, v.Message))
		default:
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
	if has := s.Sizes.Logs; len(has) > 0 && len(has) == len(s.Sets) {
		st.WALSize = has[0].String()
	}
	for _, v := range s.OnDisk.Volumes {
		if v.Holds != "" {
			continue // It is part of its member's.
		}
		letter := s.LetterOf(v.Member)
		o, seen := v1alpha1.VolumeStatus{Member: v.Member, Size: v.Granted}, s.SeenMember(letter)
		if m := seen.Volume; m != nil {
			o.UsedPercent, o.Fill, o.Diverged = m.UsedPercent, m.Fill, facts.Stamp(m.Diverged)
		}
		if own, found := s.WALVolume(letter); found {
			o.WALVolume = &v1alpha1.WALVolumeStatus{Size: own.Granted}
			if m := seen.WALVolume; m != nil {
				o.WALVolume.UsedPercent, o.WALVolume.Fill = m.UsedPercent, m.Fill
			}
		}
		st.Volumes = append(st.Volumes, o)
	}
	return st
}

// fullStop is why there is no leader when a volume is full, or "".
func fullStop(s *facts.Cluster) string {
	for _, letter := range compose.SortedKeys(s.Sets) {
		m, f := s.SeenMember(letter), fillings{}
		if m.Disk == facts.DiskFull {
			f.data = []string{fill(s, m)}
		}
		if m.WALDisk == facts.DiskFull {
			f.logs = []string{fillWAL(s, letter, m)}
		}
		if f.any() && !m.Ready {
			return fmt.Sprintf("there is no leader, because a volume is full: %s. %s", f.words(), makeRoom(s, f))
		}
	}
	return ""
}
