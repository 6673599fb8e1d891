// SPDX-License-Identifier: Apache-2.0

package members

import (
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/objects"
)

// VolumeClaimSpec without what the schema fills in.
type VolumeClaimSpec struct {
	ForProvider storagev1alpha1.VolumeClaimParameters `json:"forProvider"`
}

// Storage of the members that exist: their volumes grow to the desired size. StatefulSets cannot do that: their claims stay as they
// were made.
func Storage(d *compose.Draft, s *facts.Cluster) {
	members := make([]string, 0, len(s.Sets))
	for _, letter := range compose.SortedKeys(s.Sets) {
		members = append(members, s.Member(letter))
	}
	gvk := storagev1alpha1.VolumeClaimGroupVersionKind
	d.Offer(s.In(names.VolumeClaim), objects.Manifest(gvk, s.Metadata(s.Base()),
		VolumeClaimSpec{ForProvider: storagev1alpha1.VolumeClaimParameters{
			Database: s.Base(),
			Identity: s.Identity,
			Members:  members,
			Size:     s.Sizes.Wanted,
		}}))
}
