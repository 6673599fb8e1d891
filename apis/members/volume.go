// SPDX-License-Identifier: Apache-2.0

package members

// What fills a volume.
const (
	// FillData: tables, indexes and temporary files.
	FillData = "Data"
	// FillSlot: write-ahead log that a replication slot holds back.
	FillSlot = "Slot"
	// FillArchive: write-ahead log that was not archived.
	FillArchive = "Archive"
	// FillWAL: write-ahead log, for another reason or for one that is not known.
	FillWAL = "WAL"
)

// VolumeReport says how full the volume of a member is. It changes only when that
// matters.
type VolumeReport struct {
	// UsedPercent of the file system, in steps of 5, rounded down.
	//
	// +optional
	UsedPercent int32 `json:"usedPercent,omitempty"`

	// FileSystem is its size as the member sees it, in MiB.
	//
	// +optional
	FileSystem string `json:"fileSystem,omitempty"`

	// Fill is what fills it, once it is half full: Data, Slot, Archive or WAL.
	//
	// +optional
	Fill string `json:"fill,omitempty"`

	// Slot that holds the write-ahead log back, if one does.
	//
	// +optional
	Slot string `json:"slot,omitempty"`

	// Diverged is since when the volume also holds data of a former leader that
	// could not be kept in use, if it does. It is removed after seven days, or
	// when the volume gets full.
	//
	// +optional
	Diverged string `json:"diverged,omitempty"`
}
