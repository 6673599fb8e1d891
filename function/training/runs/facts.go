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
	Spares      int
	Runs        int32
	StartWithin time.Duration
	Grace       time.Duration
}

// A Job as observed.
type Job struct {
	Revision, Rerun string
	// Created is when it was made, and Started when it was last allowed to run its pods.
	Created, Started *time.Time
	// Deleting reports that it ends with its pods. Suspended reports that a queue has not admitted it.
	Deleting, Suspended bool
	// Complete and Failed are its ends, for a reason of Kubernetes.
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
func (f Facts) lost() (loss, bool) {
	r := f.Report
	if r == nil || !f.Ledger.Began || (r.Phase != phaseRecovering && r.Phase != phaseGathering) {
		return loss{}, false
	}
	missing := slices.Clone(r.Missing)
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
