// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Times of a decision.
const (
	// lastWords is how long a Job that failed waits for what the provider says about it.
	lastWords = 30 * time.Second
	// fresh is how long after its end a scheduled run that had not enough memory begins again. Later the next one is near.
	fresh = time.Hour
)

// maxKills is how often a run begins again whose pod was killed for another reason than its memory.
const maxKills = 6

// wordless is the message when it is not known why a run failed.
const wordless = "the reason is not known: read the logs of its pods"

// A Decision about the runs of a Pipeline.
type Decision struct {
	// Ledger from now on.
	Ledger Ledger
	// Deadlines at which another decision is due.
	Deadlines []time.Time
}

// Decide about the runs. The Jobs of runs that are Active are desired.
func Decide(f Facts) Decision {
	d := &decision{f: f, l: f.Ledger}
	d.l.Runs, d.l.History = slices.Clone(d.l.Runs), slices.Clone(d.l.History)
	for i := range d.l.Runs {
		d.observe(&d.l.Runs[i])
	}
	d.amend()
	d.scheduled()
	if f.Accepted {
		d.again()
		if f.Stream {
			d.stream()
		} else {
			d.byID()
		}
	}
	d.archive()
	if !reflect.DeepEqual(f.Ledger, d.l) {
		d.l.Seq = f.Ledger.Seq + 1
	}
	return Decision{Ledger: d.l, Deadlines: d.deadlines}
}

type decision struct {
	f         Facts
	l         Ledger
	deadlines []time.Time
	// failures of runs that ended in this decision, of scheduled ones, too, which may begin again.
	ended []Run
}

// observe a run that is not over.
func (d *decision) observe(r *Run) {
	j, exists := d.f.Jobs[r.Job]
	if o := d.f.reported(r.Job); o != nil {
		d.take(r, *o)
	}
	if r.State == Ending {
		if !exists && (!r.Seen || d.f.Gone[r.Job]) {
			d.end(r, Ended, "", r.Message)
		}
		return
	}
	switch {
	case exists && !r.Seen:
		r.Seen, r.Started = true, cmp.Or(r.Started, j.Created)
	case !exists && r.Seen && d.f.Gone[r.Job]:
		d.end(r, Failed, string(v1alpha1.ReasonJobDeleted), "something else than Capstan deleted the Job")
		return
	case !exists:
		return
	}
	switch {
	case j.Complete:
		d.end(r, Succeeded, "", "")
	case j.Failed:
		d.failed(r, j.Reason, j.Message)
	case j.Deleting:
		d.end(r, Failed, string(v1alpha1.ReasonJobDeleted), "something else than Capstan deletes the Job")
	}
}

// take over what the provider says about a run.
func (d *decision) take(r *Run, o observev1alpha1.ObservedJob) {
	r.Attempts = max(r.Attempts, o.Attempts)
	if r.Started == nil {
		r.Started = new(o.Created.UTC())
	}
	if f := o.Failure; f != nil {
		r.Class, r.Message = f.Class, shortened(f.Message, maxMessage)
	}
}

// failed Job: what the provider says about it is on its way for a while.
func (d *decision) failed(r *Run, reason, message string) {
	o := d.f.reported(r.Job)
	switch {
	case reason == reasonDeadline:
		d.end(r, Failed, string(v1alpha1.ReasonDeadlineExceeded), "it took longer than spec.deadline")
	case o != nil && o.Failure != nil && (o.Phase == PhaseFailed || o.Failure.Action == string(runner.ActionFail)):
		d.end(r, Failed, string(v1alpha1.ReasonProgramFailed), "")
	case r.Ended == nil:
		r.Ended = new(d.f.Now)
		d.deadlines = append(d.deadlines, d.f.Now.Add(lastWords))
	case d.f.Now.Before(r.Ended.Add(lastWords)):
		d.deadlines = append(d.deadlines, r.Ended.Add(lastWords))
	default:
		if reason != reasonPolicy {
			message = "Kubernetes ended the Job: " + strings.TrimSuffix(cmp.Or(message, reason), ".")
		} else {
			message = cmp.Or(r.Message, wordless)
		}
		d.end(r, Failed, string(v1alpha1.ReasonProgramFailed), message)
	}
}

// Phases that a JobHistory reports.
const (
	PhaseQueued     = "Queued"
	PhaseStarting   = "Starting"
	PhaseRunning    = "Running"
	PhaseRecovering = "Recovering"
	PhaseSucceeded  = "Succeeded"
	PhaseFailed     = "Failed"
)

// end a run. What it said itself says more than an empty message.
func (d *decision) end(r *Run, s State, reason, message string) {
	r.State, r.Ended, r.Reason = s, cmp.Or(r.Ended, new(d.f.Now)), reason
	if o := d.f.reported(r.Job); o != nil && o.Ended != nil {
		r.Ended = new(o.Ended.UTC())
	}
	switch {
	case s != Failed:
		r.Class, r.Message = "", message
	case message != "":
		r.Message = shortened(message, maxMessage)
	}
	if s == Failed {
		d.ended = append(d.ended, *r)
	}
}

// amend the newest run that has ended, when the provider says only now why it failed: it may have been stopped meanwhile. The run begins
// again where a rule says so, unless that is long ago.
func (d *decision) amend() {
	if len(d.l.History) == 0 || d.l.History[0].Message != wordless {
		return
	}
	r := &d.l.History[0]
	o := d.f.reported(r.Job)
	if o == nil || o.Failure == nil {
		return
	}
	d.take(r, *o)
	if len(d.l.Runs) == 0 && d.f.Now.Sub(*r.Ended) < fresh {
		d.ended = append(d.ended, *r)
	}
}

// scheduled runs that have ended since the last time.
func (d *decision) scheduled() {
	for _, o := range d.f.Report {
		if o.Phase != PhaseSucceeded && o.Phase != PhaseFailed || o.Ended == nil || d.l.knows(o.Name) || d.f.Jobs[o.Name].Kind != "" || !d.recent(o) {
			continue
		}
		r := Run{
			ID: o.Name[strings.LastIndexByte(o.Name, '-')+1:], Job: o.Name, Kind: Scheduled, State: Succeeded,
			Started: new(o.Created.UTC()), Ended: new(o.Ended.UTC()), Attempts: o.Attempts,
		}
		if o.Phase == PhaseFailed {
			r.State, r.Reason = Failed, string(v1alpha1.ReasonProgramFailed)
			if o.Reason == reasonDeadline {
				r.Reason, r.Message = string(v1alpha1.ReasonDeadlineExceeded), "it took longer than spec.deadline"
			}
			if f := o.Failure; f != nil && o.Reason != reasonDeadline {
				r.Class, r.Message = f.Class, shortened(f.Message, maxMessage)
			}
			if r.Message == "" {
				r.Message = wordless
			}
			if d.f.Now.Sub(*r.Ended) < fresh {
				d.ended = append(d.ended, r)
			}
		}
		d.l.Runs = append(d.l.Runs, r)
	}
}

// recent reports whether a Job that has ended belongs to the history: an old one may have been in it, and have left.
func (d *decision) recent(o observev1alpha1.ObservedJob) bool {
	if len(d.l.History) < d.f.History {
		return true
	}
	oldest := d.l.History[len(d.l.History)-1]
	return oldest.Started == nil || o.Created.After(*oldest.Started)
}

// again begin runs that had not enough memory, or whose pod was killed.
func (d *decision) again() {
	for _, r := range d.ended {
		if r.Reason != string(v1alpha1.ReasonProgramFailed) || d.f.Raise.Factor == 0 {
			continue
		}
		o := d.f.reported(r.Job)
		if o == nil || o.Failure == nil || o.Failure.Action != "" && o.Failure.Action != string(runner.ActionMemory) {
			continue
		}
		of := cmp.Or(r.Of, r.Kind)
		if of == Stream || of == ByID && r.ID != d.f.RunID {
			continue // A stream is never given more memory, and a request for a run by id may be there no more.
		}
		if d.f.Suspend {
			d.remark(r.Job, "and it does not begin again while spec.suspend is set")
			continue
		}
		next := Run{ID: r.ID, Kind: Again, Of: of, Revision: d.f.Revision, State: Active, Memory: r.Memory, Raises: r.Raises, Kills: r.Kills}
		if r.Class == string(runner.ClassOutOfMemory) {
			memory, why := d.f.more(r)
			if why != "" {
				d.remark(r.Job, why)
				continue
			}
			next.Memory, next.Raises = memory, r.Raises+1
		} else {
			if r.Kills >= maxKills {
				d.remark(r.Job, fmt.Sprintf("and it was killed %d times", r.Kills+1))
				continue
			}
			next.Kills = r.Kills + 1
		}
		next.Job = fmt.Sprintf("%s-m%d", base(r, d.f), next.Raises+next.Kills)
		if !d.l.knows(next.Job) {
			d.l.Runs = append(d.l.Runs, next)
		}
	}
}

// base of the name of a Job that begins again.
func base(r Run, f Facts) string {
	if r.Kind != Again {
		return r.Job
	}
	if r.Of == ByID {
		return f.Run(r.ID)
	}
	return r.Job[:strings.LastIndex(r.Job, "-m")]
}

// more memory than a run had, or why there is no more.
func (f Facts) more(r Run) (int64, string) {
	const mebi = 1 << 20
	had := cmp.Or(r.Memory, f.Memory)
	memory := int64(float64(had)*f.Raise.Factor) / mebi * mebi
	if f.Raise.Max > 0 {
		memory = min(memory, f.Raise.Max)
	}
	switch {
	case r.Raises >= f.Raise.Attempts:
		return 0, fmt.Sprintf("and its memory was raised %d times to %s, which is all that the rule allows", r.Raises, Quantity(had))
	case memory <= had:
		return 0, "and its memory is at the most that the rule allows, " + Quantity(had)
	default:
		return memory, ""
	}
}

// Quantity of memory in bytes.
func Quantity(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// remark on a run.
func (d *decision) remark(job, words string) {
	for _, all := range [][]Run{d.l.Runs, d.l.History} {
		for i := range all {
			if all[i].Job == job {
				all[i].Message = shortened(all[i].Message, maxMessage-len(words)-2) + ", " + words
			}
		}
	}
}

// byID begins the run that the spec asks for.
func (d *decision) byID() {
	id := d.f.RunID
	if id == "" || id == d.l.Last || d.f.Suspend || d.done(id) {
		return
	}
	active := 0
	for i := range d.l.Runs {
		r := &d.l.Runs[i]
		if r.State.over() || r.Kind == Again && r.Of != ByID {
			continue
		}
		if d.f.Replace && r.State == Active {
			d.stop(r, "another run replaces it")
		}
		active++
	}
	if active > 0 && (d.f.Forbid || d.f.Replace) {
		return
	}
	d.l.Last = id
	d.l.Runs = append(d.l.Runs, Run{ID: id, Job: d.f.Run(id), Kind: ByID, Revision: d.f.Revision, State: Active})
}

// done reports whether there was a run of an id.
func (d *decision) done(id string) bool {
	return slices.ContainsFunc(slices.Concat(d.l.Runs, d.l.History), func(r Run) bool { return r.Kind == ByID && r.ID == id })
}

// stream starts, ends and starts again.
func (d *decision) stream() { //nolint:cyclop // The cases of a stream in their order.
	var last *Run
	for i := range d.l.Runs {
		if r := &d.l.Runs[i]; r.Kind == Stream {
			last = r
		}
	}
	if last == nil {
		for i := range d.l.History {
			if d.l.History[i].Kind == Stream {
				last = &d.l.History[i]
				break
			}
		}
	}
	switch {
	case last != nil && last.State == Ending:
		return
	case last != nil && last.State == Active && d.f.Suspend:
		d.stop(last, "spec.suspend ends it")
		return
	case last != nil && last.State == Active && last.Revision != d.f.Revision:
		d.stop(last, "an edit of the spec ends it")
		return
	case last != nil && last.State == Active, d.f.Suspend:
		return
	case last != nil && last.State != Ended && last.Reason != string(v1alpha1.ReasonJobDeleted) && last.Revision == d.f.Revision:
		return // It ended by itself, and an edit is a reason to start again.
	}
	d.l.Starts++
	d.l.Runs = append(d.l.Runs, Run{
		ID: strconv.Itoa(int(d.l.Starts)), Job: d.f.Next(d.l.Starts), Kind: Stream, Revision: d.f.Revision, State: Active,
	})
}

// stop a run that is active: its Job is desired no more, and ends with its pods.
func (d *decision) stop(r *Run, why string) {
	r.State, r.Message = Ending, why
}

// archive runs that are over.
func (d *decision) archive() {
	active := make([]Run, 0, len(d.l.Runs))
	for _, r := range d.l.Runs {
		if r.State.over() {
			d.l.History = append(d.l.History, r)
		} else {
			active = append(active, r)
		}
	}
	slices.SortStableFunc(active, newest)
	slices.SortStableFunc(d.l.History, newest)
	d.l.History = d.l.History[:min(len(d.l.History), max(1, min(d.f.History, maxHistory)))]
	for i := range d.l.History {
		if i > 0 {
			d.l.History[i].Message = shortened(d.l.History[i].Message, maxRemark)
		}
	}
	d.l.Runs = active
	if len(active) == 0 {
		d.l.Runs = nil
	}
	if len(d.l.History) == 0 {
		d.l.History = nil
	}
}

// shortened text of at most so many bytes.
func shortened(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:max(0, most-3)], "") + "…"
}
