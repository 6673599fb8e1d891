// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/crew"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// Facts that a decision is made by.
type Facts struct {
	Now  time.Time
	Name string

	// Ledger as remembered.
	Ledger Ledger

	// Jobs that are observed, by the number of their run.
	Jobs map[int32]Job

	// Unknown reports that it was not sought yet whether the Job of the ledger's run exists. A Job that is no longer desired is observed
	// no more while it ends.
	Unknown bool

	// Report about the run of the ledger, or nil.
	Report *observev1alpha1.RunObservation

	// Accepted reports whether the spec can be carried out. If not, what runs continues, and nothing else begins.
	Accepted bool

	// Revision that the spec asks for, and its other fields.
	Revision    string
	Suspend     bool
	Rerun       string
	Schedule    *Schedule // nil for none
	Workers     int32
	Spares      int
	Runs        int32
	StartWithin time.Duration
	Grace       time.Duration
}

// A Job as observed.
type Job struct {
	Revision, Rerun string
	Cycle           int32
	// Created is when it was made, and Started when it was last allowed to run its pods.
	Created, Started *time.Time
	// Deleting reports that it ends with its pods. Suspended reports that a queue has not admitted it.
	Deleting, Suspended bool
	// Unreferenced reports that Crossplane has lost its reference to it.
	Unreferenced bool
	// Ready is the number of its pods that run, of Size in all.
	Ready, Size int
	// Complete and Failed are its ends, for a reason of Kubernetes. Some pods may still end.
	Complete, Failed bool
	Reason, Message  string
}

// Phases that a Run reports.
const (
	phaseGathering  = string(crew.PhaseGathering)
	phaseRunning    = string(crew.PhaseRunning)
	phaseRecovering = string(crew.PhaseRecovering)
	phaseSucceeded  = string(crew.PhaseSucceeded)
	phaseFailed     = string(crew.PhaseFailed)
)

// Reasons that Kubernetes fails a Job for.
const (
	reasonPolicy   = "PodFailurePolicy" // The crew stopped for good.
	reasonDeadline = "DeadlineExceeded"
)

// memberLost is how long a member of a crew can be missing without a spare.
const memberLost = 5 * time.Minute

// ended reports whether a Job has ended by itself.
func (j Job) ended() bool { return j.Complete || j.Failed }

// A loss of members of a crew that has begun.
type loss struct {
	since time.Time
	// index of a member that is missing.
	index int32
	// stopped reports that a coordinator has stopped all ranks because of it.
	stopped bool
}

// lost is what the crew cannot continue without: its coordinator, which no spare replaces, or more members than there are spares.
func (f Facts) lost(j Job) (loss, bool) {
	r := f.Report
	if r == nil || !f.Ledger.Began || j.Suspended || j.Started == nil || (r.Phase != phaseRecovering && r.Phase != phaseGathering) {
		return loss{}, false
	}
	missing := slices.Clone(r.Missing)
	for i, m := range missing {
		if m.Since.Time.Before(*j.Started) { // A queue took the Job back before.
			missing[i].Since.Time = *j.Started
		}
	}
	slices.SortFunc(missing, func(a, b observev1alpha1.RunMember) int { return a.Since.Compare(b.Since.Time) })
	for _, m := range missing {
		if m.Index == 0 {
			return loss{since: m.Since.Time}, true
		}
	}
	if len(missing) <= f.Spares {
		return loss{}, false
	}
	m := missing[f.Spares]
	return loss{since: m.Since.Time, index: m.Index, stopped: true}, true
}

// gathered reports whether nothing says that ranks do not run: all pods of the Job do, and no coordinator waits for members. A provider that
// is stopped, or cannot reach the coordinator, is no reason to end what may train well.
func (f Facts) gathered(j Job) bool {
	waits := f.Report != nil && (f.Report.Phase == phaseGathering || f.Report.Phase == phaseRecovering)
	return !waits && j.Size > 0 && j.Ready >= j.Size-f.Spares
}

// step that the run reached.
func (f Facts) step() int64 {
	if f.Report == nil || f.Report.Progress == nil {
		return 0
	}
	return f.Report.Progress.Step
}

// checkpoint of the run, or what it began with.
func (f Facts) checkpoint(l Ledger) string {
	if f.Report == nil || f.Report.Checkpoint == nil {
		return l.Resume
	}
	return f.Report.Checkpoint.URI
}
