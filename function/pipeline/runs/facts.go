// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// Facts that a decision is made by.
type Facts struct {
	Now time.Time

	// Ledger as remembered.
	Ledger Ledger

	// Jobs that Capstan made and that are observed, by their names.
	Jobs map[string]Job
	// Gone are Jobs that were sought and do not exist.
	Gone map[string]bool

	// Report of the provider about all Jobs, or nil.
	Report []observev1alpha1.ObservedJob

	// Accepted reports whether the spec can be carried out. If not, what runs continues, and nothing else begins.
	Accepted bool

	// Revision that the spec asks for, and its other fields.
	Revision string
	// Stream reports that the spec has neither schedule nor run.
	Stream  bool
	RunID   string
	Suspend bool
	Forbid  bool
	Replace bool
	History int
	// Memory of the spec in bytes, and how it grows. A zero Raise means that no rule raises it.
	Memory int64
	Raise  Raise

	// Names of Jobs.
	Run  func(id string) string
	Next func(start int32) string
}

// A Raise is how the memory grows.
type Raise struct {
	Factor   float64
	Max      int64 // 0: no bound
	Attempts int
}

// A Job as observed.
type Job struct {
	ID       string
	Kind, Of Kind
	Start    int32
	Revision string
	// Created is when it was made.
	Created *time.Time
	// Deleting reports that it ends with its pods. Suspended reports that a queue has not admitted it.
	Deleting, Suspended bool
	// Complete and Failed are its ends, for a reason of Kubernetes.
	Complete, Failed bool
	Reason, Message  string
}

// Reasons that Kubernetes fails a Job for.
const (
	reasonPolicy   = "PodFailurePolicy" // The companion ended the run, or was killed.
	reasonDeadline = "DeadlineExceeded"
)

// sorted Jobs by name.
func sorted(jobs map[string]Job) iter.Seq2[string, Job] {
	return func(yield func(string, Job) bool) {
		for _, name := range slices.Sorted(maps.Keys(jobs)) {
			if !yield(name, jobs[name]) {
				return
			}
		}
	}
}

// reported is what the provider says about a Job, or nil.
func (f Facts) reported(job string) *observev1alpha1.ObservedJob {
	for i := range f.Report {
		if f.Report[i].Name == job {
			return &f.Report[i]
		}
	}
	return nil
}

// newest run first. Those that have not begun are newer than all others.
func newest(a, b Run) int {
	switch {
	case a.Started == nil || b.Started == nil:
		return cmp.Or(boolean(a.Started != nil)-boolean(b.Started != nil), cmp.Compare(b.Job, a.Job))
	default:
		return cmp.Or(b.Started.Compare(*a.Started), cmp.Compare(b.Job, a.Job))
	}
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
