// SPDX-License-Identifier: Apache-2.0

package members

import "slices"

// States of an import from another server or from dumps, in the order in which they come.
const (
	// ImportChecking: the source was not looked at yet, or databases are missing that the import fills.
	ImportChecking = "Checking"
	// ImportIncompatible: something stands in the way, and nothing is copied.
	ImportIncompatible = "Incompatible"
	// ImportCopying: schema or rows are being copied.
	ImportCopying = "Copying"
	// ImportFollowing: every row was copied, and changes of the source are applied.
	ImportFollowing = "Following"
	// ImportFailing: changes of the source are not applied.
	ImportFailing = "Failing"
	// ImportCuttingOver: a cut-over is under way.
	ImportCuttingOver = "CuttingOver"
	// ImportCutOver: the import has ended, and the Database is independent of the source.
	ImportCutOver = "CutOver"
	// ImportRestored: every dump is restored, which ends the import.
	ImportRestored = "Restored"
)

// ImportReport is what the leader reports of an import from another server or from dumps. Nothing in
// it ticks: amounts change in steps.
type ImportReport struct {
	// State: Checking, Incompatible, Copying, Following, Failing, CuttingOver, CutOver or
	// Restored.
	//
	// +optional
	State string `json:"state,omitempty"`

	// Message says more about the state.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Findings are what stands in the way of an import, at most 16, each with its remedy.
	//
	// +listType=atomic
	// +optional
	Findings []string `json:"findings,omitempty"`

	// Copied is how many of the tables were copied, or how much of the dumps was read, in
	// percent, in steps of 10.
	//
	// +optional
	Copied int32 `json:"copied,omitempty"`

	// LagBytes is how much write-ahead log of the source is not applied, 0 or a power of 2
	// of at least 1 MiB.
	//
	// +optional
	LagBytes int64 `json:"lagBytes,omitempty"`

	// GapSeconds is for how long writes are expected to wait during the cut-over, or
	// waited.
	//
	// +optional
	GapSeconds int64 `json:"gapSeconds,omitempty"`

	// CutOver is the ID of the cut-over that is under way or has ended.
	//
	// +optional
	CutOver string `json:"cutOver,omitempty"`

	// Skipped is the ID that the Database was created with, which cuts nothing over.
	//
	// +optional
	Skipped string `json:"skipped,omitempty"`
}

// DeepCopyInto another report. It is written by hand because this package has no generated code.
func (r *ImportReport) DeepCopyInto(out *ImportReport) {
	*out = *r
	out.Findings = slices.Clone(r.Findings)
}

// DeepCopy of a report.
func (r *ImportReport) DeepCopy() *ImportReport {
	if r == nil {
		return nil
	}
	out := &ImportReport{}
	r.DeepCopyInto(out)
	return out
}

// FolderImport holds the Secret of the server, or of the bucket, that a Database is imported from.
const FolderImport = "/etc/capstan/import"

// Import is a running server whose databases are copied and followed until a cut-over.
type Import struct {
	Host string `json:"host"`
	Port int32  `json:"port"`
	// TLS is how the server is checked, in the words of the engine.
	TLS string `json:"tls"`
	// Databases to fill.
	Databases []ImportDatabase `json:"databases"`
	// Skip names what may be left out.
	Skip []string `json:"skip,omitempty"`
	// CutOver is the request to end the import. Nil: follow the source.
	CutOver *CutOver `json:"cutOver,omitempty"`
	// Object is the uid of the Database. Data that another one has left behind takes a request that is there already for a copied one.
	Object string `json:"object,omitempty"`
	// Ended: consumers have logins, so nothing is imported, also into empty data.
	Ended bool `json:"ended,omitempty"`
}

// ImportDatabase is a database of this server, and the one that fills it.
type ImportDatabase struct {
	Name   string `json:"name"`
	Source string `json:"source"`
}

// CutOver is a request to end an import.
type CutOver struct {
	ID string `json:"id"`
	// StopWrites makes the databases of the source read-only. Otherwise the cut-over waits until nothing writes.
	StopWrites bool `json:"stopWrites,omitempty"`
}
