// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/observed"
)

// Classes of how full a volume is, as members report.
const (
	DiskFull = "Full"
	DiskLow  = "Low"
)

// seenWhole is the share, in percent, of a volume's size that its file system has at least. A member that sees less has not
// measured since the volume grew. It is less than what any step of growth leaves of a volume (100 of 120), and more than file
// systems keep for themselves.
const seenWhole = 85

// Sizes of the volumes of members.
type Sizes struct {
	// Wanted is spec.storage, or what volumes have grown to by themselves.
	Wanted resource.Quantity

	// Held is what fills a volume and is no data, for people; bound reports that they would have grown without the bound.
	Held  string
	Bound bool

	// claimed is the size that the VolumeClaim had last; it never shrinks.
	claimed resource.Quantity

	// Granted are the sizes of volumes that exist, smallest first.
	Granted []resource.Quantity

	// Created is the size of a new volume: as much as wanted, and as much as the largest, because it has to hold the same data.
	Created resource.Quantity

	// Usable is what the server may count on: the smallest volume, and while that is unknown spec.storage.
	Usable resource.Quantity

	// Logs are the sizes of volumes for logs alone that exist, smallest first, and UsableWAL what the server may count on of them;
	// zero without.
	Logs      []resource.Quantity
	UsableWAL resource.Quantity

	// WALMoves reports that some members have the log beside the data yet.
	WALMoves bool
}

// measured sizes, each at least as large as least.
func (s *Cluster) measured(least resource.Quantity) Sizes {
	z := Sizes{claimed: ClaimedBy(s.Observed[s.In(names.VolumeClaim)]), Granted: s.granted(), Usable: s.Spec.Storage}
	z.Wanted, z.Held, z.Bound = s.wantedStorage(least, z.claimed)
	z.Created = z.Wanted
	if n := len(z.Granted); n > 0 {
		if largest := z.Granted[n-1]; largest.Cmp(z.Created) > 0 {
			z.Created = largest
		}
		if n == len(s.Sets) {
			z.Usable = z.Granted[0]
		}
	}
	s.measureWAL(&z)
	return z
}

// measureWAL is about volumes for logs alone, if the spec has any.
func (s *Cluster) measureWAL(z *Sizes) {
	if s.Spec.WALStorage == nil {
		return
	}
	z.UsableWAL = *s.Spec.WALStorage
	for _, letter := range compose.SortedKeys(s.Sets) {
		if v, ok := s.WALVolume(letter); ok {
			if q, err := resource.ParseQuantity(v.Granted); err == nil {
				z.Logs = append(z.Logs, q)
			}
		}
		z.WALMoves = z.WALMoves || !s.Sets[letter].LogVolume
	}
	slices.SortStableFunc(z.Logs, func(a, b resource.Quantity) int { return a.Cmp(b) })
	if n := len(z.Logs); n > 0 && n == len(s.Sets) {
		z.UsableWAL = z.Logs[0]
	}
}

// WALVolume of a member, for its log alone, as the VolumeClaim reports it.
func (s *Cluster) WALVolume(letter string) (storagev1alpha1.VolumeObservation, bool) {
	for _, v := range s.OnDisk.Volumes {
		if v.Holds == storagev1alpha1.HoldsWAL && v.Member == s.Member(letter) {
			return v, true
		}
	}
	return storagev1alpha1.VolumeObservation{}, false
}

// dataState is the state of the volumes of data: the next step of growth does not wait for other volumes.
func (s *Cluster) dataState() string {
	if !slices.ContainsFunc(s.OnDisk.Volumes, func(v storagev1alpha1.VolumeObservation) bool { return v.Holds != "" }) {
		return s.OnDisk.State
	}
	for _, v := range s.OnDisk.Volumes {
		if v.Holds == "" && v.State != storagev1alpha1.VolumeReady {
			return v.State
		}
	}
	return storagev1alpha1.VolumeReady
}

// wantedStorage grows by one step at a time: the next step needs a measurement of the volume after the last.
func (s *Cluster) wantedStorage(least, claimed resource.Quantity) (size resource.Quantity, held string, bound bool) {
	size = s.Spec.Storage
	if least.Cmp(size) > 0 {
		size = least
	}
	growth := s.Spec.StorageGrowth
	if growth == nil {
		return size, "", false
	}
	if claimed.Cmp(size) > 0 {
		size = claimed
	}
	if !s.HasTopology || s.dataState() != storagev1alpha1.VolumeReady || size.Cmp(claimed) != 0 {
		return size, "", false
	}
	for _, v := range s.OnDisk.Volumes {
		m := s.SeenMember(s.LetterOf(v.Member)).Volume
		granted, err := resource.ParseQuantity(v.Granted)
		if err != nil || v.Holds != "" || granted.Cmp(size) > 0 || m == nil || m.UsedPercent < 100-growth.WhenFreePercent || !isMeasured(m, granted) {
			continue
		}
		if m.Diverged != "" {
			continue // The member removes data that is kept beside its own before space is short.
		}
		if m.Fill != observev1alpha1.FillData {
			held = s.Engine.Filling(s.Name, v.Member, m)
			continue
		}
		next := enlarged(size, growth.ByPercent)
		if next.Cmp(growth.Max) > 0 {
			next = growth.Max
		}
		if next.Cmp(size) <= 0 {
			return size, held, true
		}
		return next, "", false
	}
	return size, held, false
}

// isMeasured reports whether a member has measured its volume since that has its size.
func isMeasured(m *observev1alpha1.VolumeReport, granted resource.Quantity) bool {
	fs, err := resource.ParseQuantity(m.FileSystem)
	return err == nil && fs.Value() >= granted.Value()/100*seenWhole
}

// enlarged size, to whole GiB.
func enlarged(size resource.Quantity, percent int32) resource.Quantity {
	const gib = int64(1) << 30
	bytes := size.Value() + size.Value()/100*int64(percent)
	return *resource.NewQuantity((bytes+gib-1)/gib*gib, resource.BinarySI)
}

// ClaimedBy a VolumeClaim: the size that it had last, or 0.
func ClaimedBy(o compose.Object) resource.Quantity {
	if o == nil {
		return resource.Quantity{}
	}
	q, err := resource.ParseQuantity(compose.Text(o.Map(), "spec", "forProvider", "size"))
	if err != nil {
		return resource.Quantity{}
	}
	return q
}

// ObserveVolumes is what the VolumeClaim reports, if it reports anything yet.
func ObserveVolumes(o compose.Object) storagev1alpha1.VolumeClaimObservation {
	seen, _ := observed.Status[storagev1alpha1.VolumeClaimObservation](o)
	return seen
}

// granted sizes of the volumes of members that exist, smallest first.
func (s *Cluster) granted() []resource.Quantity {
	var sizes []resource.Quantity
	for _, letter := range compose.SortedKeys(s.Sets) {
		if q, ok := s.GrantedTo(letter); ok {
			sizes = append(sizes, q)
		}
	}
	slices.SortFunc(sizes, func(a, b resource.Quantity) int { return a.Cmp(b) })
	return sizes
}

// GrantedTo a member: the size of its volume, as the VolumeClaim reports, or else the Topology.
func (s *Cluster) GrantedTo(letter string) (resource.Quantity, bool) {
	text := s.SeenMember(letter).VolumeSize
	for _, v := range s.OnDisk.Volumes {
		if v.Member == s.Member(letter) && v.Holds == "" && v.Granted != "" {
			text = v.Granted
		}
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}
