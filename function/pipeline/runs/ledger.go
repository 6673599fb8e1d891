// SPDX-License-Identifier: Apache-2.0

// Package runs decides which runs of a Pipeline Capstan makes itself: runs by id, a stream, and runs that begin again with more memory.
// Kubernetes makes scheduled runs. It is pure. Values go in one direction: what is remembered (Ledger), what is observed (Facts), and what
// follows (Decision).
package runs

import (
	"encoding/json"
	"time"
)

// A Kind of a run says why there is its Job.
type Kind string

// Kinds of runs.
const (
	// Scheduled: Kubernetes made it by the schedule.
	Scheduled Kind = "Scheduled"
	// ByID: the spec asked for it.
	ByID Kind = "ByID"
	// Again: it follows a run whose pod had not enough memory, or was killed.
	Again Kind = "Again"
	// Stream: it runs without end.
	Stream Kind = "Stream"
)

// A State of a run.
type State string

// States of runs.
const (
	// Active: the Job exists, or is about to.
	Active State = "Active"
	// Ending: the Job is no longer desired, and ends with its pods.
	Ending State = "Ending"
	// Ended: an edit, a suspension or another run ended it.
	Ended State = "Ended"
	// Succeeded and Failed are ends by itself.
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
)

// over reports whether a state does not change any more.
func (s State) over() bool { return s == Ended || s == Succeeded || s == Failed }

// Sizes of what a ledger keeps, so that it fits into an annotation.
const (
	maxHistory = 20
	maxMessage = 1024 // bytes of the last words of the last run
	maxRemark  = 256  // bytes of the words of others
	maxSeq     = 1 << 53
)

// A Run as remembered.
type Run struct {
	// ID of the run, and Job its name.
	ID  string `json:"id"`
	Job string `json:"job"`
	// Kind of the run, and Of the kind of the run that one again follows.
	Kind Kind `json:"kind"`
	Of   Kind `json:"of,omitempty"`
	// Revision of the spec that its pods are of.
	Revision string `json:"revision,omitempty"`
	State    State  `json:"state"`
	// Seen reports whether the Job was observed: from then on its absence is news.
	Seen bool `json:"seen,omitempty"`
	// Memory that was raised, in bytes, or 0. Raises and Kills count how often the run began again.
	Memory int64 `json:"memory,omitempty"`
	Raises int   `json:"raises,omitempty"`
	Kills  int   `json:"kills,omitempty"`

	Started  *time.Time `json:"started,omitempty"`
	Ended    *time.Time `json:"ended,omitempty"`
	Attempts int32      `json:"attempts,omitempty"`
	Class    string     `json:"class,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Message  string     `json:"message,omitempty"`
}

// A Ledger is what a Pipeline remembers. It is in its status and on its Service. The one with the higher Seq counts, so that a crash
// between the two writes loses nothing.
type Ledger struct {
	// Seq grows with each change.
	Seq int64 `json:"seq"`
	// Runs that are not over, the newest first.
	Runs []Run `json:"runs,omitempty"`
	// History has runs that are over, the newest first.
	History []Run `json:"history,omitempty"`
	// Last is the id of the last run by id.
	Last string `json:"last,omitempty"`
	// Starts of the stream so far.
	Starts int32 `json:"starts,omitempty"`
}

// Text of a ledger.
func (l Ledger) Text() string {
	raw, _ := json.Marshal(l) //nolint:errchkjson // Numbers, text and times always marshal.
	return string(raw)
}

// Parse a ledger. A text that is none is not ok.
func Parse(text string) (l Ledger, ok bool) {
	if text == "" || json.Unmarshal([]byte(text), &l) != nil || l.Seq < 0 || l.Seq > maxSeq || l.Starts < 0 {
		return Ledger{}, false
	}
	for _, r := range l.Runs {
		if r.Job == "" || r.State.over() {
			return Ledger{}, false
		}
	}
	return l, true
}

// Recall what is remembered: the ledger with the higher number. Where all are lost, the Jobs that exist still know that there were runs.
func Recall(texts []string, jobs map[string]Job) Ledger {
	var l Ledger
	for _, text := range texts {
		if other, ok := Parse(text); ok && other.Seq > l.Seq {
			l = other
		}
	}
	for name, j := range sorted(jobs) {
		if j.Kind == "" || l.knows(name) {
			continue
		}
		l.Runs = append(l.Runs, Run{ID: j.ID, Job: name, Kind: j.Kind, Of: j.Of, Revision: j.Revision, State: Active, Seen: true, Started: j.Created})
		switch {
		case j.Kind == ByID && l.Last == "":
			l.Last = j.ID
		case j.Kind == Stream:
			l.Starts = max(l.Starts, j.Start)
		}
	}
	return l
}

// knows reports whether a ledger has a Job.
func (l Ledger) knows(job string) bool {
	for _, all := range [][]Run{l.Runs, l.History} {
		for _, r := range all {
			if r.Job == job {
				return true
			}
		}
	}
	return false
}
