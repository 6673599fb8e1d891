// SPDX-License-Identifier: Apache-2.0

package training

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/training/names"
)

// scheduledSpec trains each day at 13:00 UTC, an hour after the worlds of the tests begin.
const scheduledSpec = `{image: registry.example.org/train:1, args: [train], workers: 4,
	checkpoint: {claim: {resources: {requests: {storage: 1Gi}}}, complete: step-*/DONE}, schedule: {cron: "0 13 * * *"}}`

// day of November 2026 at a time.
func day(n, hour, minute int) time.Time { return time.Date(2026, 11, n, hour, minute, 0, 0, time.UTC) }

// at a time, what follows from it.
func (w *world) at(t time.Time) {
	w.now = t
	w.settle()
	w.Gone()
	w.settle()
}

// runs until success.
func (w *world) succeed() {
	w.kubernetes(`{status: {startTime: "` + w.now.Format(time.RFC3339) + `"}}`)
	w.report(running)
	w.settle()
	w.kubernetes(complete)
	w.settle()
}

// schedule of the status.
func (w *world) scheduled() v1alpha1.TrainingScheduleStatus {
	st, ok := w.plan.Status.(v1alpha1.TrainingStatus)
	if !ok || st.Schedule == nil {
		return v1alpha1.TrainingScheduleStatus{}
	}
	return *st.Schedule
}

// crewPlan is the plan of the crew of the present run.
func (w *world) crewPlan() string {
	for resource, o := range w.Composed {
		if strings.HasPrefix(resource, names.PlansOf(w.run())) {
			return compose.TextOf(o, "data", "plan.json")
		}
	}
	return ""
}

// TestSchedule shows which runs a schedule begins.
func TestSchedule(t *testing.T) {
	type state struct {
		Phase      v1alpha1.TrainingPhase
		Run        int32
		OnSchedule string
		Ready      bool
	}
	waits := state{v1alpha1.TrainingScheduled, 0, "True/OnSchedule", true}
	for name, tc := range map[string]struct {
		reason  string
		happens func(*world)
		want    state
		missed  int32
		why     string
		next    time.Time
	}{
		"Made":   {reason: "no run begins before its time", happens: func(*world) {}, want: waits, next: day(20, 13, 0)},
		"Before": {reason: "nor a moment before", happens: func(w *world) { w.at(day(20, 12, 59)) }, want: waits, next: day(20, 13, 0)},
		"First":  {reason: "at its time one begins", happens: func(w *world) { w.at(day(20, 13, 0)) }, want: state{v1alpha1.TrainingStarting, 1, "True/OnSchedule", false}, next: day(21, 13, 0)},
		"Late":   {reason: "a pass may be late", happens: func(w *world) { w.at(day(20, 13, 59)) }, want: state{v1alpha1.TrainingStarting, 1, "True/OnSchedule", false}, next: day(21, 13, 0)},
		"TooLate": {
			reason: "a run that is too late is left out, and that is reported", happens: func(w *world) { w.at(day(20, 14, 1)) },
			want: state{v1alpha1.TrainingScheduled, 0, "False/ScheduleMissed", true}, missed: 1, why: whyStopped, next: day(21, 13, 0),
		},
		"StartingDeadline": {
			reason: "how late is too late is the user's", happens: func(w *world) {
				w.edit(`{schedule: {cron: "0 13 * * *", startingDeadline: 6h}}`)
				w.at(day(20, 18, 59))
			},
			want: state{v1alpha1.TrainingStarting, 1, "True/OnSchedule", false}, next: day(21, 13, 0),
		},
		"Outage": {
			reason: "after days without Capstan one run begins, and the others are reported", happens: func(w *world) { w.at(day(23, 13, 5)) },
			want: state{v1alpha1.TrainingStarting, 1, "False/ScheduleMissed", false}, missed: 3, why: whyStopped, next: day(24, 13, 0),
		},
		"LongOutage": {
			reason: "of a long outage not all times are counted", happens: func(w *world) {
				w.edit(`{schedule: {cron: "* * * * *", startingDeadline: 24h}}`)
				w.settle()
				w.at(day(30, 13, 5))
			},
			want: state{v1alpha1.TrainingStarting, 1, "False/ScheduleMissed", false}, missed: 999, why: whyStopped, next: day(30, 13, 6),
		},
		"Second": {
			reason: "the next run follows the one that succeeded", happens: func(w *world) {
				w.at(day(20, 13, 0))
				w.succeed()
				w.at(day(21, 13, 0))
			},
			want: state{v1alpha1.TrainingStarting, 2, "True/OnSchedule", false}, next: day(22, 13, 0),
		},
		"AfterFailure": {
			reason: "a run that failed does not end the schedule", happens: func(w *world) {
				w.at(day(20, 13, 0))
				w.kubernetes(gaveUp)
				w.report(`{phase: Failed, message: wrong}`)
				w.settle()
				w.at(day(21, 13, 0))
			},
			want: state{v1alpha1.TrainingStarting, 2, "True/OnSchedule", false}, next: day(22, 13, 0),
		},
		"Forbid": {
			reason: "by default a time is left out while a run is active", happens: func(w *world) {
				w.at(day(20, 13, 0))
				w.kubernetes(started)
				w.report(running)
				w.at(day(21, 13, 0))
			},
			want: state{v1alpha1.TrainingRunning, 1, "False/ScheduleMissed", true}, missed: 1, why: "run 1 had not ended", next: day(22, 13, 0),
		},
		"Replace": {
			reason: "or the active run makes room", happens: func(w *world) {
				w.edit(`{schedule: {cron: "0 13 * * *", concurrency: Replace}}`)
				w.at(day(20, 13, 0))
				w.kubernetes(started)
				w.report(running)
				w.at(day(21, 13, 0))
			},
			want: state{v1alpha1.TrainingStarting, 2, "True/OnSchedule", false}, next: day(22, 13, 0),
		},
		"ReplaceWhileItEnds": {
			reason: "a run whose pods end after an edit is replaced, too", happens: func(w *world) {
				w.edit(`{schedule: {cron: "0 13 * * *", concurrency: Replace}}`)
				w.at(day(20, 13, 0))
				w.edit(`{args: [train, --more]}`)
				w.settle()
				w.at(day(21, 13, 0))
			},
			want: state{v1alpha1.TrainingStarting, 2, "True/OnSchedule", false}, next: day(22, 13, 0),
		},
		"ReplaceAfterJobDeleted": {
			reason: "the pods of a deleted Job still have their grace period, and two crews would train at once", happens: func(w *world) {
				w.edit(`{schedule: {cron: "0 13 * * *", concurrency: Replace}}`)
				w.at(day(20, 13, 0))
				w.kubernetes(started)
				w.report(running)
				w.settle()
				w.now = day(21, 12, 59).Add(50 * time.Second)
				resource, _ := w.currentJob()
				delete(w.Composed, resource)
				w.settle()
				w.at(day(21, 13, 0))
			},
			want: state{v1alpha1.TrainingRestarting, 1, "True/OnSchedule", false}, next: day(22, 13, 0),
		},
		"Suspended": {
			reason: "a suspended Training does not run, and tells so", happens: func(w *world) {
				w.edit(`{suspend: true}`)
				w.at(day(20, 13, 0))
			},
			want: state{v1alpha1.TrainingSuspended, 0, "False/ScheduleMissed", false}, missed: 1, why: "spec.suspend is set",
		},
		"Resumed": {
			reason: "what passed meanwhile is not made up for", happens: func(w *world) {
				w.edit(`{suspend: true}`)
				w.at(day(20, 13, 0))
				w.edit(`{suspend: false}`)
				w.at(day(20, 13, 10))
			},
			want: state{v1alpha1.TrainingScheduled, 0, "False/ScheduleMissed", true}, missed: 1, why: "spec.suspend is set", next: day(21, 13, 0),
		},
		"SuspendedAfterSuccess": {
			reason: "nor does one that has run", happens: func(w *world) {
				w.at(day(20, 13, 0))
				w.succeed()
				w.edit(`{suspend: true}`)
				w.at(day(21, 13, 0))
			},
			want: state{v1alpha1.TrainingSucceeded, 1, "False/ScheduleMissed", true}, missed: 1, why: "spec.suspend is set",
		},
		"SuspendedBetween": {
			reason: "a run that was to begin begins after the suspension", happens: func(w *world) {
				w.at(day(20, 13, 0))
				w.succeed()
				w.now = day(21, 13, 0)
				w.settle() // The Job of run 1 ends.
				w.edit(`{suspend: true}`)
				w.at(day(21, 13, 1))
				w.edit(`{suspend: false}`)
				w.at(day(21, 15, 0))
			},
			want: state{v1alpha1.TrainingStarting, 2, "True/OnSchedule", false}, next: day(22, 13, 0),
		},
		"Edited": {
			reason: "another schedule counts from now on", happens: func(w *world) {
				w.now = day(20, 12, 30)
				w.edit(`{schedule: {cron: "15 12 * * *"}}`)
				w.settle()
			},
			want: waits, next: day(21, 12, 15),
		},
		"Removed": {
			reason: "without a schedule the first run begins at once", happens: func(w *world) {
				w.edit(`{schedule: null}`)
				w.settle()
			},
			want: state{v1alpha1.TrainingStarting, 1, "", false},
		},
		"Rerun": {
			reason: "a person need not wait", happens: func(w *world) {
				w.edit(`{rerun: {id: now}}`)
				w.settle()
			},
			want: state{v1alpha1.TrainingStarting, 1, "True/OnSchedule", false}, next: day(20, 13, 0),
		},
		"NotAccepted": {
			reason: "with a mistake no run begins, and what was known of the schedule stays", happens: func(w *world) {
				w.edit(`{watch: {progress: '('}}`)
				w.at(day(20, 13, 0))
			},
			want: state{v1alpha1.TrainingPending, 0, "True/OnSchedule", false}, next: day(20, 13, 0),
		},
		"Corrected": {
			reason: "the time is made up for after a correction", happens: func(w *world) {
				w.edit(`{watch: {progress: '('}}`)
				w.at(day(20, 13, 0))
				w.edit(`{watch: null}`)
				w.at(day(20, 13, 30))
			},
			want: state{v1alpha1.TrainingStarting, 1, "True/OnSchedule", false}, next: day(21, 13, 0),
		},
		"Zone": {
			reason: "the clock is the zone's", happens: func(w *world) {
				w.edit(`{schedule: {cron: "0 15 * * *", timeZone: Asia/Kolkata}}`)
				w.settle()
				w.at(day(21, 9, 30))
			},
			want: state{v1alpha1.TrainingStarting, 1, "True/OnSchedule", false}, next: day(22, 9, 30),
		},
		"LedgersLost": {
			reason: "without its records, times that have passed are forgotten, and what has ended stays so", happens: func(w *world) {
				w.at(day(20, 13, 0))
				w.succeed()
				w.report(`{phase: Succeeded}`)
				w.status = nil
				delete(w.Composed, names.Service)
				w.at(day(21, 13, 5))
			},
			want: state{v1alpha1.TrainingSucceeded, 1, "True/OnSchedule", true}, next: day(22, 13, 0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scheduledSpec)
			w.settle()
			tc.happens(w)
			s := w.scheduled()
			got := state{w.phase(), s.LastRun, w.condition(v1alpha1.TypeOnSchedule), w.plan.Ready}
			if name == "Rerun" || name == "Removed" || name == "LedgersLost" {
				got.Run = w.run() // No time of the schedule is the reason for it.
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s\n%s", tc.reason, diff, w.ledger())
			}
			if s.Missed != tc.missed || s.MissedBecause != tc.why {
				t.Errorf("%s: want %d missed because %q, got %d because %q", tc.reason, tc.missed, tc.why, s.Missed, s.MissedBecause)
			}
			if (s.NextAt == nil) != tc.next.IsZero() || s.NextAt != nil && !s.NextAt.Time.Equal(tc.next) {
				t.Errorf("%s: want the next run at %s, got %v", tc.reason, tc.next, s.NextAt)
			}
			if s.NextAt != nil && w.condition(v1alpha1.TypeAccepted) == "True/Valid" && w.plan.TTL > s.NextAt.Sub(w.now) {
				t.Errorf("%s: the next pass comes %s after this one, which is after the next run", tc.reason, w.plan.TTL)
			}
		})
	}
}

const whyStopped = "Capstan did not decide in time: it was stopped, or the spec was not accepted"

// TestScheduledRuns have a number, a history, and checkpoints of their own, which stay theirs when a run is lost or the records are.
func TestScheduledRuns(t *testing.T) {
	w := newWorld(t, scheduledSpec)
	w.settle()
	w.edit(`{rerun: {id: first}}`)
	w.settle()
	if plan := w.crewPlan(); !strings.Contains(plan, `"dir":"/checkpoints"`) {
		t.Errorf("a run that a person asks for has the folder itself, got %s", plan)
	}
	w.succeed()
	w.at(day(20, 13, 0))
	if plan := w.crewPlan(); !strings.Contains(plan, `"dir":"/checkpoints/fraud-cycle-2","cycle":2`) || strings.Contains(plan, "resumeFrom") || strings.Contains(plan, "former") {
		t.Errorf("the scheduled run begins without a checkpoint, in a folder of its own, got %s", plan)
	}
	w.kubernetes(`{status: {startTime: "2026-11-20T13:00:00Z"}}`)
	w.report(`{phase: Running, attempt: 0, progress: {step: 100}, checkpoint: {step: 90, uri: /checkpoints/fraud-cycle-2/step-90, at: "2026-11-20T13:01:00Z"}}`)
	w.settle()
	w.kubernetes(podsLost)
	w.settle()
	w.Gone()
	w.settle()
	if plan := w.crewPlan(); w.run() != 3 || !strings.Contains(plan, `"dir":"/checkpoints/fraud-cycle-2","cycle":2`) || !strings.Contains(plan, "fraud-cycle-2/step-90") {
		t.Errorf("the run after a lost one goes on in the folder, got run %d with %s", w.run(), plan)
	}
	w.status = nil
	delete(w.Composed, names.Service)
	w.settle()
	w.succeed()
	w.at(day(21, 13, 0))
	if plan := w.crewPlan(); w.run() != 4 || !strings.Contains(plan, `"cycle":4,"former":2`) {
		t.Errorf("the cycle is remembered by the Job, got run %d with %s", w.run(), plan)
	}
	w.succeed()
	st, ok := w.plan.Status.(v1alpha1.TrainingStatus)
	if !ok || len(st.History) == 0 {
		t.Fatalf("want a history, got %+v", w.plan.Status)
	}
	if r := st.History[0]; r.Run != 4 || r.Outcome != "Succeeded" || r.ScheduledAt == nil || !r.ScheduledAt.Time.Equal(day(21, 13, 0)) {
		t.Errorf("the history should name the time of the schedule, got %+v", r)
	}
	w.edit(`{schedule: {cron: "0 13 * * *", begin: NewestCheckpoint}}`)
	w.at(day(22, 12, 0))
	w.at(day(22, 13, 0))
	if plan := w.crewPlan(); w.run() != 5 || !strings.Contains(plan, `"cycle":4,"former":2`) {
		t.Errorf("a run that goes on has the same folder, got run %d with %s", w.run(), plan)
	}
	w.edit(`{checkpoint: {claimName: other}, schedule: null}`)
	w.settle()
	w.Gone()
	w.settle()
	if resources := slices.Collect(keys(w.Jobs())); w.run() != 6 || len(resources) != 1 {
		t.Errorf("an edit begins the next run, got %v", resources)
	}
}

// TestScheduleIsQuiet shows that waiting costs no write.
func TestScheduleIsQuiet(t *testing.T) {
	w := newWorld(t, scheduledSpec)
	w.settle()
	before := composetest.Encoded([]any{w.status, w.Composed})
	for range 50 {
		w.now = w.now.Add(time.Minute)
		w.pass(false)
	}
	if after := composetest.Encoded([]any{w.status, w.Composed}); before != after {
		t.Errorf("nothing should change before the time:\n%s", cmp.Diff(before, after))
	}
}

// TestBadSchedule names field, value and remedy.
func TestBadSchedule(t *testing.T) {
	for name, tc := range map[string]struct{ schedule, want string }{
		"Zone":    {`{cron: "0 3 * * *", timeZone: Mars/Olympus}`, `spec.schedule.timeZone "Mars/Olympus" must be the name of a time zone`},
		"Local":   {`{cron: "0 3 * * *", timeZone: Local}`, `spec.schedule.timeZone "Local" must be`},
		"Cron":    {`{cron: "whenever"}`, `spec.schedule.cron "whenever" must be minute, hour, day, month and weekday`},
		"Macro":   {`{cron: "@daily"}`, `spec.schedule.cron "@daily" must be`},
		"OwnZone": {`{cron: "CRON_TZ=Asia/Tokyo 0 3 * * *"}`, `spec.schedule.cron "CRON_TZ=Asia/Tokyo 0 3 * * *" must be`},
		"Never":   {`{cron: "0 3 30 2 *"}`, `spec.schedule.cron "0 3 30 2 *" names a day that never comes`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, strings.Replace(scheduledSpec, `{cron: "0 13 * * *"}`, tc.schedule, 1))
			w.settle()
			for _, c := range w.plan.Conditions {
				if c.Type == v1alpha1.TypeAccepted && !strings.Contains(strings.ReplaceAll(c.Message, ": ", " "), strings.ReplaceAll(tc.want, ": ", " ")) {
					t.Errorf("want %q in %q", tc.want, c.Message)
				}
			}
			if w.phase() != v1alpha1.TrainingPending || w.run() != 0 {
				t.Errorf("nothing should run, got %s and run %d", w.phase(), w.run())
			}
		})
	}
}
