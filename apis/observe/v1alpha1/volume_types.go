// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/capstan-dev/capstan/apis/members"

// What fills a volume.
const (
	FillData    = members.FillData
	FillSlot    = members.FillSlot
	FillArchive = members.FillArchive
	FillWAL     = members.FillWAL
)

// VolumeReport is how full the volume of a member is.
type VolumeReport = members.VolumeReport
