// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"slices"
	"time"

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

	// Accepted reports whether the spec can be carried out. If not, what runs goes on, and nothing else begins.
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

// Reasons that Kubernetes fails a Job for.
const (
	reasonPolicy   = "PodFailurePolicy" // The crew gave up.
	reasonDeadline = "DeadlineExceeded"
)

// memberLost is how long a member of a crew can be missing without a spare.
const memberLost = 5 * time.Minute

// ended reports whether a Job has ended by itself.
func (j Job) ended() bool { return j.Complete || j.Failed }

// lost is since when more members are missing than there are spares. A crew that has not begun is not complete yet. Only a coordinator
// that has stopped all ranks because of it reports missing members in these phases.
func (f Facts) lost() (since time.Time, ok bool) {
	r := f.Report
	if r == nil || !f.Ledger.Began || (r.Phase != "Recovering" && r.Phase != "Gathering") || len(r.Missing) <= f.Spares {
		return time.Time{}, false
	}
	times := make([]time.Time, 0, len(r.Missing))
	for _, m := range r.Missing {
		times = append(times, m.Since.Time)
	}
	slices.SortFunc(times, time.Time.Compare)
	return times[f.Spares], true
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
