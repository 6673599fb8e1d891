// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/checkpoints"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
)

// two workers and a spare, with checkpoints.
func two() crew.Plan {
	return crew.Plan{Workers: 2, Checkpoints: &crew.Checkpoints{Dir: "/c"}}
}

func spare() crew.Plan {
	p := two()
	p.Spares = 1
	return p
}

func TestOrders(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		plan   crew.Plan
		events func(s *script)
		want   []string
	}{
		"All are there": {
			reason: "An attempt begins when all workers are there.",
			plan:   two(), events: func(s *script) { s.hello(1, 0) },
			want: []string{"0: start 0 as 0", "1: start 0 as 1"},
		},
		"One is missing": {
			reason: "Part of a gang burns money and achieves nothing.",
			plan:   two(), events: func(s *script) {
				s.hello(0)
				s.wait(time.Minute, 0)
			},
		},
		"Spare is late": {
			reason: "A member that this coordinator has not heard from may have ranks of an earlier one, until its lease is over.",
			plan:   spare(), events: func(s *script) {
				s.hello(0, 1)
				s.wait(9*time.Second, 0, 1)
				if got := s.take(); got != nil {
					s.t.Errorf("began within the lease: %q", got)
				}
				s.wait(time.Second, 0, 1)
			},
			want: []string{"0: start 0 as 0", "1: start 0 as 1"},
		},
		"Fault": {
			reason: "A fault of one stops all, and nothing begins before all have stopped.",
			plan:   two(), events: func(s *script) {
				s.hello(0, 1)
				s.take()
				s.fault(1, 0, crew.ClassUser)
				s.stopped(0, 0)
				s.wait(5*time.Second, 0, 1)
			},
			want: []string{"0: stop 0 Kill", "1: stop 0 Kill"},
		},
		"All stopped": {
			reason: "Then the next attempt begins.",
			plan:   two(), events: func(s *script) {
				s.hello(0, 1)
				s.fault(1, 0, crew.ClassUser)
				s.stopped(0, 0)
				s.take()
				s.stopped(0, 1)
			},
			want: []string{"0: start 1 as 0", "1: start 1 as 1"},
		},
		"Two faults at once": {
			reason: "Both belong to one attempt, which is stopped once.",
			plan:   two(), events: func(s *script) {
				s.hello(0, 1)
				s.take()
				s.fault(1, 0, crew.ClassUser)
				s.fault(0, 0, crew.ClassInfrastructure)
				s.stopped(0, 1, 0)
			},
			want: []string{"0: stop 0 Kill", "1: stop 0 Kill", "0: start 1 as 0", "1: start 1 as 1"},
		},
		"Late fault": {
			reason: "A fault of an older attempt says nothing about this one.",
			plan:   two(), events: func(s *script) {
				s.hello(0, 1)
				s.fault(1, 0, crew.ClassUser)
				s.stopped(0, 0, 1)
				s.take()
				s.fault(0, 0, crew.ClassUser)
				s.stopped(0, 0)
				s.done(0, 0, 1)
			},
		},
		"Done": {
			reason: "The run succeeds when all ranks have ended well.",
			plan:   spare(), events: func(s *script) {
				s.hello(0, 1, 2)
				s.take()
				s.done(0, 0)
				s.done(0, 1)
			},
			want: []string{"0: finish 0", "1: finish 0", "2: finish 0", "end 0"},
		},
		"Done and lost": {
			reason: "A member whose ranks have ended well is not needed any more.",
			plan:   two(), events: func(s *script) {
				s.hello(0, 1)
				s.take()
				s.done(0, 1)
				s.gone(1)
				s.done(0, 0)
			},
			want: []string{"0: finish 0", "end 0"},
		},
		"Lost without a spare": {
			reason: "The others stop, and wait for the pod that comes back.",
			plan:   two(), events: func(s *script) {
				s.hello(0, 1)
				s.take()
				s.gone(1)
				s.stopped(0, 0)
				s.wait(time.Minute, 0)
				s.hello(1)
			},
			want: []string{"0: stop 0 Kill", "0: start 1 as 0", "1: start 1 as 1"},
		},
		"Lost with a spare": {
			reason: "A spare takes over at once, and the pod that comes back is the spare.",
			plan:   spare(), events: func(s *script) {
				s.hello(0, 1, 2)
				s.take()
				s.gone(1)
				s.stopped(0, 0)
				s.hello(1)
				s.fault(2, 1, crew.ClassUser)
				s.stopped(1, 0, 2)
			},
			want: []string{
				"0: stop 0 Kill", "0: start 1 as 0", "2: start 1 as 1",
				"0: stop 1 Kill", "2: stop 1 Kill", "0: start 2 as 0", "2: start 2 as 1",
			},
		},
		"Spare lost": {
			reason: "Who has no ranks is not missed.",
			plan:   spare(), events: func(s *script) {
				s.hello(0, 1, 2)
				s.take()
				s.gone(2)
			},
		},
		"Silent": {
			reason: "TCP does not notice a node that is gone. A member without beats for ten seconds is lost.",
			plan:   two(), events: func(s *script) {
				s.hello(0, 1)
				s.take()
				s.wait(10*time.Second, 0)
			},
			want: []string{"close 11", "0: stop 0 Kill"},
		},
		"Connected again": {
			reason: "A member that connects again has no ranks, whether or not its old connection ended.",
			plan:   two(), events: func(s *script) {
				s.hello(0, 1)
				s.take()
				s.hello(1)
				s.stopped(0, 0)
			},
			want: []string{"close 11", "0: stop 0 Kill", "0: start 1 as 0", "1: start 1 as 1"},
		},
		"Never stops": {
			reason: "A member whose ranks do not stop is unfit, and another pod takes its place.",
			plan:   two(), events: func(s *script) {
				s.hello(0, 1)
				s.fault(0, 0, crew.ClassUser)
				s.stopped(0, 0)
				s.take()
				s.wait(61*time.Second, 0, 1)
				s.hello(1)
			},
			want: []string{"1: finish 65", "close 11", "0: start 1 as 0", "1: start 1 as 1"},
		},
		"Leaving": {
			reason: "When a pod has to go, all ranks have time for a checkpoint, and the spare takes over.",
			plan:   spare(), events: func(s *script) {
				s.hello(0, 1, 2)
				s.take()
				s.say(1, protocol.Message{Kind: protocol.Leaving})
				s.stopped(0, 1)
				s.gone(1)
				s.stopped(0, 0)
			},
			want: []string{"0: stop 0 Terminate", "1: stop 0 Terminate", "0: start 1 as 0", "2: start 1 as 1"},
		},
		"Fault while leaving": {
			reason: "Ranks that lost another one cannot write a checkpoint together: the time for it is over.",
			plan:   two(), events: func(s *script) {
				s.hello(0, 1)
				s.say(1, protocol.Message{Kind: protocol.Leaving})
				s.take()
				s.fault(0, 0, crew.ClassInfrastructure)
				s.fault(0, 0, crew.ClassInfrastructure)
			},
			want: []string{"0: stop 0 Kill", "1: stop 0 Kill"},
		},
		"Coordinator leaving": {
			reason: "The coordinator goes with its pod: another one begins the next attempt.",
			plan:   spare(), events: func(s *script) {
				s.hello(0, 1, 2)
				s.say(0, protocol.Message{Kind: protocol.Leaving})
				s.take()
				s.stopped(0, 0, 1)
				s.wait(time.Minute, 0, 1, 2)
			},
		},
		"Coordinator again": {
			reason: "A coordinator that starts again continues after the highest attempt that members know.",
			plan:   two(), events: func(s *script) {
				s.hello(0)
				s.helloKnowing(1, protocol.Greeting{Ledger: protocol.Ledger{Attempt: 4}, Step: 10})
			},
			want: []string{"0: start 5 as 0", "1: start 5 as 1"},
		},
		"Coordinator again, budget": {
			reason: "Its budgets stay used: the attempt that lost its coordinator made no progress.",
			plan:   two(), events: func(s *script) {
				s.hello(0)
				s.helloKnowing(1, protocol.Greeting{Ledger: protocol.Ledger{Attempt: 4, Best: 10, WithoutProgress: 2}, Step: 10})
			},
			want: []string{"0: finish 64", "1: finish 64", "end 64"},
		},
		"Late member with a higher attempt": {
			reason: "The attempt only goes up. What runs is not disturbed.",
			plan:   spare(), events: func(s *script) {
				s.hello(0, 1)
				s.wait(10*time.Second, 0, 1)
				s.take()
				s.helloKnowing(2, protocol.Greeting{Ledger: protocol.Ledger{Attempt: 7}})
				s.fault(0, 0, crew.ClassUser)
				s.stopped(0, 0, 1)
			},
			want: []string{"0: stop 0 Kill", "1: stop 0 Kill", "0: start 8 as 0", "1: start 8 as 1"},
		},
		"Coordinator left": {
			reason: "Nor does it begin one when its own ranks have stopped and others are free.",
			plan:   spare(), events: func(s *script) {
				s.hello(0, 1, 2)
				s.say(0, protocol.Message{Kind: protocol.Leaving})
				s.take()
				s.stopped(0, 0)
				s.gone(0)
				s.stopped(0, 1)
				s.wait(time.Minute, 1, 2)
			},
		},
		"Connection broke": {
			reason: "A member whose connection did not end by itself may have ranks until its lease is over.",
			plan:   spare(), events: func(s *script) {
				s.hello(0, 1, 2)
				s.do(Closed{Conn: s.conns[1], Broken: true})
				s.stopped(0, 0)
				s.take()
				s.wait(9*time.Second, 0, 2)
				if got := s.take(); got != nil {
					s.t.Errorf("began within the lease: %q", got)
				}
				s.wait(time.Second, 0, 2)
			},
			want: []string{"0: start 1 as 0", "2: start 1 as 1"},
		},
		"Connection broke, back": {
			reason: "Until it says that it has none.",
			plan:   two(), events: func(s *script) {
				s.hello(0, 1)
				s.do(Closed{Conn: s.conns[1], Broken: true})
				s.stopped(0, 0)
				s.take()
				s.hello(1)
			},
			want: []string{"0: start 1 as 0", "1: start 1 as 1"},
		},
		"Other run": {
			reason: "A pod of another run is not heard.",
			plan:   two(), events: func(s *script) {
				s.conns[1] = 7
				s.do(Received{Conn: 7, Message: protocol.Message{Kind: protocol.Hello, Run: 2, Index: 1, Greeting: &protocol.Greeting{}}})
			},
			want: []string{"close 7"},
		},
		"Index too high": {
			reason: "There is no such pod.",
			plan:   two(), events: func(s *script) { s.hello(2) },
			want: []string{"close 12"},
		},
		"Gone while checkpoints are read": {
			reason: "No attempt begins with a member that has gone since.",
			plan:   two(), events: func(s *script) {
				s.held = true
				s.hello(0, 1)
				s.gone(1)
				s.do(Found{})
			},
		},
		"Stopped by itself": {
			reason: "A member that has no ranks any more ends the attempt, for whatever reason it stopped them.",
			plan:   two(), events: func(s *script) {
				s.hello(0, 1)
				s.take()
				s.stopped(0, 1)
			},
			want: []string{"0: stop 0 Kill"},
		},
		"After the end": {
			reason: "A pod that comes when the run has ended learns how.",
			plan:   spare(), events: func(s *script) {
				s.hello(0, 1)
				s.wait(10*time.Second, 0, 1)
				s.done(0, 0, 1)
				s.take()
				s.hello(2)
			},
			want: []string{"2: finish 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, tc.plan)
			tc.events(s)
			if diff := cmp.Diff(tc.want, s.take()); diff != "" {
				t.Errorf("%s\norders: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// attempts that all end in a way, and how many began.
func attempts(s *script, each func(attempt int)) int {
	s.hello(0, 1)
	for attempt := range 100 {
		if s.m.phase == ended {
			return attempt
		}
		each(attempt)
		s.stopped(attempt, 0, 1)
	}
	return 100
}

func TestBudgets(t *testing.T) {
	fails := func(class crew.Class) func(*script, int) {
		return func(s *script, attempt int) { s.fault(1, attempt, class) }
	}
	for name, tc := range map[string]struct {
		reason string
		plan   crew.Plan
		each   func(s *script, attempt int)
		want   int
		says   string
	}{
		"Wrong argument": {
			reason: "What fails before its first step fails three times, and the message has the last lines.",
			plan:   two(), each: fails(crew.ClassUser), want: 3, says: "3 attempts in a row ended without progress (retry.withoutProgress); last fault: rank failed\nthe last line",
		},
		"Infrastructure": {
			reason: "Without progress the class does not matter.",
			plan:   two(), each: fails(crew.ClassInfrastructure), want: 3, says: "without progress",
		},
		"Fewer": {
			reason: "The plan sets the limit.",
			plan:   crew.Plan{Workers: 2, Retry: crew.Retry{WithoutProgress: 1}}, each: fails(crew.ClassUser), want: 1, says: "1 attempts in a row",
		},
		"Progress": {
			reason: "Attempts that make progress are limited in all.",
			plan:   two(), each: func(s *script, attempt int) {
				s.step(0, attempt, int64(10+attempt))
				s.fault(1, attempt, crew.ClassUser)
			}, want: 50, says: "all 50 attempts are used up",
		},
		"Same step": {
			reason: "To reach the same step again is no progress. The attempt that reached it first counts not.",
			plan:   two(), each: func(s *script, attempt int) {
				s.step(0, attempt, 10)
				s.fault(1, attempt, crew.ClassUser)
			}, want: 4, says: "without progress",
		},
		"Checkpoint": {
			reason: "A checkpoint beyond the best step is progress, also of ranks that report no steps.",
			plan:   two(), each: func(s *script, attempt int) {
				s.saved(0, attempt, int64(10+attempt))
				s.fault(1, attempt, crew.ClassUser)
			}, want: 50, says: "used up",
		},
		"Memory": {
			reason: "The same size is tried once more, and then the remedy is named.",
			plan:   two(), each: fails(crew.ClassOutOfMemory), want: 2, says: "raise resources.memory",
		},
		"Stalled without checkpoints": {
			reason: "To begin at zero again is rarely wanted.",
			plan:   crew.Plan{Workers: 2}, each: fails(crew.ClassStalled), want: 1, says: "set checkpoint",
		},
		"NaN without checkpoints": {
			reason: "The same for a loss that is not a number.",
			plan:   crew.Plan{Workers: 2}, each: fails(crew.ClassNonFinite), want: 1, says: "set checkpoint",
		},
		"NaN": {
			reason: "Three in a row are enough.",
			plan:   two(), each: func(s *script, attempt int) {
				s.step(0, attempt, 90)
				s.fault(1, attempt, crew.ClassNonFinite)
			}, want: 3, says: "was not a number in 3 attempts",
		},
		"Disruptions": {
			reason: "A pod that had to go, as when a queue takes all pods back, is no sign that the training fails: such attempts use nothing up.",
			plan:   crew.Plan{Workers: 2, Retry: crew.Retry{Attempts: 10}}, each: func(s *script, attempt int) {
				if attempt >= 30 {
					s.step(0, attempt, int64(10+attempt))
					s.fault(1, attempt, crew.ClassUser)
					return
				}
				s.say(1, protocol.Message{Kind: protocol.Leaving})
				s.stopped(attempt, 1)
				s.gone(1)
				s.stopped(attempt, 0)
				if s.m.phase != ended {
					s.hello(1)
				}
			}, want: 40, says: "all 10 attempts",
		},
		"No retry": {
			reason: "One attempt is one that may fail. A queue may take its pods back, nevertheless.",
			plan:   crew.Plan{Workers: 2, Retry: crew.Retry{Attempts: 1}}, each: func(s *script, attempt int) {
				if attempt > 0 {
					s.fault(1, attempt, crew.ClassUser)
					return
				}
				s.say(1, protocol.Message{Kind: protocol.Leaving})
				s.stopped(attempt, 1)
				s.gone(1)
				s.stopped(attempt, 0)
				if s.m.phase != ended {
					s.hello(1)
				}
			}, want: 2, says: "all 1 attempts",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, tc.plan)
			got := attempts(s, func(attempt int) { tc.each(s, attempt) })
			state := s.m.State(s.now)
			if got != tc.want || state.Phase != crew.PhaseFailed || !strings.Contains(state.Message, tc.says) {
				t.Errorf("%s\n%d attempts, want %d; %s: %q, want %q", tc.reason, got, tc.want, state.Phase, state.Message, tc.says)
			}
			if last := s.said[len(s.said)-1]; last != "end 64" {
				t.Errorf("%s\nthe run ended with %q", tc.reason, last)
			}
		})
	}
}

func TestNonFiniteGoesBack(t *testing.T) {
	s := newScript(t, two())
	at := func(step int64) crew.Checkpoint {
		return crew.Checkpoint{Step: step, URI: "/c/" + time.Duration(step).String(), At: t0}
	}
	s.found.Complete = []crew.Checkpoint{at(80), at(60), at(40)}
	resumed := func() int64 {
		if s.m.attempt.resume == nil {
			return -1
		}
		return s.m.attempt.resume.Step
	}
	s.hello(0, 1)
	var got []int64
	for attempt := range 2 {
		s.now = s.now.Add(time.Minute)
		got = append(got, resumed())
		s.step(0, attempt, 90)
		s.fault(0, attempt, crew.ClassNonFinite)
		s.stopped(attempt, 0, 1)
	}
	got = append(got, resumed())
	if diff := cmp.Diff([]int64{80, 80, 60}, got); diff != "" {
		t.Errorf("resumed after steps: -want, +got:\n%s", diff)
	}
	// A checkpoint that is written again under a discarded name is a new one, and the count begins again beyond the step.
	s.now = s.now.Add(time.Minute)
	s.step(0, 2, 95)
	again := at(80)
	again.At = s.now
	s.found.Complete = []crew.Checkpoint{again, at(60)}
	s.fault(0, 2, crew.ClassUser)
	s.stopped(2, 0, 1)
	if got := resumed(); got != 80 {
		t.Errorf("resumed after step %d, want the one that was written again", got)
	}
	if s.m.ledger.NonFinite != 0 || len(s.rec.Discarded) != 1 {
		t.Errorf("ledger %+v, record %+v", s.m.ledger, s.rec)
	}
}

func TestBudgetsOfPhases(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		phases crew.Phases
		events func(s *script)
		within time.Duration
		says   string
	}{
		"Setup": {
			reason: "Ranks that never make a step are silent for the setup budget.",
			phases: crew.Phases{Setup: 30}, events: func(*script) {}, within: 31 * time.Second, says: "no step was recognised",
		},
		"Step": {
			reason: "A budget of the plan counts from the first step.",
			phases: crew.Phases{Step: 5}, events: func(s *script) { s.step(0, 0, 1) }, within: 6 * time.Second, says: "5s are allowed (phase step)",
		},
		"Few steps": {
			reason: "Before twenty steps the setup budget counts.",
			phases: crew.Phases{Setup: 30}, events: func(s *script) { s.step(0, 0, 19) }, within: 31 * time.Second, says: "fewer than 20",
		},
		"Learned": {
			reason: "After twenty steps of 10 s each, ten times as long is allowed.",
			events: func(s *script) {
				for i := range int64(25) {
					s.step(0, 0, i+1)
					s.wait(10*time.Second, 0, 1)
				}
			},
			within: 91 * time.Second, says: "1m40s are allowed (phase step, learned)",
		},
		"Learned at least": {
			reason: "Fast steps leave a minute.",
			events: func(s *script) {
				s.step(0, 0, 1)
				s.wait(time.Second, 0, 1)
				s.step(0, 0, 100)
			},
			within: 61 * time.Second, says: "1m0s are allowed",
		},
		"Checkpoint": {
			reason: "A checkpoint may take longer than a step.",
			phases: crew.Phases{Step: 5, Checkpoint: 20}, events: func(s *script) {
				s.step(0, 0, 1)
				s.saved(0, 0, 1)
			},
			within: 26 * time.Second, says: "25s are allowed (phase step and checkpoint)",
		},
		"Finish": {
			reason: "The end is a phase of its own: ranks that evaluate make no steps.",
			phases: crew.Phases{Step: 5, Finish: 20}, events: func(s *script) {
				s.step(0, 0, 1)
				s.done(0, 0)
			},
			within: 21 * time.Second, says: "phase finish",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := two()
			plan.Watch.Phases = tc.phases
			s := newScript(t, plan)
			s.hello(0, 1)
			tc.events(s)
			s.take()
			s.wait(tc.within-2*time.Second, 0, 1)
			if got := s.take(); got != nil {
				t.Errorf("%s\ntoo early: %q", tc.reason, got)
			}
			s.wait(3*time.Second, 0, 1)
			if diff := cmp.Diff([]string{"0: stop 0 Abort", "1: stop 0 Abort"}, s.take()); diff != "" {
				t.Errorf("%s\norders: -want, +got:\n%s", tc.reason, diff)
			}
			f := s.m.State(s.now).LastFault
			if f == nil || f.Class != crew.ClassStalled || !strings.Contains(f.Message, tc.says) {
				t.Errorf("%s\nfault %+v, want %q", tc.reason, f, tc.says)
			}
		})
	}
}

func TestASuspectIsNamed(t *testing.T) {
	plan := two()
	plan.Watch.Phases.Step = 5
	s := newScript(t, plan)
	s.hello(0, 1)
	s.step(0, 0, 7)
	s.step(1, 0, 6)
	s.wait(6*time.Second, 0, 1)
	f := s.m.State(s.now).LastFault
	if f == nil || f.Rank != 1 || f.Index != 1 || !strings.Contains(f.Message, "rank 1 stopped first, after step 6") {
		t.Errorf("fault %+v, want rank 1, which is behind", f)
	}
}

func TestALostPodExplainsAStall(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		beats  []int // members that are there
		want   crew.Class
		stalls int
	}{
		"Lost":  {reason: "The ranks wait for a node that is gone, and a step may take less time than it takes to notice that.", beats: []int{0, 2}, want: crew.ClassInfrastructure},
		"Stall": {reason: "A member whose ranks cannot be stopped was there.", beats: []int{0, 1, 2}, want: crew.ClassStalled, stalls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			plan := spare()
			plan.Watch.Phases.Step = 5
			s := newScript(t, plan)
			s.hello(0, 1, 2)
			s.step(0, 0, 7)
			s.step(1, 0, 7)
			s.wait(7*time.Second, tc.beats...)
			s.stopped(0, 0)
			s.wait(2*time.Minute, tc.beats...)
			f := s.m.LastFault()
			if f == nil || f.Class != tc.want || f.Index != 1 && tc.want == crew.ClassInfrastructure || s.m.ledger.Stalls != tc.stalls {
				t.Errorf("%s\nlast fault %+v, stalls %d, want %s of pod 1 and %d", tc.reason, f, s.m.ledger.Stalls, tc.want, tc.stalls)
			}
			if s.m.attempt.number != 1 {
				t.Errorf("%s\nthe spare did not take over: attempt %d", tc.reason, s.m.attempt.number)
			}
		})
	}
}

func TestOutputWithoutProgressIsALifeSign(t *testing.T) {
	plan := two()
	plan.Watch.Phases.Setup = 30
	s := newScript(t, plan)
	s.hello(0, 1)
	s.take()
	for range 60 {
		s.now = s.now.Add(time.Second)
		for _, index := range []int{0, 1} {
			s.say(index, protocol.Message{Kind: protocol.Beat, Sequence: 1, SilentMillis: 500})
		}
		s.do(Tick{})
	}
	if got := s.take(); got != nil {
		t.Errorf("a training whose output is not understood was stopped: %q", got)
	}
}

func TestACauseExplainsWhatFollowed(t *testing.T) {
	s := newScript(t, two())
	s.hello(0, 1)
	s.say(0, protocol.Message{Kind: protocol.Failed, Fault: &protocol.Fault{Class: crew.ClassInfrastructure, Rank: 0, Message: "connection reset by peer", Secondary: true}})
	s.say(1, protocol.Message{Kind: protocol.Failed, Fault: &protocol.Fault{Class: crew.ClassOutOfMemory, Rank: 1, Message: "killed"}})
	s.stopped(0, 0, 1)
	if f := s.m.State(s.now).LastFault; f == nil || f.Class != crew.ClassOutOfMemory || f.Rank != 1 {
		t.Errorf("last fault %+v, want the one that the other follows from", f)
	}
}

func TestAFolderThatCannotBeRead(t *testing.T) {
	s := newScript(t, two())
	s.found.Err = errors.New("cannot read the folder of checkpoints /c: stale file handle")
	s.hello(0, 1)
	if got := s.take(); got != nil {
		t.Errorf("an attempt began without knowing the checkpoints: %q", got)
	}
	s.wait(20*time.Second, 0, 1)
	if f := s.m.State(s.now).LastFault; f == nil || !strings.Contains(f.Message, "/c: stale") {
		t.Errorf("last fault %+v, want the folder", f)
	}
	s.found.Err = nil
	s.wait(10*time.Second, 0, 1)
	if diff := cmp.Diff([]string{"0: start 0 as 0", "1: start 0 as 1"}, s.take()); diff != "" {
		t.Errorf("the folder is there again: -want, +got:\n%s", diff)
	}
	s.found.Err = errors.New("cannot read the folder of checkpoints /c: no space")
	s.fault(0, 0, crew.ClassUser)
	s.stopped(0, 0, 1)
	s.wait(320*time.Second, 0, 1)
	if state := s.m.State(s.now); state.Phase != crew.PhaseFailed || !strings.Contains(state.Message, "/c: no space") {
		t.Errorf("%s: %q, want a failure that names the folder", state.Phase, state.Message)
	}
}

func TestAFolderThatCannotBeWritten(t *testing.T) {
	s := newScript(t, two())
	s.hello(0, 1)
	s.saved(0, 0, 5)
	s.do(Recorded{Err: errors.New("cannot write to the folder of checkpoints /c: no space left on device; make room there")})
	if state := s.m.State(s.now); state.Phase != crew.PhaseRunning || !strings.Contains(state.Message, "/c: no space") {
		t.Errorf("%s: %q, want a training that continues and names the folder", state.Phase, state.Message)
	}
	s.do(Recorded{})
	if state := s.m.State(s.now); state.Message != "" {
		t.Errorf("the folder can be written again, and the message is %q", state.Message)
	}
}

func TestState(t *testing.T) {
	plan := spare()
	s := newScript(t, plan)
	s.hello(0)
	s.now = s.now.Add(301 * time.Second)
	got := s.m.State(s.now)
	want := crew.State{
		Version: 1, Run: 1, Phase: crew.PhaseGathering, Missing: []crew.Missing{{Index: 1, Since: t0}, {Index: 2, Since: t0}},
		Message: "pod 1 is missing since 2026-11-26T12:00:00Z, and no spare is left",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gathering: -want, +got:\n%s", diff)
	}
	s.do(Closed{Conn: s.conns[0]})
	s.hello(0, 1, 2)
	for step := range int64(11) {
		s.step(0, 0, step)
		s.step(1, 0, step)
		s.now = s.now.Add(time.Second)
	}
	s.saved(0, 0, 5)
	s.fault(1, 0, crew.ClassUser)
	s.stopped(0, 0, 1)
	got = s.m.State(s.now)
	if got.GoodputPercent < 40 || got.GoodputPercent > 50 {
		t.Errorf("goodput %d %%, want less than half: 5 of 10 steps were kept", got.GoodputPercent)
	}
	got.GoodputPercent, got.LastFault.At = 0, time.Time{}
	want = crew.State{
		Version: 1, Run: 1, Phase: crew.PhaseRunning, Attempt: 1, Restarts: 1, Progress: crew.Progress{Step: 5},
		LastFault: &crew.Fault{Class: crew.ClassUser, Index: 1, Rank: 1, Message: "rank failed"},
	}
	got.Checkpoint = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("running: -want, +got:\n%s", diff)
	}
}

func TestRestore(t *testing.T) {
	at := func(step int64) crew.Checkpoint {
		return crew.Checkpoint{Step: step, URI: fmt.Sprintf("/c/%d", step), At: t0}
	}
	t.Run("Before it is read, the record stays", func(t *testing.T) {
		s := newScript(t, two())
		s.found.Record = checkpoints.Record{
			Run: 1, Ledger: protocol.Ledger{Attempt: 3}, Reported: []crew.Checkpoint{at(40), at(80)}, Discarded: []checkpoints.Discard{{From: 80, Until: t0}},
		}
		newest := at(80)
		s.helloKnowing(1, protocol.Greeting{Ledger: protocol.Ledger{Attempt: 3}, Checkpoint: &newest})
		if s.rec != nil {
			t.Fatalf("a record %+v replaced one that was not read yet", s.rec)
		}
		s.hello(0)
		if got := s.m.attempt.resume; got == nil || got.Step != 40 {
			t.Errorf("resumed from %+v, want the checkpoint before the discarded one", got)
		}
		if s.rec == nil || len(s.rec.Discarded) != 1 || len(s.rec.Reported) != 2 {
			t.Errorf("record %+v, want all of the one before", s.rec)
		}
	})
	t.Run("Checkpoints of a pattern are progress", func(t *testing.T) {
		s := newScript(t, crew.Plan{Workers: 1, Checkpoints: &crew.Checkpoints{Dir: "/c"}})
		s.found = Found{Found: checkpoints.Found{
			Record: checkpoints.Record{Run: 1, Ledger: protocol.Ledger{Attempt: 4, Best: 50, WithoutProgress: 2}}, Complete: []crew.Checkpoint{at(80)},
		}}
		s.hello(0)
		if got := s.m.ledger; s.m.phase != running || got.WithoutProgress != 0 || got.Best != 80 {
			t.Errorf("ledger %+v (%s), want progress to step 80", got, s.m.message)
		}
		// Each time that the pod is replaced, the same checkpoint is progress no more.
		for lost := range 3 {
			again := newScript(t, crew.Plan{Workers: 1, Checkpoints: &crew.Checkpoints{Dir: "/c"}})
			again.found, again.found.Record = s.found, *s.rec
			again.hello(0)
			if got := again.m.ledger.WithoutProgress; got != lost+1 {
				t.Fatalf("%d attempts without progress, want %d", got, lost+1)
			}
			s = again
		}
		if s.m.phase != ended {
			t.Error("a pod that is lost each time before it makes progress is replaced for ever")
		}
	})
	t.Run("A run that ended is another one", func(t *testing.T) {
		s := newScript(t, two())
		attempts(s, func(attempt int) { s.fault(1, attempt, crew.ClassUser) })
		again := newScript(t, two())
		again.found.Record = *s.rec
		again.hello(0, 1)
		if diff := cmp.Diff([]string{"0: start 0 as 0", "1: start 0 as 1"}, again.take()); diff != "" {
			t.Errorf("a training of the same name and folder begins: -want, +got:\n%s", diff)
		}
	})
}

func TestACheckpointThatIsGone(t *testing.T) {
	s := newScript(t, two())
	s.hello(0, 1)
	s.saved(0, 0, 60)
	s.saved(0, 0, 80)
	s.found.Gone = []string{"/c/80"}
	s.fault(1, 0, crew.ClassUser)
	s.stopped(0, 0, 1)
	if got := s.m.attempt.resume; got == nil || got.Step != 60 {
		t.Errorf("resumed from %+v, want the newest that is there", got)
	}
	var asked []string
	for _, c := range s.asked {
		asked = append(asked, c.URI)
	}
	if diff := cmp.Diff([]string{"/c/60", "/c/80"}, asked); diff != "" {
		t.Errorf("looked for: -want, +got:\n%s", diff)
	}
}

func TestOutputIsALifeSignAfterAResume(t *testing.T) {
	plan := two()
	plan.Watch.Phases.Setup = 30
	s := newScript(t, plan)
	s.found.Complete = []crew.Checkpoint{{Step: 80, URI: "/c/80", At: t0}}
	s.hello(0, 1)
	s.fault(1, 0, crew.ClassUser)
	s.stopped(0, 0, 1)
	s.take()
	for range 60 {
		s.now = s.now.Add(time.Second)
		for _, index := range []int{0, 1} {
			s.say(index, protocol.Message{Kind: protocol.Beat, Sequence: 1, SilentMillis: 500})
		}
		s.do(Tick{})
	}
	if got := s.take(); got != nil {
		t.Errorf("a step of a checkpoint is no step that was recognised: %q", got)
	}
}

func TestMessageFits(t *testing.T) {
	long := strings.Repeat("\x01\"ä", 3000)
	s := crew.State{Phase: crew.PhaseFailed, Message: long, LastFault: &crew.Fault{Message: long}, Checkpoint: &crew.Checkpoint{URI: long}}
	for range 100 {
		s.Missing = append(s.Missing, crew.Missing{})
	}
	raw := Message(s)
	if len(raw) > crew.MaxMessage || !strings.Contains(string(raw), `"phase":"Failed"`) {
		t.Errorf("the message has %d bytes: %.200s", len(raw), raw)
	}
}
