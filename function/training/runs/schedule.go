// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	_ "time/tzdata" // A schedule means the same wherever the function runs.
)

// A Schedule begins runs by the clock.
type Schedule struct {
	// Rule names cron and time zone. Another rule counts from the time when it is seen first.
	Rule string
	// Replace a run that is active, instead of leaving the time out.
	Replace bool
	// Continue with the newest checkpoint, instead of beginning without one.
	Continue bool
	// Within is how late a run may begin.
	Within time.Duration

	times cron.Schedule
	zone  *time.Location
}

// NewSchedule of five cron fields in a time zone.
func NewSchedule(fields, zone string) (Schedule, error) {
	location, err := time.LoadLocation(zone)
	if err != nil || strings.EqualFold(zone, "local") {
		return Schedule{}, ErrZone
	}
	times, err := cron.ParseStandard(fields)
	if err != nil || strings.ContainsAny(fields, "@=") {
		return Schedule{}, ErrCron
	}
	return Schedule{Rule: fields + " " + zone, times: times, zone: location}, nil
}

// What is wrong with a schedule.
var (
	ErrZone = errors.New("must be the name of a time zone, for instance Europe/Berlin")
	ErrCron = errors.New("must be minute, hour, day, month and weekday, for instance 0 3 * * 1")
)

// Next time after another one, zero when none comes within five years.
func (s Schedule) Next(after time.Time) time.Time {
	next := s.times.Next(after.In(s.zone))
	if next.IsZero() {
		return time.Time{}
	}
	return next.UTC()
}

// mostPassed bounds how many times of a long outage are counted.
const mostPassed = 1000

// passed times, after one time and until another: how many, and the newest of them.
func (s Schedule) passed(after, until time.Time) (n int32, newest time.Time) {
	for at := s.Next(after); !at.IsZero() && !at.After(until); at = s.Next(at) {
		if n++; n == mostPassed {
			// Of what is too late anyway, the number is of no use.
			after = at
			if late := until.Add(-s.Within); late.After(after) {
				after = late.Add(-time.Second)
			}
			if _, last := s.passed(after, until); !last.IsZero() {
				return n, last
			}
			return n, at
		}
		newest = at
	}
	return n, newest
}

// An Agenda is what is remembered of a schedule.
type Agenda struct {
	// Rule that it is about, and until when all of its times have been decided about.
	Rule  string    `json:"rule"`
	Until time.Time `json:"until"`
	// Due is the time that the next run is for, once the pods of the last one are gone.
	Due *time.Time `json:"due,omitempty"`
	// Last is the time that a run began for last, and Run its number.
	Last *time.Time `json:"last,omitempty"`
	Run  int32      `json:"run,omitempty"`
	// Missed counts the times without a run since then. MissedAt is the newest of them, and Why there was none.
	Missed   int32      `json:"missed,omitempty"`
	MissedAt *time.Time `json:"missedAt,omitempty"`
	Why      string     `json:"why,omitempty"`
}

// miss a number of times. The newest of them is named.
func (a *Agenda) miss(n int32, at time.Time, why string) {
	if n > 0 {
		a.Missed, a.MissedAt, a.Why = min(a.Missed+n, math.MaxInt32/2), &at, why
	}
}

// take up a time: a run follows.
func (a *Agenda) take(at time.Time) { a.Due, a.Missed, a.MissedAt, a.Why = &at, 0, nil, "" }

// keepTime follows the schedule, and ends what has to make room for the next run.
func (d *decision) keepTime() {
	s := d.f.Schedule
	if s == nil {
		d.l.Agenda = Agenda{}
		return
	}
	a := &d.l.Agenda
	if a.Rule != s.Rule {
		*a = Agenda{Rule: s.Rule, Until: d.f.Now, Due: a.Due, Last: a.Last, Run: a.Run}
	}
	n, at := s.passed(a.Until, d.f.Now)
	if n > 0 && d.settles() {
		a.Until = d.f.Now
		why := d.unfit(at)
		if why != "" {
			a.miss(n, at, why)
		} else {
			a.take(at)
			a.miss(n-1, at, whyLate)
			d.makeRoom(at)
		}
	}
	if next := s.Next(d.f.Now); !next.IsZero() {
		d.due(next)
	}
}

// settles reports whether it can be decided now about a time that has passed: a Job that is about to be made, to end or to be taken back
// is waited for.
func (d *decision) settles() bool {
	if d.l.State != Active {
		return true
	}
	j, exists := d.f.Jobs[d.l.Run]
	return exists && !j.ended() && !j.Unreferenced
}

// whyLate is why times pass without a run when nothing else prevents it.
const whyLate = "Capstan did not decide in time: it was stopped, or the spec was not accepted"

// unfit is why no run begins for a time, or empty.
func (d *decision) unfit(at time.Time) string {
	switch s := d.f.Schedule; {
	case d.f.Now.Sub(at) > s.Within:
		return whyLate
	case d.f.Suspend:
		return "spec.suspend is set"
	case d.l.State == "", d.l.State == Succeeded, d.l.State == Failed, s.Replace:
		return ""
	default:
		return fmt.Sprintf("run %d had not ended", d.l.Run)
	}
}

// makeRoom for a run that a time is taken up for.
func (d *decision) makeRoom(at time.Time) {
	switch d.l.State {
	case Active:
		d.end(OutcomeScheduled, "spec.schedule begins another run for "+at.Format(time.RFC3339))
	case Succeeded, Failed:
		d.l.State, d.l.Next, d.l.Ended = Ending, OutcomeScheduled, new(d.f.Now)
	case Ending:
		if d.l.Next == OutcomeNotStarted { // After a deleted Job its pods still have their grace period.
			d.l.NotBefore = nil
		}
		d.l.Next = OutcomeScheduled
	case "", Suspended:
	}
}

// waits reports whether no run has begun, because the schedule has none yet.
func (d *decision) waits(pending bool) bool {
	return d.f.Schedule != nil && d.l.Run == 0 && d.l.Agenda.Due == nil && !pending
}
