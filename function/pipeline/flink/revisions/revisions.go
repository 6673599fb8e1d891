// SPDX-License-Identifier: Apache-2.0

// Package revisions decides which revision of a stream runs: the one that the spec asks for, or the last stable one after another did not
// run well. It is pure. Values go in one direction: what is remembered (Ledger), what is observed (Facts), and what follows.
package revisions

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/flink"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	// maxWhy is the length of a cause, in bytes.
	maxWhy = 512
	// maxIgnored is how many revisions are ignored at most: the oldest are forgotten, whose states are older than any that could be used.
	maxIgnored = 100
	maxSeq     = 1 << 53
)

// A Ledger is what a stream remembers. It is in the status of its Pipeline and on its Service. The one with the higher Seq counts, so that a
// crash between the two writes loses nothing.
type Ledger struct {
	// Seq grows with each change.
	Seq int64 `json:"seq"`
	// Revision is the number of the present one, 0 before the first.
	Revision int32 `json:"revision"`
	// Hash of everything that reaches its pods.
	Hash string `json:"hash,omitempty"`
	// Since when it is desired.
	Since *time.Time `json:"since,omitempty"`
	// Seen is when its JobManager answered first.
	Seen *time.Time `json:"seen,omitempty"`
	// Stable reports that it has completed a checkpoint.
	Stable bool `json:"stable,omitempty"`
	// Continues reports that a revision before it has.
	Continues bool `json:"continues,omitempty"`
	// Suspended reports that the spec suspended it, so that its time begins again.
	Suspended bool `json:"suspended,omitempty"`
	// Ignored revisions did not run well. Their state is not used.
	Ignored []int32 `json:"ignored,omitempty"`
	// Failed is the last revision that was rolled back, until the spec asks for something else.
	Failed *Failed `json:"failed,omitempty"`
}

// Failed is a revision that was rolled back.
type Failed struct {
	Revision int32     `json:"revision"`
	Hash     string    `json:"hash"`
	At       time.Time `json:"at"`
	Why      string    `json:"why"`
}

// Text of a ledger.
func (l Ledger) Text() string {
	raw, err := json.Marshal(l)
	if err != nil {
		return "" // It has nothing that could fail.
	}
	return string(raw)
}

// Recall the newest of some ledgers. Texts that are none do not count.
func Recall(texts ...string) Ledger {
	var newest Ledger
	for _, text := range texts {
		var l Ledger
		if json.Unmarshal([]byte(text), &l) == nil && l.Revision > 0 && l.Seq > newest.Seq && l.Seq < maxSeq {
			newest = l
		}
	}
	return newest
}

// Facts that a decision is made by.
type Facts struct {
	Now    time.Time
	Ledger Ledger

	// Hash of the revision that the spec asks for. Accepted reports whether it can be carried out: if not, nothing changes.
	Hash     string
	Accepted bool
	Suspend  bool

	// Floor is the highest number of a revision that anything observed has, and Ignored are the revisions that its pods ignore, should
	// the newest ledger be lost.
	Floor   int32
	Ignored []int32

	// Stable is the hash of the spec that ran well last, empty when there is none.
	Stable string

	// Report about the stream, or nil.
	Report *observev1alpha1.FlinkJobObservation

	// Within a time a revision has to complete a checkpoint, once its JobManager answers; Before that the one before it stops.
	Within, Before time.Duration
}

// Decide which revision runs, and when another decision is due.
func Decide(f Facts) (Ledger, []time.Time) {
	d := decision{f: f, l: f.Ledger}
	d.l.Ignored = slices.Clone(d.l.Ignored)
	if f.Accepted {
		d.act()
	}
	if !reflect.DeepEqual(f.Ledger, d.l) {
		d.l.Seq = f.Ledger.Seq + 1
	}
	return d.l, d.deadlines
}

type decision struct {
	f         Facts
	l         Ledger
	deadlines []time.Time
}

func (d *decision) act() {
	failed := d.l.Failed
	switch {
	case d.f.Floor > d.l.Revision:
		// The newest ledger is lost. What runs is not known, and the state that there is belongs to revisions up to this one.
		d.l.Revision, d.l.Ignored, d.l.Failed = d.f.Floor, slices.Clone(d.f.Ignored), nil
		d.begin(d.f.Hash)
	case d.l.Revision == 0, d.f.Hash != d.l.Hash && (failed == nil || d.f.Hash != failed.Hash):
		d.begin(d.f.Hash)
		d.l.Failed = nil
	case d.f.Hash == d.l.Hash:
		d.l.Failed = nil // The edit was taken back.
	}
	if d.f.Suspend {
		d.l.Suspended, d.l.Seen = true, nil
		return
	}
	if d.l.Suspended {
		d.l.Suspended, d.l.Since = false, &d.f.Now
	}
	d.judge()
}

// begin the next revision.
func (d *decision) begin(hash string) {
	d.l.Revision++
	d.l.Continues = d.l.Continues || d.l.Stable
	d.l.Hash, d.l.Since, d.l.Seen, d.l.Stable = hash, &d.f.Now, nil, false
}

// judge the present revision by its report.
func (d *decision) judge() {
	r := d.report()
	if r != nil && d.l.Seen == nil {
		d.l.Seen = &d.f.Now
	}
	if r != nil && (r.Checkpoint != nil || r.Phase == string(flink.PhaseFinished) || r.Phase == string(flink.PhaseCanceled)) {
		d.l.Stable = true
	}
	if d.l.Stable || d.f.Stable == "" || d.f.Stable == d.l.Hash {
		return
	}
	until := d.until()
	if d.f.Now.Before(until) {
		d.deadlines = append(d.deadlines, until)
		return
	}
	why := d.cause()
	if why == "" {
		return
	}
	d.l.Failed = &Failed{Revision: d.l.Revision, Hash: d.l.Hash, At: d.f.Now, Why: cut(why)}
	d.l.Ignored = append(d.l.Ignored, d.l.Revision)
	d.l.Ignored = d.l.Ignored[max(0, len(d.l.Ignored)-maxIgnored):]
	d.begin(d.f.Stable)
}

// cause of what keeps the present revision from running, empty while it is not known: a provider that is stopped, or cannot ask, is no reason to
// end what may run well.
func (d *decision) cause() string {
	last := d.f.Report
	switch r := d.report(); {
	case last == nil, last.Silent != "":
		return ""
	case r != nil:
		return Cause(*r)
	case last.Pods != nil:
		return last.Pods.Message
	case last.Phase == string(flink.PhaseStopped):
		return "its JobManager did not answer"
	}
	return "" // What is reported may be from before the edit.
}

// until when the present revision has to complete a checkpoint.
func (d *decision) until() time.Time {
	switch {
	case d.l.Seen != nil:
		return d.l.Seen.Add(d.f.Within)
	case d.l.Since != nil:
		return d.l.Since.Add(d.f.Before + d.f.Within)
	default:
		return d.f.Now.Add(d.f.Within)
	}
}

// report about the present revision, or nil.
func (d *decision) report() *observev1alpha1.FlinkJobObservation {
	if d.f.Report == nil || d.f.Report.Revision != d.l.Revision {
		return nil
	}
	return d.f.Report
}

// Cause of what keeps a stream from running.
func Cause(r observev1alpha1.FlinkJobObservation) string {
	switch {
	case r.Message != "":
		return r.Message
	case r.Pods != nil:
		return r.Pods.Message
	case r.CheckpointFault != "":
		return "checkpoints fail: " + r.CheckpointFault
	case r.Fault != nil:
		return r.Fault.Message
	case r.Phase == string(flink.PhaseStarting) && r.TaskManagers == 0:
		return "no TaskManager has registered"
	}
	return "no checkpoint was completed"
}

func cut(s string) string {
	if len(s) <= maxWhy {
		return s
	}
	return strings.ToValidUTF8(s[:maxWhy], "") + "…"
}
