// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// asks for a hook until one o'clock.
func asks(name, hook string) observev1alpha1.ActiveSignal {
	return observev1alpha1.ActiveSignal{
		Name: name, UID: "uid-of-" + name, Do: string(eventsv1alpha1.ActHook), Hook: hook, Until: metav1.NewTime(noon.Add(time.Hour)), Cause: "shop: " + name,
	}
}

// A world of hooks: those that are declared, each for five minutes, and what is observed of runs by the names of their Signals.
type world struct {
	declared map[string]bool
	waits    bool
	seen     map[string]HookSeen
}

func (w world) facts() HookFacts {
	return HookFacts{
		Limit: func(hook string) (time.Duration, string) {
			if !w.declared[hook] {
				return 0, fmt.Sprintf("no hook %q", hook)
			}
			return 5 * time.Minute, ""
		},
		Ready: func(string) bool { return !w.waits },
		Seen:  func(run v1alpha1.SignalHookStatus) HookSeen { return w.seen[run.Key[len("signal-uid-of-"):]] },
	}
}

// inWordsOf runs: Signal, hook and result, and why it failed.
func inWordsOf(runs Runs) []string {
	var all []string
	for _, r := range runs {
		if r.Hook == nil {
			all = append(all, r.Name+" ignored: "+r.Ignored)
			continue
		}
		text := fmt.Sprintf("%s %s %s", r.Name, r.Hook.Name, r.Hook.Result)
		if r.Hook.Message != "" {
			text += ": " + r.Hook.Message
		}
		all = append(all, text)
	}
	return all
}

// TestHooks shows what becomes of the runs of hooks, from one pass to the next.
func TestHooks(t *testing.T) {
	ran := func(name string, result v1alpha1.HookResult, change ...func(*v1alpha1.SignalStatus)) v1alpha1.SignalStatus {
		r := started(waiting(asks(name, "flush")), noon.Add(-time.Minute))
		r.Hook.Result, r.Hook.Object = result, "job/"+name
		for _, c := range change {
			c(&r)
		}
		return r
	}
	ended := func(r *v1alpha1.SignalStatus) { r.Until = metav1.NewTime(noon) }
	unseen := func(r *v1alpha1.SignalStatus) { r.Hook.Object = "" }
	long := func(r *v1alpha1.SignalStatus) { r.Hook.StartedAt = &metav1.Time{Time: noon.Add(-6 * time.Minute)} }
	running, passed, failed := v1alpha1.HookResultRunning, v1alpha1.HookResultPassed, v1alpha1.HookResultFailed
	flush := map[string]bool{"flush": true}
	cases := map[string]struct {
		reason     string
		remembered Runs
		asked      Set
		world      world
		want       []string
	}{
		"Begins":       {"the first one begins at once", nil, Set{asks("a", "flush")}, world{declared: flush}, []string{"a flush Running"}},
		"Undeclared":   {"only what the owner declared can run", nil, Set{asks("a", "other")}, world{declared: flush}, []string{`a ignored: no hook "other"`}},
		"Others":       {"other acts run no hook", nil, Set{{Name: "a", Do: string(eventsv1alpha1.ActHold)}}, world{declared: flush}, nil},
		"OneAtATime":   {"the second one waits", nil, Set{asks("a", "flush"), asks("b", "flush")}, world{declared: flush}, []string{"a flush Running", "b flush Waiting"}},
		"Next":         {"and begins when the first has ended", Runs{ran("a", passed)}, Set{asks("a", "flush"), asks("b", "flush")}, world{declared: flush}, []string{"a flush Passed", "b flush Running"}},
		"NextAtOnce":   {"in the pass in which it ended", Runs{ran("a", running)}, Set{asks("a", "flush"), asks("b", "flush")}, world{declared: flush, seen: map[string]HookSeen{"a": {Object: "job/a", Done: true, Passed: true}}}, []string{"a flush Passed", "b flush Running"}},
		"NotReady":     {"it waits for what it needs", nil, Set{asks("a", "flush")}, world{declared: flush, waits: true}, []string{"a flush Waiting"}},
		"NoTurn":       {"a Signal that ends before its turn runs none", Runs{ran("a", running)}, Set{}, world{declared: flush, seen: map[string]HookSeen{"a": {Object: "job/a"}}}, []string{"a flush Running"}},
		"Continues":    {"a hook that runs continues when its Signal ends", Runs{ran("a", running, ended)}, nil, world{declared: flush, seen: map[string]HookSeen{"a": {Object: "job/a"}}}, []string{"a flush Running"}},
		"Late":         {"its result is reported after that", Runs{ran("a", running, ended)}, nil, world{declared: flush, seen: map[string]HookSeen{"a": {Object: "job/a", Done: true, Message: "no"}}}, []string{"a flush Failed: no"}},
		"Forgotten":    {"and then forgotten", Runs{ran("a", failed, ended)}, nil, world{declared: flush}, nil},
		"Once":         {"one that ended does not begin a second time", Runs{ran("a", passed)}, Set{asks("a", "flush")}, world{declared: flush}, []string{"a flush Passed"}},
		"Unreported":   {"it is remembered while the provider does not report its Signal", Runs{ran("a", passed)}, nil, world{declared: flush}, []string{"a flush Passed"}},
		"StatusLost":   {"without a status, what runs it shows that it began", nil, Set{asks("a", "flush"), asks("b", "flush")}, world{declared: flush, seen: map[string]HookSeen{"b": {Object: "job/b"}}}, []string{"a flush Waiting", "b flush Running"}},
		"ResultLost":   {"or that it ended", nil, Set{asks("a", "flush")}, world{declared: flush, seen: map[string]HookSeen{"a": {Object: "job/a", Done: true, Passed: true}}}, []string{"a flush Passed"}},
		"NotCreated":   {"what is not created yet is waited for", Runs{ran("a", running, unseen)}, Set{asks("a", "flush")}, world{declared: flush}, []string{"a flush Running"}},
		"NeverMade":    {"but not longer than its time", Runs{ran("a", running, unseen, long)}, Set{asks("a", "flush")}, world{declared: flush}, []string{"a flush Failed: it could not be created in its time: see the condition Composed"}},
		"Deleted":      {"what was deleted is not created another time", Runs{ran("a", running)}, Set{asks("a", "flush")}, world{declared: flush}, []string{"a flush Failed: job/a was deleted before it ended"}},
		"Silent":       {"without a result it has failed after its time", Runs{ran("a", running, long)}, Set{asks("a", "flush")}, world{declared: flush, seen: map[string]HookSeen{"a": {Object: "job/a"}}}, []string{"a flush Failed: job/a has no result, and its time is over: see its conditions"}},
		"Removed":      {"a hook that the owner removes ends", Runs{ran("a", running)}, Set{asks("a", "flush")}, world{}, []string{`a flush Failed: no hook "flush"`}},
		"AnotherUID":   {"another Signal of the same name is another request", Runs{ran("a", passed, func(r *v1alpha1.SignalStatus) { r.Hook.Key = "signal-earlier" })}, Set{asks("a", "flush")}, world{declared: flush}, []string{"a flush Passed", "a flush Running"}},
		"WaitsAnother": {"one that cannot begin does not hold up others", Runs{ran("a", passed)}, Set{asks("b", "gone"), asks("c", "flush")}, world{declared: flush}, []string{"a flush Passed", `b ignored: no hook "gone"`, "c flush Running"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.asked.Hooks(tc.remembered, tc.world.facts(), noon)
			if diff := cmp.Diff(tc.want, inWordsOf(got)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRunsAreRemembered shows that the status holds what the next pass needs, and not what has not begun.
func TestRunsAreRemembered(t *testing.T) {
	s := Set{asks("a", "flush"), asks("b", "flush"), asks("c", "other")}
	runs := s.Hooks(nil, world{declared: map[string]bool{"flush": true}}.facts(), noon)
	status, err := compose.AsMap(map[string]any{"signals": s.Status(runs, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(runs[:1], Remembered(map[string]any{"status": status})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := Remembered(map[string]any{"status": map[string]any{"signals": "damaged"}}); got != nil {
		t.Errorf("a damaged status remembers %v", got)
	}
}

// TestRunsAreBounded shows that of Signals which were deleted the oldest runs are forgotten.
func TestRunsAreBounded(t *testing.T) {
	var remembered Runs
	for i := range observev1alpha1.MaxSignals {
		r := started(waiting(asks(fmt.Sprintf("old-%d", i), "flush")), noon)
		r.Hook.Result = v1alpha1.HookResultPassed
		remembered = append(remembered, r)
	}
	kept := asks("old-0", "flush")
	runs := Set{kept, asks("new", "flush")}.Hooks(remembered, world{declared: map[string]bool{"flush": true}}.facts(), noon)
	if len(runs) != observev1alpha1.MaxSignals || runs.of("signal-uid-of-old-0") < 0 || runs.of("signal-uid-of-old-1") >= 0 || runs.of("signal-uid-of-new") < 0 {
		t.Errorf("got %q", inWordsOf(runs))
	}
}

// TestRunsAreTold shows that an event reports the end of a run, once.
func TestRunsAreTold(t *testing.T) {
	f := world{declared: map[string]bool{"flush": true}, seen: map[string]HookSeen{"a": {Object: "job/a", Done: true, Message: "exit code 1"}}}
	s := Set{asks("a", "flush")}
	began := s.Hooks(nil, world{declared: f.declared}.facts(), noon)
	ended := s.Hooks(began, f.facts(), noon)
	want := []compose.Event{{Warning: true, Reason: "HookFailed", Message: `hook "flush" of Signal "a" failed: exit code 1`}}
	for _, tc := range []struct {
		reason      string
		runs, known Runs
		want        []compose.Event
	}{
		{"it has begun", began, nil, nil},
		{"it has ended", ended, began, want},
		{"nothing has changed", ended, ended, nil},
	} {
		if diff := cmp.Diff(tc.want, tc.runs.Events(tc.known)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
		}
	}
	if got := ended.Failure(); got != want[0].Message || began.Failure() != "" {
		t.Errorf("the condition would say %q", got)
	}
	if at := began.Limits(f.facts()); len(at) != 1 || !at[0].Equal(noon.Add(6*time.Minute)) {
		t.Errorf("a run without a result ends at %v", at)
	}
}
