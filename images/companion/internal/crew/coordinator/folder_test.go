// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/checkpoints"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
)

// keeping is a plan of two workers that keeps two checkpoints, with a pattern or without one.
func keeping(pattern string) crew.Plan {
	return crew.Plan{Workers: 2, Checkpoints: &crew.Checkpoints{Dir: "/c", Complete: pattern, Keep: 2}}
}

// save a checkpoint after some steps, ten seconds later.
func (s *script) save(attempt int, steps ...int64) {
	for _, step := range steps {
		s.wait(10*time.Second, 0, 1)
		s.step(0, attempt, step)
		s.saved(0, attempt, step)
		s.wait(lookSoonest, 0, 1)
	}
}

// TestKeep shows which checkpoints are removed, and when.
func TestKeep(t *testing.T) {
	at := func(step int64, minutes int) crew.Checkpoint {
		return crew.Checkpoint{Step: step, URI: fmt.Sprintf("/c/%d", step), At: t0.Add(time.Duration(minutes) * time.Minute)}
	}
	for name, tc := range map[string]struct {
		reason string
		plan   crew.Plan
		// before has what is complete before the first attempt.
		before []crew.Checkpoint
		events func(s *script)
		want   []string
		// recorded are the steps that the record has in the end, and says what the state says of what stays.
		recorded []int64
		says     string
	}{
		"All": {
			reason: "Without a number nothing is removed.", plan: two(),
			events:   func(s *script) { s.save(0, 10, 20, 30, 40) },
			recorded: []int64{10, 20, 30, 40},
		},
		"Reported": {
			reason: "What ranks reported goes when two newer ones are there.", plan: keeping(""),
			events: func(s *script) { s.save(0, 10, 20, 30, 40) },
			want:   []string{"10", "20"}, recorded: []int64{30, 40},
		},
		"Not there": {
			reason: "A checkpoint that is not there does not count.", plan: keeping(""),
			events: func(s *script) {
				s.found.Gone = []string{"/c/40"}
				s.save(0, 10, 20, 30, 40)
			},
			want: []string{"10"}, recorded: []int64{20, 30, 40},
		},
		"Found": {
			reason: "With a pattern, what became complete while ranks ran is as good as reported. What was there before stays.", plan: keeping("*/DONE"),
			before: []crew.Checkpoint{at(1, 0), at(2, 0)}, events: func(s *script) {
				for step := range int64(4) {
					s.found.Complete = append(s.found.Complete, at(10*(step+1), int(step+1)))
					s.wait(lookEvery, 0, 1)
				}
			},
			want: []string{"10", "20"}, recorded: []int64{30, 40},
		},
		"Shared": {
			reason: "What is found in a folder of two trainings may be the other one's. What ranks reported is not.", plan: keeping("*/DONE"),
			events: func(s *script) {
				s.found.Shared = "churn"
				for step := range int64(4) {
					s.found.Complete = append(s.found.Complete, at(10*(step+1), int(step+1)))
					s.wait(lookEvery, 0, 1)
				}
				s.save(0, 50, 60, 70)
			},
			want: []string{"50"}, recorded: []int64{60, 70}, says: "give each its own checkpoint.subPath, or remove the file .capstan-churn.json",
		},
		"Began": {
			reason: "What the ranks began with stays, and what they may go back to.", plan: keeping(""),
			events: func(s *script) {
				s.save(0, 10, 20)
				s.step(0, 0, 55)
				s.fault(1, 0, crew.ClassUser)
				s.stopped(0, 0, 1)
				s.save(1, 30, 40, 50)
			},
			want: []string{"30"}, recorded: []int64{10, 20, 40, 50},
		},
		"Beyond": {
			reason: "Beyond the best step of the attempts before, ranks go back to what they wrote since.", plan: keeping(""),
			events: func(s *script) {
				s.save(0, 10, 20)
				s.fault(1, 0, crew.ClassUser)
				s.stopped(0, 0, 1)
				s.save(1, 30, 40, 50)
			},
			want: []string{"10", "30"}, recorded: []int64{20, 40, 50},
		},
		"NaN": {
			reason: "A loss that is not a number goes back a checkpoint, which is still there. What is discarded does not count, and goes in its time.", plan: keeping(""),
			events: func(s *script) {
				s.save(0, 10, 20, 30)
				for attempt := range 2 {
					s.wait(time.Second, 0, 1)
					s.step(0, attempt, 35)
					s.fault(0, attempt, crew.ClassNonFinite)
					s.stopped(attempt, 0, 1)
				}
				if got := s.m.attempt.resume; got == nil || got.Step != 20 {
					s.t.Errorf("resumed from %v, want step 20", got)
				}
				s.save(2, 40, 50)
			},
			want: []string{"10", "30"}, recorded: []int64{20, 40, 50},
		},
		"Success": {
			reason: "After success ranks begin with nothing any more: exactly two stay.", plan: keeping(""),
			events: func(s *script) {
				s.save(0, 10)
				s.fault(1, 0, crew.ClassUser)
				s.stopped(0, 0, 1)
				s.save(1, 20)
				s.step(0, 1, 30)
				s.saved(0, 1, 30)
				s.done(1, 0, 1)
			},
			want: []string{"10"}, recorded: []int64{20, 30},
		},
		"Denied": {
			reason: "What cannot be removed is reported, and tried again after a minute.", plan: keeping(""),
			events: func(s *script) {
				s.broken = errors.New("cannot remove checkpoints from the folder of checkpoints /c: 10: permission denied; let the pods write there")
				s.save(0, 10, 20, 30)
				s.broken = nil
				s.save(0, 40)
				if len(s.dropped) > 0 {
					s.t.Errorf("%v were tried again at once", s.dropped)
				}
				s.broken = errors.New("10: permission denied")
				s.wait(removeAgain, 0, 1)
			},
			recorded: []int64{10, 20, 30, 40}, says: "permission denied",
		},
		"Elsewhere": {
			reason: "Nothing is removed of a bucket, and that is reported.", plan: keeping(""),
			events: func(s *script) {
				for step := range int64(4) {
					s.wait(time.Minute, 0, 1)
					s.say(0, protocol.Message{Kind: protocol.Advanced, Attempt: 0, Progress: &protocol.Progress{
						Checkpoints: []crew.Checkpoint{{Step: step, URI: fmt.Sprintf("s3://models/%d", step), At: s.now}},
					}})
				}
				s.wait(lookSoonest, 0, 1)
			},
			recorded: []int64{0, 1, 2, 3}, says: "only checkpoints in the folder /c, and ranks report s3://models/3: let the program",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, tc.plan)
			s.found.Complete = tc.before
			s.hello(0, 1)
			tc.events(s)
			if diff := cmp.Diff(tc.want, s.dropped); diff != "" {
				t.Errorf("%s\nremoved: -want, +got:\n%s", tc.reason, diff)
			}
			var recorded []int64
			for _, c := range s.rec.Reported {
				recorded = append(recorded, c.Step)
			}
			if diff := cmp.Diff(tc.recorded, recorded); diff != "" {
				t.Errorf("%s\nrecorded: -want, +got:\n%s", tc.reason, diff)
			}
			if says := s.m.State(s.now).Unremoved; tc.says == "" && says != "" || !strings.Contains(says, tc.says) {
				t.Errorf("%s\nthe state says %q, want %q", tc.reason, says, tc.says)
			}
		})
	}
}

// TestRemovalIsApart: an attempt begins with nothing that is about to be removed, and the run's end waits for it.
func TestRemovalIsApart(t *testing.T) {
	s := newScript(t, keeping("*/DONE"))
	s.stuck = true
	s.hello(0, 1)
	s.save(0, 10, 20, 30)
	if diff := cmp.Diff([]string{"10"}, s.m.folder.removing); diff != "" {
		t.Fatalf("about to be removed: -want, +got:\n%s", diff)
	}
	// Two newer ones are lost from outside at this moment.
	s.found.Complete, s.found.Gone = []crew.Checkpoint{{Step: 10, URI: "/c/10", At: t0}}, []string{"/c/20", "/c/30"}
	s.fault(1, 0, crew.ClassUser)
	s.stopped(0, 0, 1)
	if s.m.attempt.resume != nil {
		t.Errorf("resumed from %v, which is about to be removed", s.m.attempt.resume)
	}
	s.found = Found{}
	s.save(1, 40)
	s.done(1, 0, 1)
	if !s.m.Tidying() {
		t.Error("the end should wait for what is being removed")
	}
	s.do(Removed{Names: []string{"10"}})
	if s.m.Tidying() || slices.ContainsFunc(s.rec.Reported, func(c crew.Checkpoint) bool { return c.Step == 10 }) {
		t.Errorf("what is gone should be in the record no more, got %v", s.rec.Reported)
	}
}

// TestLookOfTheLast: what ranks wrote before their pod had to go is recorded before the coordinator ends.
func TestLookOfTheLast(t *testing.T) {
	s := newScript(t, keeping("*/DONE"))
	s.hello(0, 1)
	s.held = true
	s.say(0, protocol.Message{Kind: protocol.Leaving})
	s.stopped(0, 0, 1)
	if !s.m.Stopping() {
		t.Fatal("the last look is not waited for")
	}
	s.do(Found{Found: checkpoints.Found{Complete: []crew.Checkpoint{{Step: 70, URI: "/c/70", At: t0}}}})
	if s.m.Stopping() || len(s.rec.Reported) != 1 || s.rec.Reported[0].Step != 70 {
		t.Errorf("want step 70 in the record, got %+v", s.rec)
	}
}

// TestOverdue shows when a checkpoint is overdue.
func TestOverdue(t *testing.T) {
	plan := crew.Plan{Workers: 2, Checkpoints: &crew.Checkpoints{Dir: "/c", EverySeconds: 60}}
	// steps of ten seconds each.
	steps := func(s *script, attempt int, from, to int64) {
		for step := from; step <= to; step++ {
			s.step(0, attempt, step)
			s.wait(10*time.Second, 0, 1)
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		pattern string
		events  func(s *script)
		want    time.Duration // after the start: the first step is after a minute. 0: none is overdue
	}{
		"In time": {reason: "A program may be late.", events: func(s *script) { steps(s, 0, 1, 19) }},
		"Overdue": {reason: "After three times as long it is, since the first step.", events: func(s *script) { steps(s, 0, 1, 20) }, want: time.Minute},
		"Stalled": {reason: "Ranks that make no steps have nothing to save.", events: func(s *script) { steps(s, 0, 1, 2); s.wait(10*time.Minute, 0, 1) }},
		"A pause": {reason: "A step that comes late shows that they worked meanwhile.", events: func(s *script) { steps(s, 0, 1, 2); s.wait(4*time.Minute, 0, 1); s.step(0, 0, 3) }, want: time.Minute},
		"Saved":   {reason: "A checkpoint ends it.", events: func(s *script) { steps(s, 0, 1, 20); s.saved(0, 0, 20); s.wait(lookSoonest, 0, 1) }},
		"Attempts": {reason: "A fault ends nothing: the steps that it repeats are what checkpoints are for.", events: func(s *script) {
			steps(s, 0, 1, 15)
			s.fault(1, 0, crew.ClassUser)
			s.stopped(0, 0, 1)
			steps(s, 1, 1, 10)
		}, want: time.Minute},
		"Ended": {reason: "After the end none is expected.", events: func(s *script) { steps(s, 0, 1, 20); s.done(0, 0, 1) }},
		"Not complete": {
			reason: "With a pattern, a checkpoint counts when the pattern finds it.", pattern: "*/DONE", events: func(s *script) {
				s.found.Gone = []string{"/c/10"}
				steps(s, 0, 1, 10)
				s.saved(0, 0, 10)
				steps(s, 0, 11, 21)
			}, want: time.Minute,
		},
		"Found": {
			reason: "What the pattern finds need not be reported.", pattern: "*/DONE", events: func(s *script) {
				steps(s, 0, 1, 10)
				s.found.Complete = []crew.Checkpoint{{Step: 10, URI: "/c/10", At: s.now}}
				steps(s, 0, 11, 25)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan
			own := *plan.Checkpoints
			own.Complete = tc.pattern
			p.Checkpoints = &own
			s := newScript(t, p)
			s.hello(0, 1)
			s.wait(time.Minute, 0, 1)
			tc.events(s)
			var got time.Duration
			if since := s.m.State(s.now).OverdueSince; since != nil {
				got = since.Sub(t0)
			}
			if got != tc.want {
				t.Errorf("%s\noverdue since %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
	s := newScript(t, two())
	s.hello(0, 1)
	steps(s, 0, 1, 100)
	if since := s.m.State(s.now).OverdueSince; since != nil {
		t.Errorf("without a time nothing is overdue, got %s", since)
	}
}
