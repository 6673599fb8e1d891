// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// Classes of how full a volume is, as members tell.
const (
	diskFull = "Full"
	diskLow  = "Low"
)

// seenWhole is the share, in percent, of a volume's size that its file system has at least. A member that sees less has not
// measured since the volume grew. It is less than what any step of growth leaves of a volume (100 of 120), and more than file
// systems keep for themselves.
const seenWhole = 85

// volumeClaimSpec without what the schema fills in.
type volumeClaimSpec struct {
	ForProvider storagev1alpha1.VolumeClaimParameters `json:"forProvider"`
}

// storage of the members that exist: their volumes grow to the size that is wanted. StatefulSets cannot do that, their claims are
// as they were made.
func storage(d *compose.Draft, s *cluster) {
	members := make([]string, 0, len(s.sets))
	for _, letter := range compose.SortedKeys(s.sets) {
		members = append(members, s.member(letter))
	}
	gvk := storagev1alpha1.VolumeClaimGroupVersionKind
	d.Offer(s.in(nameVolumeClaim), compose.NewManifest(gvk.GroupVersion().String(), gvk.Kind, s.metadata(s.base()),
		volumeClaimSpec{ForProvider: storagev1alpha1.VolumeClaimParameters{
			Database: s.base(),
			Identity: s.identity,
			Members:  members,
			Size:     s.sizes.wanted,
		}}))
}

// sizes of the volumes of members.
type sizes struct {
	// wanted is spec.storage, or what volumes have grown to by themselves.
	wanted resource.Quantity

	// held is what fills a volume and is no data, for people; bound reports that they would have grown without the bound.
	held  string
	bound bool

	// claimed is what the VolumeClaim was asked for last; what was wanted once does not shrink.
	claimed resource.Quantity

	// granted are the sizes of volumes that exist, smallest first.
	granted []resource.Quantity

	// created is the size of a new volume: as much as wanted, and as much as the largest, because it has to hold the same data.
	created resource.Quantity

	// usable is what the server may count on: the smallest volume, and while that is unknown spec.storage.
	usable resource.Quantity
}

// measured sizes, none of which is less than the least.
func (s *cluster) measured(least resource.Quantity) sizes {
	z := sizes{claimed: s.claimed(), granted: s.granted(), usable: s.spec.Storage}
	z.wanted, z.held, z.bound = s.wantedStorage(least, z.claimed)
	z.created = z.wanted
	if n := len(z.granted); n > 0 {
		if largest := z.granted[n-1]; largest.Cmp(z.created) > 0 {
			z.created = largest
		}
		if n == len(s.sets) {
			z.usable = z.granted[0]
		}
	}
	return z
}

// wantedStorage grows by one step at a time, which is not measured by what was before.
func (s *cluster) wantedStorage(least, claimed resource.Quantity) (size resource.Quantity, held string, bound bool) {
	size = s.spec.Storage
	if least.Cmp(size) > 0 {
		size = least
	}
	growth := s.spec.StorageGrowth
	if growth == nil {
		return size, "", false
	}
	if claimed.Cmp(size) > 0 {
		size = claimed
	}
	if !s.observed || s.onDisk.State != storagev1alpha1.VolumeReady || size.Cmp(claimed) != 0 {
		return size, "", false
	}
	for _, v := range s.onDisk.Volumes {
		m := s.seenMember(s.letterOf(v.Member)).Volume
		granted, err := resource.ParseQuantity(v.Granted)
		if err != nil || granted.Cmp(size) > 0 || m == nil || m.UsedPercent < 100-growth.WhenFreePercent || !isMeasured(m, granted) {
			continue
		}
		if m.Fill != observev1alpha1.FillData {
			held = s.engine.Filling(s.name, v.Member, m)
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

// claimed size: what the VolumeClaim was asked for last.
func (s *cluster) claimed() resource.Quantity {
	o := s.Observed[s.in(nameVolumeClaim)]
	if o == nil {
		return resource.Quantity{}
	}
	q, err := resource.ParseQuantity(compose.Text(o.Map(), "spec", "forProvider", "size"))
	if err != nil {
		return resource.Quantity{}
	}
	return q
}

// observeVolumes is what the VolumeClaim tells, if it tells anything yet.
func observeVolumes(o compose.Object) storagev1alpha1.VolumeClaimObservation {
	var seen storagev1alpha1.VolumeClaimObservation
	if o == nil {
		return seen
	}
	raw, err := json.Marshal(compose.Map(o.Map(), "status", "atProvider"))
	if err != nil || json.Unmarshal(raw, &seen) != nil {
		return storagev1alpha1.VolumeClaimObservation{}
	}
	return seen
}

// granted sizes of the volumes of members that exist, smallest first.
func (s *cluster) granted() []resource.Quantity {
	var sizes []resource.Quantity
	for _, letter := range compose.SortedKeys(s.sets) {
		if q, ok := s.grantedTo(letter); ok {
			sizes = append(sizes, q)
		}
	}
	slices.SortFunc(sizes, func(a, b resource.Quantity) int { return a.Cmp(b) })
	return sizes
}

// grantedTo a member: the size of its volume, as the VolumeClaim tells, or else the Topology.
func (s *cluster) grantedTo(letter string) (resource.Quantity, bool) {
	text := s.seenMember(letter).VolumeSize
	for _, v := range s.onDisk.Volumes {
		if v.Member == s.member(letter) && v.Granted != "" {
			text = v.Granted
		}
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

// storageHealthy tells about the volumes, the worst first.
func storageHealthy(s *state) xpv2.Condition {
	var full, low, strange []string
	known := true
	for _, letter := range compose.SortedKeys(s.sets) {
		m := s.seenMember(letter)
		switch {
		case m.Reason == string(v1alpha1.ReasonVolumeOfAnother):
			strange = append(strange, s.about(m))
		case m.Disk == diskFull:
			full = append(full, s.fill(m))
		case m.Disk == diskLow:
			low = append(low, s.fill(m))
		case m.VolumeSize == "":
			known = false
		}
	}
	failed := s.having(storagev1alpha1.VolumeFailed)
	stuck := s.having(storagev1alpha1.VolumeNotExpandable)
	need, backups := s.repositoryFill()
	switch {
	case len(strange) > 0:
		return no(v1alpha1.ReasonVolumeOfAnother, strings.Join(strange, "; "))
	case len(full) > 0:
		return no(v1alpha1.ReasonStorageFull,
			"over 95 % full, and a server that cannot write stops: "+strings.Join(full, "; ")+". "+s.makeRoom(failed, stuck))
	case len(failed) > 0:
		return no(v1alpha1.ReasonGrowthFailed, fmt.Sprintf(
			"volumes are to have %s, and it is tried again: %s", s.sizes.wanted.String(), strings.Join(failed, "; ")))
	case len(stuck) > 0:
		return no(v1alpha1.ReasonGrowthUnsupported, fmt.Sprintf(
			"volumes are to have %s and stay as they are: %s", s.sizes.wanted.String(), strings.Join(stuck, "; ")))
	case len(low) > 0:
		reason := v1alpha1.ReasonStorageLow
		switch w := s.sizes; {
		case w.bound:
			reason = v1alpha1.ReasonGrowthBound
		case w.held != "":
			reason = v1alpha1.ReasonGrowthHeld
		}
		return no(reason, "over 85 % full: "+strings.Join(low, "; ")+". "+s.makeRoom(failed, stuck))
	case backups != "":
		return no(need, backups)
	case len(s.sets) == 0 || !known:
		return unknown(v1alpha1.ReasonVolumePending, "volumes are being made, or it is not known how full they are")
	case s.growing():
		return yes(v1alpha1.ReasonGrowing, "every volume has room, and is made larger: "+s.progress())
	default:
		return yes(v1alpha1.ReasonStorageReady, "every volume has room")
	}
}

// fill of the volume of a member, for people.
func (s *cluster) fill(m observev1alpha1.TopologyMember) string {
	words := "the volume of " + m.Name
	if m.VolumeSize != "" {
		words += " (" + m.VolumeSize + ")"
	}
	if why := s.engine.Filling(s.name, m.Name, m.Volume); why != "" {
		words += ": " + why
	}
	return words
}

// makeRoom tells what to do about volumes that fill up.
func (s *cluster) makeRoom(failed, stuck []string) string {
	switch w := s.sizes; {
	case len(failed) > 0:
		return fmt.Sprintf("They are to grow to %s, and cannot: %s", s.sizes.wanted.String(), strings.Join(failed, "; "))
	case len(stuck) > 0:
		return "Remove data, or make another Database of a class of storage that grows and move the data: " + strings.Join(stuck, "; ")
	case s.growing():
		return "They grow: " + s.progress()
	case w.bound:
		return fmt.Sprintf("They have grown to spec.storageGrowth.max (%s): raise that or spec.storage, or remove data", s.spec.StorageGrowth.Max.String())
	case w.held != "":
		return "They do not grow by themselves for that. Once the cause is mended the room is free again; raising spec.storage helps until then"
	default:
		return fmt.Sprintf("Raise spec.storage (%s), which takes effect without a restart and also while the server is stopped, or remove data", s.spec.Storage.String())
	}
}

// growing reports whether volumes are on their way to the size that is wanted.
func (s *cluster) growing() bool {
	has := s.sizes.granted
	size := s.sizes.wanted
	return len(has) > 0 && has[0].Cmp(size) < 0
}

// progress of growth, for people.
func (s *cluster) progress() string {
	var words []string
	size := s.sizes.wanted
	for _, letter := range compose.SortedKeys(s.sets) {
		if q, ok := s.grantedTo(letter); ok && q.Cmp(size) < 0 {
			words = append(words, fmt.Sprintf("%s from %s to %s", s.member(letter), q.String(), size.String()))
		}
	}
	return strings.Join(words, ", ")
}

// having a state: what those volumes tell.
func (s *cluster) having(state string) []string {
	var words []string
	for _, v := range s.onDisk.Volumes {
		if v.State == state {
			words = append(words, fmt.Sprintf("%s has %s: %s", v.Member, v.Granted, v.Message))
		}
	}
	return words
}

// storageStatus tells how large and how full volumes are, once there are any.
func (s *cluster) storageStatus() *v1alpha1.StorageStatus {
	if len(s.sets) == 0 || len(s.problems) > 0 {
		return nil
	}
	seen := s.onDisk
	st := &v1alpha1.StorageStatus{Wanted: s.sizes.wanted.String(), State: seen.State}
	if has := s.sizes.granted; len(has) > 0 && len(has) == len(s.sets) {
		st.Size = has[0].String()
	}
	for _, v := range seen.Volumes {
		o := v1alpha1.VolumeStatus{Member: v.Member, Size: v.Granted}
		if m := s.seenMember(s.letterOf(v.Member)).Volume; m != nil {
			o.UsedPercent, o.Fill = m.UsedPercent, m.Fill
		}
		st.Volumes = append(st.Volumes, o)
	}
	return st
}

// fullStop reports whether members do not serve because their volumes are full.
func (s *cluster) fullStop() (string, bool) {
	for _, letter := range compose.SortedKeys(s.sets) {
		if m := s.seenMember(letter); m.Disk == diskFull && !m.Ready {
			return fmt.Sprintf("no member leads, and %s. %s", s.fill(m),
				s.makeRoom(s.having(storagev1alpha1.VolumeFailed), s.having(storagev1alpha1.VolumeNotExpandable))), true
		}
	}
	return "", false
}
