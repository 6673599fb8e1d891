// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Reasons of a Training that failed.
const (
	reasonProgram = string(v1alpha1.ReasonProgramFailed)
	reasonLost    = string(v1alpha1.ReasonRunsLost)
	reasonTime    = string(v1alpha1.ReasonDeadlineExceeded)
)

// afterGrace is how long a pod may take to end after its grace period.
const afterGrace = 15 * time.Second

// wordless is the message when the reason of a crew is not known.
const wordless = "the crew stopped for good, and its reason is not known: read the logs of the pods"

// lastWords is how long a Job that failed waits for what its crew says about it.
const lastWords = 30 * time.Second

// A Decision about the runs of a Training.
type Decision struct {
	// Ledger from now on.
	Ledger Ledger
	// Deadlines at which another decision is due.
	Deadlines []time.Time
}

// Decide about the runs. The Job of the ledger's run is desired while the ledger is Active. Of a Training that has ended, the Job that
// ended by itself can stay.
func Decide(f Facts) Decision {
	d := &decision{f: f, l: f.Ledger}
	d.l.History = slices.Clone(d.l.History)
	if d.l.State == Active {
		d.observe()
	}
	d.amend()
	if f.Accepted {
		d.act()
	}
	if before := f.Ledger; !reflect.DeepEqual(before, d.l) {
		d.l.Seq = before.Seq + 1
	}
	return Decision{Ledger: d.l, Deadlines: d.deadlines}
}

type decision struct {
	f         Facts
	l         Ledger
	deadlines []time.Time
}

// observe the run that is active: whether it has ended by itself.
func (d *decision) observe() {
	j, exists := d.f.Jobs[d.l.Run]
	switch {
	case !exists && d.l.Seen:
		d.deleted("something else than Capstan deleted the Job")
		// Its pods end with the grace period, and nothing is left to wait for.
		d.l.NotBefore = new(d.f.Now.Add(d.f.Grace + afterGrace))
		return
	case !exists:
		return
	case !d.l.Seen:
		d.l.Seen, d.l.Started = true, j.Created
	}
	switch r := d.f.Report; {
	case j.Suspended:
		d.l.Began = false // A queue took it back, and its pods start again.
	case r != nil && r.Phase == phaseRunning:
		d.l.Began = true
	}
	switch {
	case j.Complete:
		d.finish(Succeeded, "", "")
	case j.Failed:
		d.failed(j)
	case j.Deleting:
		d.deleted("something else than Capstan deletes the Job")
	}
}

// deleted Job, about whose end Kubernetes says nothing. What its crew said counts: what has ended must not start again.
func (d *decision) deleted(message string) {
	words, failed := d.f.words()
	switch r := d.f.Report; {
	case r != nil && r.Phase == phaseSucceeded:
		d.finish(Succeeded, "", "")
	case failed:
		d.finish(Failed, reasonProgram, cmp.Or(words, wordless))
	default:
		d.end(OutcomeJobDeleted, message)
	}
}

// failed Job: the crew stopped for good, the time is over, or pods were lost.
func (d *decision) failed(j Job) {
	switch words, spoken := d.f.words(); {
	case j.Reason == reasonDeadline:
		d.finish(Failed, reasonTime, "the run took longer than spec.deadline")
	case j.Reason != reasonPolicy:
		d.lose("Kubernetes ended the Job: " + strings.TrimSuffix(cmp.Or(j.Message, j.Reason), "."))
	case spoken || d.l.Ended != nil && !d.f.Now.Before(d.l.Ended.Add(lastWords)):
		d.finish(Failed, reasonProgram, cmp.Or(words, d.f.lastFault(), wordless))
	case d.l.Ended == nil:
		// What the coordinator says about it is on its way.
		d.l.Ended = new(d.f.Now)
		d.due(d.f.Now.Add(lastWords))
	default:
		d.due(d.l.Ended.Add(lastWords))
	}
}

// amend the message of a failed Training with what is reported only now: the provider may have been stopped when the run ended.
func (d *decision) amend() {
	words, _ := d.f.words()
	words = cmp.Or(words, d.f.lastFault())
	if d.l.State != Failed || d.l.Message != wordless || words == "" {
		return
	}
	d.l.Message = cut(words, maxMessage)
	if h := d.l.History; len(h) > 0 && h[0].Run == d.l.Run {
		h[0].Message = cut(words, maxRemark)
	}
}

// words of a crew that stopped for good, and whether it has spoken.
func (f Facts) words() (string, bool) {
	r := f.Report
	if r == nil || r.Phase != phaseFailed {
		return "", false
	}
	return cmp.Or(r.Message, f.lastFault()), true
}

// lastFault of the crew, which may have ended before it could report that it stopped for it.
func (f Facts) lastFault() string {
	if f.Report == nil || f.Report.LastFault == nil {
		return ""
	}
	return f.Report.LastFault.Message
}

// act on what the spec asks for.
func (d *decision) act() {
	pending := d.f.Rerun != "" && d.f.Rerun != d.l.Rerun
	d.keepTime()
	switch d.l.State {
	case "", Suspended:
		if d.l.State == Suspended && d.f.Suspend {
			return
		}
		if d.l.State = ""; d.f.Suspend || !d.waits(pending) {
			d.begin()
		}
	case Active:
		d.active(pending)
		d.next()
	case Ending:
		if d.f.Suspend {
			d.l.Next = OutcomeSuspended
		}
		d.next()
	case Succeeded, Failed:
		// A correction of what failed is a reason to start again. After success only a request is.
		edited := d.l.State == Failed && d.l.Revision != "" && d.l.Revision != d.f.Revision
		if pending || edited {
			d.l.State, d.l.Lost, d.l.Ended = Ending, 0, new(d.f.Now)
			d.l.Next = OutcomeRerun
			d.next()
		}
	}
}

// active run: whether it can continue.
func (d *decision) active(pending bool) {
	j, exists := d.f.Jobs[d.l.Run]
	at, lost := d.f.lost(j)
	switch {
	case !exists:
		// It is not made yet, so that it is made as the spec is now.
		d.l.Revision, d.l.Workers, d.l.Rerun = d.f.Revision, d.f.Workers, cmp.Or(d.f.Rerun, d.l.Rerun)
		if d.f.Suspend {
			d.end(OutcomeSuspended, "")
		}
	case j.ended(), j.Unreferenced: // Crossplane takes such a Job back first, because it deletes only what it refers to.
	case d.f.Suspend:
		d.end(OutcomeSuspended, "spec.suspend is set")
	case pending:
		d.end(OutcomeRerun, "spec.rerun.id is "+d.f.Rerun)
	case d.l.Revision == "":
		d.l.Revision = d.f.Revision // It was lost together with the ledger.
	case d.l.Revision != d.f.Revision:
		d.end(OutcomeEdited, "the spec was edited")
	case lost && !d.f.Now.Before(at.since.Add(memberLost)):
		d.lose(fmt.Sprintf("pod %d is missing for more than 5 minutes, and no spare replaces it", at.index))
		d.l.Stopped = at.stopped
	case lost:
		d.due(at.since.Add(memberLost))
	case !d.l.Began && !j.Suspended && j.Started != nil:
		if d.f.gathered(j) {
			return
		}
		until := j.Started.Add(d.f.StartWithin)
		if d.f.Now.Before(until) {
			d.due(until)
			return
		}
		d.end(OutcomeNotStarted, fmt.Sprintf("not all ranks ran within %v", d.f.StartWithin))
		d.l.NotBefore = new(d.f.Now.Add(pause(d.f.Name, d.l.Run)))
	}
}

// next run, once the pods of the last one are gone.
func (d *decision) next() {
	if d.l.State != Ending {
		return
	}
	switch {
	case d.f.Unknown, len(d.f.Jobs) > 0 && !d.fenced():
	case d.f.Suspend:
		d.l.State = Suspended
	case d.l.NotBefore != nil && d.f.Now.Before(*d.l.NotBefore):
		d.due(*d.l.NotBefore)
	default:
		d.begin()
	}
}

// fenced reports whether the pods of a run that is over do no harm any more, although some of them still exist. A pod on a node that is gone
// ends only when the node is back or deleted. No rank of it runs when a coordinator had stopped all of them before the run was over, or
// since too few members are left: a coordinator stops its ranks when it misses a member, and a member when it misses its coordinator.
func (d *decision) fenced() bool {
	j, exists := d.f.Jobs[d.l.Run]
	if len(d.f.Jobs) != 1 || !exists || !j.Deleting || d.l.Ended == nil {
		return false
	}
	since := d.apart()
	if d.l.Next == OutcomeLost && d.l.Stopped {
		since = d.l.Ended
	}
	if since == nil {
		return false
	}
	until := since.Add(d.f.Grace + time.Minute)
	if d.f.Now.Before(until) {
		d.due(until)
		return false
	}
	return true
}

// apart is since when too few members are left, or nil.
func (d *decision) apart() *time.Time {
	r := d.f.Report
	switch {
	case r == nil || r.Remains == nil || r.Remains.Members >= d.l.Workers:
		d.l.Apart = nil
	case d.l.Apart == nil:
		d.l.Apart = new(d.f.Now)
	}
	return d.l.Apart
}

// begin a run, unless the spec suspends the Training.
func (d *decision) begin() {
	if d.f.Suspend {
		d.l.State = Suspended
		return
	}
	l := d.l
	if l.Next == OutcomeEdited || l.Next == OutcomeRerun || l.Agenda.Due != nil {
		l.Lost, l.Best = 0, 0 // Steps of another program, or from the beginning, are no measure.
	}
	d.l = Ledger{
		Seq: l.Seq, Run: l.Run + 1, State: Active, Revision: d.f.Revision, Workers: d.f.Workers, Rerun: cmp.Or(d.f.Rerun, l.Rerun),
		Lost: l.Lost, Best: l.Best, Resume: l.Resume, Cycle: l.Cycle, Former: l.Former, Agenda: l.Agenda, History: l.History,
	}
	if at := l.Agenda.Due; at != nil {
		d.l.For, d.l.Agenda.Due, d.l.Agenda.Last, d.l.Agenda.Run = at, nil, at, d.l.Run
		if !d.f.Schedule.Continue {
			d.l.Cycle, d.l.Former, d.l.Resume = d.l.Run, l.Cycle, ""
		}
	}
}

// lose the run: another one follows, unless too many were lost without progress.
func (d *decision) lose(why string) {
	if step := d.f.step(); step > d.l.Best {
		d.l.Lost, d.l.Best = 0, step
	}
	d.l.Lost++
	if d.l.Lost > d.f.Runs {
		d.finish(Failed, reasonLost, fmt.Sprintf("%s. It is run %d in a row that was lost without progress", why, d.l.Lost))
		return
	}
	d.end(OutcomeLost, why)
}

// end the run, so that another one follows.
func (d *decision) end(why Outcome, message string) {
	d.record(why, message)
	d.l.State, d.l.Next, d.l.Ended = Ending, why, new(d.f.Now)
}

// finish the Training.
func (d *decision) finish(as State, reason, message string) {
	d.record(Outcome(as), message)
	d.l.State, d.l.Reason, d.l.Message, d.l.Next = as, reason, cut(message, maxMessage), ""
	d.l.Ended = new(d.f.Now)
	if as == Succeeded {
		d.l.Lost = 0
	}
}

// record how the run ended.
func (d *decision) record(why Outcome, message string) {
	d.l.Resume = d.f.checkpoint(d.l)
	r := Record{Run: d.l.Run, Outcome: why, For: d.l.For, Started: d.l.Started, Ended: d.f.Now, Step: d.f.step(), Message: cut(message, maxRemark)}
	d.l.History = slices.Insert(d.l.History, 0, r)
	if len(d.l.History) > maxHistory {
		d.l.History = d.l.History[:maxHistory]
	}
}

func (d *decision) due(at time.Time) { d.deadlines = append(d.deadlines, at) }

// pause before a run that did not start is tried again: 1 to 10 minutes, not the same for two Trainings that wait for each other.
func pause(name string, run int32) time.Duration {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s/%d", name, run)
	return time.Minute + time.Duration(h.Sum32()%540)*time.Second
}

// cut a text to a number of bytes, at the front: what a program said last counts most.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "")
	if len(s) <= n {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-n+len("…"):], "")
}
