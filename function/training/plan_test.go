// SPDX-License-Identifier: Apache-2.0

package training

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/training/names"
	"github.com/capstan-dev/capstan/function/training/runs"
)

// What Kubernetes and the provider report.
const (
	started     = `{status: {startTime: "2026-11-20T12:00:00Z"}}`
	complete    = `{status: {conditions: [{type: Complete, status: "True", reason: SuccessPolicy}]}}`
	gaveUp      = `{status: {conditions: [{type: Failed, status: "True", reason: PodFailurePolicy, message: exit code 64}]}}`
	podsLost    = `{status: {conditions: [{type: Failed, status: "True", reason: MaxFailedIndexesExceeded, message: Job has exceeded the specified maximal number of failed indexes}]}}`
	criteriaMet = `{status: {conditions: [{type: SuccessCriteriaMet, status: "True", reason: SuccessPolicy}]}}`
	failing     = `{status: {conditions: [{type: FailureTarget, status: "True", reason: PodFailurePolicy, message: exit code 64}]}}`
	overtime    = `{status: {conditions: [{type: Failed, status: "True", reason: DeadlineExceeded, message: Job was active longer than specified deadline}]}}`
	running     = `{phase: Running, attempt: 0, progress: {step: 100}, checkpoint: {step: 90, uri: /checkpoints/step-90, at: "2026-11-20T12:01:00Z"}}`
)

// begun is a world whose first run runs.
func begun(t *testing.T, spec string) *world {
	t.Helper()
	w := newWorld(t, spec)
	w.settle()
	w.kubernetes(started)
	w.report(running)
	w.settle()
	if w.phase() != v1alpha1.TrainingRunning || !w.plan.Ready {
		t.Fatalf("want a run that runs, got %s, ready %v, conditions %v", w.phase(), w.plan.Ready, w.plan.Conditions)
	}
	return w
}

// TestTransitions shows what follows when something happens to a run, before and after the pods of the run are gone.
func TestTransitions(t *testing.T) {
	type state struct {
		Phase     v1alpha1.TrainingPhase
		Jobs      []string // that are desired
		Succeeded string
		Run       int64
	}
	cases := map[string]struct {
		reason       string
		happens      func(*world)
		before, then state
	}{
		"Nothing": {
			reason:  "a run goes on",
			happens: func(*world) {},
			before:  state{v1alpha1.TrainingRunning, []string{"job-1"}, "Unknown/NotFinished", 1},
			then:    state{v1alpha1.TrainingRunning, []string{"job-1"}, "Unknown/NotFinished", 1},
		},
		"Edited": {
			reason:  "a run is never changed: its pods go, and only then the next ones come",
			happens: func(w *world) { w.edit("{args: [train, --more]}") },
			before:  state{v1alpha1.TrainingRestarting, nil, "Unknown/NotFinished", 1},
			then:    state{v1alpha1.TrainingStarting, []string{"job-2"}, "Unknown/NotFinished", 2},
		},
		"EditedWhatReachesNoPod": {
			reason: "such an edit restarts nothing",
			happens: func(w *world) {
				w.edit("{startWithin: 1h, keepFinishedFor: 1h, retry: {runs: 5}, metrics: {port: 9090}}")
			},
			before: state{v1alpha1.TrainingRunning, []string{"job-1"}, "Unknown/NotFinished", 1},
			then:   state{v1alpha1.TrainingRunning, []string{"job-1"}, "Unknown/NotFinished", 1},
		},
		"EditedBadly": {
			reason:  "nothing that runs is touched by a bad edit",
			happens: func(w *world) { w.edit("{args: [train, --more], watch: {progress: '('}}") },
			before:  state{v1alpha1.TrainingRunning, []string{"job-1"}, "Unknown/NotFinished", 1},
			then:    state{v1alpha1.TrainingRunning, []string{"job-1"}, "Unknown/NotFinished", 1},
		},
		"Suspended": {
			reason:  "the pods go, and no run follows",
			happens: func(w *world) { w.edit("{suspend: true}") },
			before:  state{v1alpha1.TrainingSuspended, nil, "Unknown/NotFinished", 1},
			then:    state{v1alpha1.TrainingSuspended, nil, "Unknown/NotFinished", 1},
		},
		"Rerun": {
			reason:  "a request ends the run that is active",
			happens: func(w *world) { w.edit("{rerun: {id: again}}") },
			before:  state{v1alpha1.TrainingRestarting, nil, "Unknown/NotFinished", 1},
			then:    state{v1alpha1.TrainingStarting, []string{"job-2"}, "Unknown/NotFinished", 2},
		},
		"Succeeded": {
			reason:  "the Job stays for its logs",
			happens: func(w *world) { w.kubernetes(complete) },
			before:  state{v1alpha1.TrainingSucceeded, []string{"job-1"}, "True/Succeeded", 1},
			then:    state{v1alpha1.TrainingSucceeded, []string{"job-1"}, "True/Succeeded", 1},
		},
		"SucceededLongAgo": {
			reason: "then the Job goes, and the Training stays",
			happens: func(w *world) {
				w.kubernetes(complete)
				w.settle()
				w.now = w.now.Add(8 * 24 * time.Hour)
			},
			before: state{v1alpha1.TrainingSucceeded, nil, "True/Succeeded", 1},
			then:   state{v1alpha1.TrainingSucceeded, nil, "True/Succeeded", 1},
		},
		"SucceededAndEdited": {
			reason: "after success only a request starts it again",
			happens: func(w *world) {
				w.kubernetes(complete)
				w.settle()
				w.edit("{args: [train, --more]}")
			},
			before: state{v1alpha1.TrainingSucceeded, []string{"job-1"}, "True/Succeeded", 1},
			then:   state{v1alpha1.TrainingSucceeded, []string{"job-1"}, "True/Succeeded", 1},
		},
		"SucceededAndRerun": {
			reason: "its pods go first",
			happens: func(w *world) {
				w.kubernetes(complete)
				w.settle()
				w.edit("{rerun: {id: again}}")
			},
			before: state{v1alpha1.TrainingRestarting, nil, "Unknown/NotFinished", 1},
			then:   state{v1alpha1.TrainingStarting, []string{"job-2"}, "Unknown/NotFinished", 2},
		},
		"GaveUp": {
			reason: "the crew says that nothing will get better",
			happens: func(w *world) {
				w.kubernetes(gaveUp)
				w.report(`{phase: Failed, attempt: 2, message: "train: unknown argument"}`)
			},
			before: state{v1alpha1.TrainingFailed, []string{"job-1"}, "False/ProgramFailed", 1},
			then:   state{v1alpha1.TrainingFailed, []string{"job-1"}, "False/ProgramFailed", 1},
		},
		"GaveUpAndCorrected": {
			reason: "a correction is a reason to start again",
			happens: func(w *world) {
				w.kubernetes(gaveUp)
				w.report(`{phase: Failed, attempt: 2, message: "train: unknown argument"}`)
				w.settle()
				w.edit("{args: [train, --right]}")
			},
			before: state{v1alpha1.TrainingRestarting, nil, "Unknown/NotFinished", 1},
			then:   state{v1alpha1.TrainingStarting, []string{"job-2"}, "Unknown/NotFinished", 2},
		},
		"GaveUpWithoutWords": {
			reason:  "what the crew says is waited for",
			happens: func(w *world) { w.kubernetes(gaveUp) },
			before:  state{v1alpha1.TrainingEnding, []string{"job-1"}, "Unknown/NotFinished", 1},
			then:    state{v1alpha1.TrainingEnding, []string{"job-1"}, "Unknown/NotFinished", 1},
		},
		"GaveUpWithoutWordsForLong": {
			reason: "but not for ever",
			happens: func(w *world) {
				w.kubernetes(gaveUp)
				w.settle()
				w.now = w.now.Add(time.Minute)
			},
			before: state{v1alpha1.TrainingFailed, []string{"job-1"}, "False/ProgramFailed", 1},
			then:   state{v1alpha1.TrainingFailed, []string{"job-1"}, "False/ProgramFailed", 1},
		},
		"PodsLost": {
			reason:  "another run follows with other pods",
			happens: func(w *world) { w.kubernetes(podsLost) },
			before:  state{v1alpha1.TrainingRestarting, nil, "Unknown/NotFinished", 1},
			then:    state{v1alpha1.TrainingStarting, []string{"job-2"}, "Unknown/NotFinished", 2},
		},
		"PodsLostTooOften": {
			reason: "not more often than the spec allows",
			happens: func(w *world) {
				w.edit("{retry: {runs: 0}}")
				w.settle()
				w.kubernetes(podsLost)
				w.report("{phase: Recovering}")
			},
			before: state{v1alpha1.TrainingFailed, []string{"job-1"}, "False/RunsLost", 1},
			then:   state{v1alpha1.TrainingFailed, []string{"job-1"}, "False/RunsLost", 1},
		},
		"TooLong": {
			reason:  "a deadline ends the Training",
			happens: func(w *world) { w.kubernetes(overtime) },
			before:  state{v1alpha1.TrainingFailed, []string{"job-1"}, "False/DeadlineExceeded", 1},
			then:    state{v1alpha1.TrainingFailed, []string{"job-1"}, "False/DeadlineExceeded", 1},
		},
		"MemberMissing": {
			reason: "the crew waits for a pod",
			happens: func(w *world) {
				w.report(`{phase: Recovering, attempt: 1, missing: [{index: 2, since: "2026-11-20T12:00:00Z"}]}`)
				w.now = w.now.Add(4 * time.Minute)
			},
			before: state{v1alpha1.TrainingRecovering, []string{"job-1"}, "Unknown/NotFinished", 1},
			then:   state{v1alpha1.TrainingRecovering, []string{"job-1"}, "Unknown/NotFinished", 1},
		},
		"MemberLost": {
			reason: "after five minutes another run follows",
			happens: func(w *world) {
				w.report(`{phase: Recovering, attempt: 1, missing: [{index: 2, since: "2026-11-20T12:00:00Z"}]}`)
				w.now = w.now.Add(5 * time.Minute)
			},
			before: state{v1alpha1.TrainingRestarting, nil, "Unknown/NotFinished", 1},
			then:   state{v1alpha1.TrainingStarting, []string{"job-2"}, "Unknown/NotFinished", 2},
		},
		"CoordinatorLost": {
			reason: "no spare replaces the coordinator",
			happens: func(w *world) {
				w.report(`{phase: Recovering, attempt: 1, missing: [{index: 0, since: "2026-11-20T12:00:00Z"}]}`)
				w.now = w.now.Add(5 * time.Minute)
			},
			before: state{v1alpha1.TrainingRestarting, nil, "Unknown/NotFinished", 1},
			then:   state{v1alpha1.TrainingStarting, []string{"job-2"}, "Unknown/NotFinished", 2},
		},
		"PreemptedForLong": {
			reason: "a queue has taken it back: no member is lost, and the run keeps its place",
			happens: func(w *world) {
				w.kubernetes(`{spec: {suspend: true}, status: {startTime: null}}`)
				w.report(`{phase: Recovering, attempt: 1, missing: [{index: 0, since: "2026-11-20T12:00:00Z"}]}`)
				w.now = w.now.Add(time.Hour)
			},
			before: state{v1alpha1.TrainingQueued, []string{"job-1"}, "Unknown/NotFinished", 1},
			then:   state{v1alpha1.TrainingQueued, []string{"job-1"}, "Unknown/NotFinished", 1},
		},
		"PreemptedAndAdmitted": {
			reason: "its pods start again, and have as long as at first",
			happens: func(w *world) {
				w.kubernetes(`{spec: {suspend: true}, status: {startTime: null}}`)
				w.report(`{phase: Recovering, attempt: 1, missing: [{index: 0, since: "2026-11-20T12:00:00Z"}]}`)
				w.settle()
				w.kubernetes(`{spec: {suspend: false}, status: {startTime: "2026-11-20T13:00:00Z"}}`)
				w.now = w.now.Add(70 * time.Minute)
			},
			before: state{v1alpha1.TrainingStarting, []string{"job-1"}, "Unknown/NotFinished", 1},
			then:   state{v1alpha1.TrainingStarting, []string{"job-1"}, "Unknown/NotFinished", 1},
		},
		"PreemptedForAMoment": {
			reason: "the time before the Job was admitted again is no loss",
			happens: func(w *world) {
				w.kubernetes(`{status: {startTime: "2026-11-20T12:58:00Z"}}`)
				w.report(`{phase: Recovering, attempt: 1, missing: [{index: 0, since: "2026-11-20T12:00:00Z"}]}`)
				w.now = w.now.Add(time.Hour)
			},
			before: state{v1alpha1.TrainingRecovering, []string{"job-1"}, "Unknown/NotFinished", 1},
			then:   state{v1alpha1.TrainingRecovering, []string{"job-1"}, "Unknown/NotFinished", 1},
		},
		"SucceededAndJobDeleted": {
			reason: "what the crew said counts: a run that has ended does not start again",
			happens: func(w *world) {
				w.report(`{phase: Succeeded, attempt: 0}`)
				resource, _ := w.currentJob()
				delete(w.Composed, resource)
			},
			before: state{v1alpha1.TrainingSucceeded, nil, "True/Succeeded", 1},
			then:   state{v1alpha1.TrainingSucceeded, nil, "True/Succeeded", 1},
		},
		"GaveUpAndJobDeleted": {
			reason: "what the crew said counts",
			happens: func(w *world) {
				w.report(`{phase: Failed, attempt: 0, message: wrong}`)
				resource, _ := w.currentJob()
				delete(w.Composed, resource)
			},
			before: state{v1alpha1.TrainingFailed, nil, "False/ProgramFailed", 1},
			then:   state{v1alpha1.TrainingFailed, nil, "False/ProgramFailed", 1},
		},
		"SucceededWithAPodOnADeadNode": {
			reason:  "Kubernetes never completes such a Job, although its outcome is certain",
			happens: func(w *world) { w.kubernetes(criteriaMet) },
			before:  state{v1alpha1.TrainingSucceeded, []string{"job-1"}, "True/Succeeded", 1},
			then:    state{v1alpha1.TrainingSucceeded, []string{"job-1"}, "True/Succeeded", 1},
		},
		"GaveUpWithAPodOnADeadNode": {
			reason: "neither does Kubernetes fail it",
			happens: func(w *world) {
				w.kubernetes(failing)
				w.report(`{phase: Failed, attempt: 2, message: wrong}`)
			},
			before: state{v1alpha1.TrainingFailed, []string{"job-1"}, "False/ProgramFailed", 1},
			then:   state{v1alpha1.TrainingFailed, []string{"job-1"}, "False/ProgramFailed", 1},
		},
		"CrewIsDone": {
			reason:  "no rank runs any more, and the Job has not ended",
			happens: func(w *world) { w.report(`{phase: Succeeded, attempt: 0}`) },
			before:  state{v1alpha1.TrainingEnding, []string{"job-1"}, "Unknown/NotFinished", 1},
			then:    state{v1alpha1.TrainingEnding, []string{"job-1"}, "Unknown/NotFinished", 1},
		},
		"JobDeleted": {
			reason: "its pods have the grace period to end",
			happens: func(w *world) {
				resource, _ := w.currentJob()
				delete(w.Composed, resource)
			},
			before: state{v1alpha1.TrainingRestarting, nil, "Unknown/NotFinished", 1},
			then:   state{v1alpha1.TrainingRestarting, nil, "Unknown/NotFinished", 1},
		},
		"JobDeletedAMinuteAgo": {
			reason: "it is told, and counted",
			happens: func(w *world) {
				resource, _ := w.currentJob()
				delete(w.Composed, resource)
				w.settle()
				w.now = w.now.Add(time.Minute)
			},
			before: state{v1alpha1.TrainingStarting, []string{"job-2"}, "Unknown/NotFinished", 2},
			then:   state{v1alpha1.TrainingStarting, []string{"job-2"}, "Unknown/NotFinished", 2},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := begun(t, usualSpec)
			look := func() state {
				w.settle()
				var jobs []string
				for resource := range w.plan.Objects {
					if strings.HasPrefix(resource, names.JobPrefix) {
						jobs = append(jobs, resource)
					}
				}
				return state{w.phase(), jobs, w.condition(v1alpha1.TypeSucceeded), compose.Number(w.status, 0, "run")}
			}
			tc.happens(w)
			if diff := cmp.Diff(tc.before, look()); diff != "" {
				t.Errorf("%s\nwhile pods exist: -want, +got:\n%s", tc.reason, diff)
			}
			w.Gone()
			if diff := cmp.Diff(tc.then, look()); diff != "" {
				t.Errorf("%s\nwithout them: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNotStarted shows that a run whose ranks do not all run in time gives its pods back for a while.
func TestNotStarted(t *testing.T) {
	w := newWorld(t, usualSpec)
	w.settle()
	w.kubernetes(started)
	w.report(`{phase: Gathering, attempt: 0}`)
	w.settle()
	w.now = w.now.Add(30 * time.Minute)
	w.settle()
	if got := w.phase(); got != v1alpha1.TrainingRestarting || len(w.plan.Objects) == 0 || w.run() != 0 {
		t.Fatalf("want the pods to be given back, got %s with run %d", got, w.run())
	}
	w.Gone()
	w.settle()
	if w.run() != 0 || w.plan.TTL > 10*time.Second {
		t.Errorf("want a pause, got run %d, and the next pass after %v", w.run(), w.plan.TTL)
	}
	w.now = w.now.Add(10 * time.Minute)
	w.settle()
	if w.run() != 2 {
		t.Errorf("want run 2 after at most ten minutes, got %d", w.run())
	}
}

// TestUnheard shows that a run whose pods all run is not given back because nothing is heard of its ranks.
func TestUnheard(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		ready  int
		report string
		kept   bool
	}{
		"Silent":       {"the provider cannot reach the coordinator, and the ranks may run well", 4, `{silent: it does not answer}`, true},
		"NoReport":     {"the provider is stopped", 4, "{}", true},
		"PodsMissing":  {"two Trainings with half of their pods must not block each other", 2, "{}", false},
		"NotGathering": {"the coordinator says that not all are there", 4, `{phase: Gathering, attempt: 0}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usualSpec)
			w.settle()
			w.kubernetes(fmt.Sprintf(`{status: {startTime: "2026-11-20T12:00:00Z", ready: %d}}`, tc.ready))
			w.report(tc.report)
			w.settle()
			w.now = w.now.Add(2 * time.Hour)
			w.settle()
			if kept := w.run() == 1; kept != tc.kept || w.plan.Ready {
				t.Errorf("%s: want the Job to be kept %v, got %v, ready %v, conditions %v", tc.reason, tc.kept, kept, w.plan.Ready, w.plan.Conditions)
			}
		})
	}
}

// TestLastFault has a crew end before it has said why. What it said of its last fault is the best that is known.
func TestLastFault(t *testing.T) {
	w := begun(t, usualSpec)
	w.kubernetes(gaveUp)
	w.report(`{phase: Recovering, attempt: 2, lastFault: {class: User, attempt: 2, index: 0, at: "2026-11-20T12:00:00Z", message: "rank 0 ended with exit code 80: train: unknown flag"}}`)
	w.settle()
	w.now = w.now.Add(time.Minute)
	w.settle()
	want := "False/ProgramFailed"
	if got := w.condition(v1alpha1.TypeSucceeded); got != want {
		t.Fatalf("want Succeeded %s, got %s", want, got)
	}
	if got := fmt.Sprint(w.plan.Conditions); !strings.Contains(got, "exit code 80: train: unknown flag. Correct the spec") {
		t.Errorf("the message should have the last fault, got %s", got)
	}
}

// TestLateWords has the provider look at a run only after the Training has failed, as when it starts again meanwhile. What it finds then
// replaces the message that had to do without it, once.
func TestLateWords(t *testing.T) {
	w := begun(t, usualSpec)
	w.kubernetes(gaveUp)
	w.report("{}")
	w.settle()
	w.now = w.now.Add(time.Minute)
	w.settle()
	if got := fmt.Sprint(w.plan.Conditions); !strings.Contains(got, "its reason is not known") {
		t.Fatalf("the provider is not there, so that no reason is known: %s", got)
	}
	for _, tc := range []struct{ reason, report, want string }{
		{"the provider says what it found", `{phase: Failed, attempt: 2, message: "attempt 3 without progress: unknown flag"}`, "attempt 3 without progress: unknown flag. Correct the spec"},
		{"a forged report of an ended run changes nothing that is known", `{phase: Failed, attempt: 2, message: "all is well"}`, "attempt 3 without progress: unknown flag. Correct the spec"},
	} {
		w.report(tc.report)
		w.settle()
		if got := fmt.Sprint(w.plan.Conditions); !strings.Contains(got, tc.want) {
			t.Errorf("%s: want %q, got %s", tc.reason, tc.want, got)
		}
		if got := fmt.Sprint(w.status["history"]); !strings.Contains(got, "attempt 3 without progress: unknown flag") {
			t.Errorf("%s: the history should say the same, got %s", tc.reason, got)
		}
	}
}

// TestSilent shows that nothing is said to be well while the coordinator does not answer.
func TestSilent(t *testing.T) {
	w := begun(t, usualSpec)
	w.report(`{phase: Running, attempt: 0, silent: "it does not answer"}`)
	w.settle()
	if got := w.condition(v1alpha1.TypeProgressing); w.plan.Ready || got != "Unknown/CoordinatorSilent" {
		t.Errorf("want no claim that ranks run, got ready %v, Progressing %s", w.plan.Ready, got)
	}
	if got := w.condition(v1alpha1.TypePodsHealthy); got != "False/CoordinatorSilent" {
		t.Errorf("want the reason, got PodsHealthy %s", got)
	}
}

// TestLostReferences shows that no second Job is made when Crossplane has lost its references, as when a tool replaces the Training.
func TestLostReferences(t *testing.T) {
	for name, edit := range map[string]string{"Unedited": "{}", "Edited": "{args: [train, --more]}"} {
		t.Run(name, func(t *testing.T) {
			w := begun(t, usualSpec)
			maps.Copy(w.Lost, w.Composed)
			clear(w.Composed)
			w.edit(edit)
			w.pass(false)
			if got := slices.Collect(keys(w.Jobs())); w.phase() == v1alpha1.TrainingRestarting || w.Composed["job-1"] == nil || len(got) != 1 {
				t.Fatalf("want the Job that exists to be taken back, got %s with %v and %v", w.phase(), got, w.plan.Conditions)
			}
		})
	}
}

// TestBudget shows that what a person changes has a budget of its own.
func TestBudget(t *testing.T) {
	w := begun(t, usualSpec)
	w.kubernetes(podsLost)
	w.settle()
	w.Gone()
	w.settle()
	w.edit("{args: [train, --from-the-start]}")
	w.kubernetes(started)
	w.settle()
	w.Gone()
	w.settle()
	if got := w.run(); got != 3 {
		t.Fatalf("want run 3, got %d", got)
	}
	w.report("{phase: Running, attempt: 0, progress: {step: 50}}")
	w.kubernetes(podsLost)
	w.settle()
	l, _ := runs.Parse(w.ledger())
	if l.Lost != 1 || l.Best != 50 {
		t.Errorf("want one lost run that reached step 50, got %d, %d", l.Lost, l.Best)
	}
}

// TestReserved shows that what makes a pod a member of its crew cannot be overridden.
func TestReserved(t *testing.T) {
	for name, edit := range map[string]string{
		"Index":    `{env: [{name: JOB_COMPLETION_INDEX, value: "0"}]}`,
		"Rank":     `{env: [{name: GROUP_WORLD_SIZE, value: "1"}]}`,
		"Contract": `{env: [{name: CAPSTAN_ATTEMPT, value: "1"}]}`,
		"Job":      `{podMetadata: {labels: {batch.kubernetes.io/job-name: other}}}`,
		"OldJob":   `{podMetadata: {labels: {job-name: other}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usualSpec)
			w.edit(edit)
			w.pass(false)
			if got := w.condition(v1alpha1.TypeAccepted); got != "False/InvalidSpec" && got != "False/Invalid" {
				t.Errorf("want %s to be refused, got Accepted %s", edit, got)
			}
		})
	}
}

// TestPasses counts the passes of a start, in which Kubernetes writes the status of the Job for each few pods, and what they write. Each
// pass takes a token of Crossplane's circuit breaker, which has 100.
func TestPasses(t *testing.T) {
	w := newWorld(t, usualSpec)
	w.edit("{workers: 64}")
	w.settle()
	w.kubernetes(started)
	w.settle()
	passes, writes := 0, 0
	for ready := range 64 {
		w.kubernetes(fmt.Sprintf(`{status: {active: 64, ready: %d}}`, ready+1))
		before := composetest.Encoded(w.status)
		w.pass(false)
		passes++
		if after := composetest.Encoded(w.status); before != after {
			writes++
		}
	}
	if writes > 0 {
		t.Errorf("want no write of the status while pods start, got %d in %d passes", writes, passes)
	}
}

// BenchmarkPlan of a run with 64 workers at rest.
func BenchmarkPlan(b *testing.B) {
	w := newWorld(b, usualSpec)
	w.edit("{workers: 64}")
	w.settle()
	w.kubernetes(started)
	w.report(running)
	w.settle()
	b.ReportAllocs()
	for b.Loop() {
		w.ask()
	}
}

// TestQueued shows that the time in a queue does not count, and that nothing takes a field from the queue.
func TestQueued(t *testing.T) {
	w := newWorld(t, usualSpec)
	w.edit("{queue: {name: research, priority: high}}")
	w.settle()
	w.kubernetes(`{spec: {suspend: true}}`)
	w.report(`{}`)
	w.now = w.now.Add(24 * time.Hour)
	w.settle()
	if got := w.phase(); got != v1alpha1.TrainingQueued {
		t.Errorf("want it to be queued, got %s", got)
	}
	raw, err := json.Marshal(w.plan.Objects["job-1"].Object)
	if err != nil || strings.Contains(string(raw), "suspend") {
		t.Errorf("the Job must never have suspend: %s, %v", raw, err)
	}
	if !strings.Contains(string(raw), `"kueue.x-k8s.io/queue-name":"research"`) {
		t.Errorf("want the label of the queue: %s", raw)
	}
}

// TestResume shows that the next run begins with the newest checkpoint.
func TestResume(t *testing.T) {
	w := begun(t, usualSpec)
	w.edit("{args: [train, --more]}")
	w.settle()
	w.Gone()
	w.settle()
	for resource, o := range w.Composed {
		if strings.HasPrefix(resource, names.PlanPrefix) {
			p, err := crew.ParsePlan([]byte(compose.TextOf(o, "data", crew.PlanFile)))
			if err != nil || p.Run != 2 || p.ResumeFrom != "/checkpoints/step-90" || p.Size() != 4 || p.Host(3) != "fraud-r2-3.fraud-crew.payments.svc" {
				t.Errorf("want run 2 to begin with the checkpoint of run 1, got %+v, %v", p, err)
			}
			return
		}
	}
	t.Error("there is no plan")
}

// TestRecords shows that a Training that has ended does not start again because one of its records is lost.
func TestRecords(t *testing.T) {
	lose := map[string]func(*world){
		"Status":           func(w *world) { w.status = nil },
		"Service":          func(w *world) { delete(w.Composed, names.Service) },
		"StatusAndService": func(w *world) { w.status = nil; delete(w.Composed, names.Service) },
		"StatusServiceJob": func(w *world) { w.status = nil; delete(w.Composed, names.Service); delete(w.Composed, "job-1") },
	}
	for name, loses := range lose {
		t.Run(name, func(t *testing.T) {
			w := begun(t, usualSpec)
			w.report(`{phase: Succeeded, attempt: 0}`)
			w.kubernetes(complete)
			w.settle()
			loses(w)
			w.settle()
			w.now = w.now.Add(time.Hour)
			w.settle()
			if w.phase() != v1alpha1.TrainingSucceeded || w.run() > 1 {
				t.Errorf("want what has ended to stay so, got %s with run %d", w.phase(), w.run())
			}
		})
	}
}

// TestQuiet shows that the status does not follow each step.
func TestQuiet(t *testing.T) {
	w := begun(t, usualSpec)
	writes := 0
	for minute := range 60 {
		w.now = w.now.Add(time.Minute)
		at := w.now.Format(time.RFC3339)
		step := 100 + minute*10
		raw := composetest.Encoded(map[string]any{
			"phase": "Running", "attempt": 0, "progress": map[string]any{"step": step, "of": 100000, "at": at},
			"checkpoint": map[string]any{"step": step, "uri": "/checkpoints/x", "at": at},
		})
		w.report(raw)
		before := composetest.Encoded(w.status)
		w.pass(false)
		if after := composetest.Encoded(w.status); before != after {
			writes++
		}
	}
	if writes > 20 {
		t.Errorf("want at most 20 writes of the status in an hour, got %d", writes)
	}
}
