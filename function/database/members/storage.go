// SPDX-License-Identifier: Apache-2.0

package members

import (
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/objects"
	"github.com/capstan-dev/capstan/function/database/pods"
)

// VolumeClaimSpec of volumes that grow.
type VolumeClaimSpec = objects.Spec[storagev1alpha1.VolumeClaimParameters]

// Storage of the members that exist: their volumes grow to the desired size, and they get volumes for their logs. StatefulSets
// cannot do that: their claims stay as they were made.
func Storage(d *compose.Draft, s *facts.Cluster) {
	members := make([]string, 0, len(s.Sets))
	for _, letter := range compose.SortedKeys(s.Sets) {
		members = append(members, s.Member(letter))
	}
	p := storagev1alpha1.VolumeClaimParameters{Database: s.Base(), Identity: s.Identity, Members: members, Size: s.Sizes.Wanted}
	if q := s.Spec.WALStorage; q != nil {
		p.WALVolumes = &storagev1alpha1.WALVolumes{Size: *q, StorageClassName: s.Size.WALStorageClassName}
	}
	if s.FillsVolume() {
		first := names.Letters[0]
		p.Members = append(p.Members, s.Member(first))
		p.Filled = &storagev1alpha1.FilledVolume{
			Member: s.Member(first), Snapshot: s.SourceSnapshot(), StorageClassName: s.Size.StorageClassName, Labels: pods.DataLabels(s),
		}
	}
	d.Offer(s.In(names.VolumeClaim), objects.Managed(storagev1alpha1.VolumeClaimGroupVersionKind, s.Metadata(s.Base()), p))
}
