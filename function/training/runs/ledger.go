// SPDX-License-Identifier: Apache-2.0

// Package runs decides which run of a Training there is: whether it continues, ends, or is followed by another. It is pure. Values go in one
// direction: what is remembered (Ledger), what is observed (Facts), and what follows (Decision).
package runs

import (
	"encoding/json"
	"slices"
	"time"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// A State of a Training as its ledger has it.
type State string

// States of a Training. The zero State is the one before the first run.
const (
	// Active: the Job of the run exists, or is about to.
	Active State = "Active"
	// Ending: the run is over, and another follows once its pods are gone.
	Ending State = "Ending"
	// Suspended: no run, because the spec says so.
	Suspended State = "Suspended"
	// Succeeded and Failed are the ends of a Training. It leaves them only when a person asks.
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
)

// An Outcome of a run says why it ended.
type Outcome string

// Outcomes of runs beside success and failure: why another run follows.
const (
	// OutcomeEdited: the spec was edited.
	OutcomeEdited Outcome = "Edited"
	// OutcomeRerun: a person asked for another run.
	OutcomeRerun Outcome = "Rerun"
	// OutcomeScheduled: the schedule began another run.
	OutcomeScheduled Outcome = "Scheduled"
	// OutcomeSuspended: the spec suspends the Training.
	OutcomeSuspended Outcome = "Suspended"
	// OutcomeLost: pods or their nodes were lost for good.
	OutcomeLost Outcome = "Lost"
	// OutcomeNotStarted: not all ranks ran in time.
	OutcomeNotStarted Outcome = "NotStarted"
	// OutcomeJobDeleted: something else than Capstan deleted the Job.
	OutcomeJobDeleted Outcome = "JobDeleted"
	// OutcomeSucceeded and OutcomeFailed end the Training.
	OutcomeSucceeded Outcome = "Succeeded"
	OutcomeFailed    Outcome = "Failed"
)

// Sizes of what a ledger keeps, so that it fits into an annotation.
const (
	maxHistory = 10
	maxMessage = 2048 // bytes of the last words
	maxRemark  = 256  // bytes of the message of a run of the history
	maxSeq     = 1 << 53
	maxRun     = 1 << 30
)

// A Ledger is what a Training remembers. It is in its status and on its Service. The one with the higher Seq counts, so that a crash
// between the two writes loses nothing.
type Ledger struct {
	// Seq grows with each change.
	Seq int64 `json:"seq"`
	// Run is the number of the present or last run, 0 before the first.
	Run int32 `json:"run"`
	// State of the Training.
	State State `json:"state,omitempty"`
	// Revision that the pods of the run are of.
	Revision string `json:"revision,omitempty"`
	// Seen reports whether the Job of the run was observed: from then on its absence is news.
	Seen bool `json:"seen,omitempty"`
	// Began reports whether all ranks of the run have run once.
	Began bool `json:"began,omitempty"`
	// Workers is the number of members without which no rank of the run runs. 0: not known, because an earlier version began it.
	Workers int32 `json:"workers,omitempty"`
	// Started is when the Job was made.
	Started *time.Time `json:"started,omitempty"`
	// Ended is when the run was over, and Next why.
	Ended *time.Time `json:"ended,omitempty"`
	Next  Outcome    `json:"next,omitempty"`
	// Stopped reports that a coordinator had stopped all ranks before the run was over.
	Stopped bool `json:"stopped,omitempty"`
	// Apart is since when fewer members than Workers may still run, of a run that is over.
	Apart *time.Time `json:"apart,omitempty"`
	// NotBefore is when the next run may begin.
	NotBefore *time.Time `json:"notBefore,omitempty"`
	// Rerun is the id of the last request to start again that was carried out.
	Rerun string `json:"rerun,omitempty"`
	// Lost counts the runs in a row that were lost without progress, and Best is the furthest step until then.
	Lost int32 `json:"lost,omitempty"`
	Best int64 `json:"best,omitempty"`
	// Resume is the checkpoint that the run begins with, when it finds none itself.
	Resume string `json:"resume,omitempty"`
	// Cycle is the number of the last run that the schedule began without a checkpoint, 0 before the first: checkpoints of a cycle have
	// a folder of their own. Former is the cycle before.
	Cycle  int32 `json:"cycle,omitempty"`
	Former int32 `json:"former,omitempty"`
	// For is the time of the schedule that the run began for.
	For *time.Time `json:"for,omitempty"`
	// Agenda is what is remembered of the schedule.
	Agenda Agenda `json:"agenda,omitzero"`
	// Reason and Message of a Training that failed.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// History has the last runs that ended, the newest first.
	History []Record `json:"history,omitempty"`
}

// A Record of a run that ended.
type Record struct {
	Run     int32      `json:"run"`
	Outcome Outcome    `json:"outcome"`
	For     *time.Time `json:"for,omitempty"`
	Started *time.Time `json:"started,omitempty"`
	Ended   time.Time  `json:"ended"`
	Step    int64      `json:"step,omitempty"`
	Message string     `json:"message,omitempty"`
}

// Text of a ledger.
func (l Ledger) Text() string {
	raw, _ := json.Marshal(l) //nolint:errchkjson // Numbers, text and times always marshal.
	return string(raw)
}

// Parse a ledger. A text that is none is not ok.
func Parse(text string) (l Ledger, ok bool) {
	if text == "" || json.Unmarshal([]byte(text), &l) != nil {
		return Ledger{}, false
	}
	states := []State{"", Active, Ending, Suspended, Succeeded, Failed}
	if l.Seq < 0 || l.Seq > maxSeq || l.Run < 0 || l.Run > maxRun || !slices.Contains(states, l.State) {
		return Ledger{}, false
	}
	return l, true
}

// A Memory holds the places where something is remembered of the runs.
type Memory struct {
	// Ledgers as texts.
	Ledgers []string
	// Jobs that are observed, by the number of their run.
	Jobs map[int32]Job
	// Number of the run that the Run observes, what its annotations keep of the ledger, and what it reports.
	Number          int32
	Revision, Rerun string
	Cycle           int32
	Report          observev1alpha1.RunObservation
}

// Recall what is remembered. Where ledgers were lost, the labels of a Job and the Run still know that there was a run, and how it ended:
// a Training that has ended does not start again because its records are gone.
func Recall(m Memory) Ledger {
	var l Ledger
	for _, text := range m.Ledgers {
		if other, ok := Parse(text); ok && other.Seq > l.Seq {
			l = other
		}
	}
	known := l.Run
	if m.Number > l.Run {
		l = l.later(m.Number, m.Revision, m.Rerun, m.Cycle)
		switch {
		case m.Report.Number != m.Number:
		case m.Report.Phase == phaseSucceeded:
			l.State = Succeeded
		case m.Report.Phase == phaseFailed:
			l.State, l.Reason, l.Message = Failed, reasonProgram, cut(m.Report.Message, maxMessage)
		}
	}
	for run, j := range m.Jobs {
		if run >= l.Run && run > known {
			l = l.later(run, j.Revision, j.Rerun, j.Cycle)
			l.Started = j.Created
		}
	}
	return l
}

// later run than the ledger knows, with what it knows of earlier ones.
func (l Ledger) later(run int32, revision, rerun string, cycle int32) Ledger {
	later := Ledger{
		Seq: l.Seq, Run: run, State: Active, Seen: true, Revision: revision, Rerun: rerun,
		Lost: l.Lost, Best: l.Best, Resume: l.Resume, Cycle: l.Cycle, Former: l.Former, Agenda: l.Agenda, History: l.History,
	}
	if cycle > l.Cycle { // A cycle has checkpoints of its own.
		later.Cycle, later.Former, later.Resume = cycle, l.Cycle, ""
	}
	return later
}
