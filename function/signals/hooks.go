// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// grace is how long after its limit a hook may stay without a result. Then it has failed: what should report it does not.
const grace = time.Minute

// Runs of hooks, each with the Signal that asks for it. The status of the object holds them until the time of the Signal is over. So one
// that has begun does not begin a second time while its Signal is not reported, or when what runs it was deleted; and what runs it shows
// that it has begun when the status was lost.
type Runs []v1alpha1.SignalStatus

// Remembered runs of an object: those that have begun.
func Remembered(xr map[string]any) Runs {
	var st struct {
		Signals Runs `json:"signals"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(compose.Map(xr, "status"), &st); err != nil {
		return nil
	}
	return slices.DeleteFunc(st.Signals, func(r v1alpha1.SignalStatus) bool { return !begun(r) })
}

func begun(r v1alpha1.SignalStatus) bool { return r.Hook != nil && r.Hook.StartedAt != nil }

// HookFacts are what an object knows of hooks that Signals name.
type HookFacts struct {
	// Limit is how long a hook may run, or else Missing says that the spec does not declare it for Signals.
	Limit func(hook string) (limit time.Duration, missing string)

	// Ready reports whether a hook can begin now.
	Ready func(hook string) bool

	// Seen is what is observed of a run.
	Seen func(run v1alpha1.SignalHookStatus) HookSeen
}

// A HookSeen is what is observed of a run.
type HookSeen struct {
	// Object that runs it, or empty.
	Object string

	// Done reports whether there is a result, Passed which, and Message why it did not pass.
	Done, Passed bool
	Message      string
}

// Hooks of the set: the remembered runs with what is observed of them, those that wait, and the one that begins now. One runs at a time.
func (s Set) Hooks(remembered Runs, f HookFacts, now time.Time) Runs {
	var runs Runs
	for _, r := range remembered {
		if now.Before(r.Until.Time) || r.Hook.Result == v1alpha1.HookResultRunning {
			runs = append(runs, f.seen(r, now))
		}
	}
	for _, a := range s {
		if a.Do != string(eventsv1alpha1.ActHook) {
			continue
		}
		r := waiting(a)
		if i := runs.of(r.Hook.Key); i >= 0 {
			runs[i].Until = r.Until
			continue
		}
		if _, missing := f.Limit(a.Hook); missing != "" {
			r.Hook, r.Ignored = nil, missing
		} else if f.Seen(*r.Hook).Object != "" {
			r = f.seen(started(r, now), now)
		}
		runs = append(runs, r)
	}
	if next := runs.next(f); next >= 0 {
		runs[next] = started(runs[next], now)
	}
	return runs.within(s)
}

// waiting run of a Signal.
func waiting(a observev1alpha1.ActiveSignal) v1alpha1.SignalStatus {
	return v1alpha1.SignalStatus{
		Name: a.Name, Do: a.Do, Until: a.Until, Cause: a.Cause,
		Hook: &v1alpha1.SignalHookStatus{Name: a.Hook, Key: "signal-" + a.UID, Result: v1alpha1.HookResultWaiting},
	}
}

func started(r v1alpha1.SignalStatus, now time.Time) v1alpha1.SignalStatus {
	h := *r.Hook
	h.Result, h.StartedAt = v1alpha1.HookResultRunning, &metav1.Time{Time: now.UTC().Truncate(time.Second)}
	r.Hook = &h
	return r
}

// seen run: with its result, if there is one.
func (f HookFacts) seen(r v1alpha1.SignalStatus, now time.Time) v1alpha1.SignalStatus {
	if r.Hook.Result != v1alpha1.HookResultRunning {
		return r
	}
	h, o := *r.Hook, f.Seen(*r.Hook)
	limit, missing := f.Limit(h.Name)
	fail := func(message string) { h.Result, h.Message = v1alpha1.HookResultFailed, message }
	switch {
	case o.Done && o.Passed:
		h.Result = v1alpha1.HookResultPassed
	case o.Done:
		fail(o.Message)
	case missing != "":
		fail(missing)
	case h.Object != "" && o.Object == "":
		fail(h.Object + " was deleted before it ended")
	case now.Sub(h.StartedAt.Time) >= limit+grace && o.Object == "":
		fail("it could not be created in its time: see the condition Composed")
	case now.Sub(h.StartedAt.Time) >= limit+grace:
		fail(o.Object + " has no result, and its time is over: see its conditions")
	}
	if o.Object != "" {
		h.Object = o.Object
	}
	r.Hook = &h
	return r
}

// of a key, or -1.
func (runs Runs) of(key string) int {
	return slices.IndexFunc(runs, func(r v1alpha1.SignalStatus) bool { return r.Hook != nil && r.Hook.Key == key })
}

// next run that begins, or -1.
func (runs Runs) next(f HookFacts) int {
	if slices.ContainsFunc(runs, running) {
		return -1
	}
	return slices.IndexFunc(runs, func(r v1alpha1.SignalStatus) bool {
		return r.Hook != nil && r.Hook.Result == v1alpha1.HookResultWaiting && f.Ready(r.Hook.Name)
	})
}

func running(r v1alpha1.SignalStatus) bool {
	return r.Hook != nil && r.Hook.Result == v1alpha1.HookResultRunning
}

// within bounds: of Signals that were deleted, the runs that ended first are forgotten, so that all can be held.
func (runs Runs) within(s Set) Runs {
	for len(runs) > observev1alpha1.MaxSignals {
		i := slices.IndexFunc(runs, func(r v1alpha1.SignalStatus) bool { return begun(r) && !running(r) && !s.reports(r) })
		if i < 0 {
			break
		}
		runs = slices.Delete(runs, i, i+1)
	}
	return runs
}

func (s Set) reports(r v1alpha1.SignalStatus) bool {
	return slices.ContainsFunc(s, func(a observev1alpha1.ActiveSignal) bool { return waiting(a).Hook.Key == r.Hook.Key })
}

// Begun runs of a hook.
func (runs Runs) Begun(hook string) Runs {
	return slices.DeleteFunc(slices.Clone(runs), func(r v1alpha1.SignalStatus) bool { return !begun(r) || r.Hook.Name != hook })
}

// Failure of the run that failed last, or empty.
func (runs Runs) Failure() string {
	var last v1alpha1.SignalStatus
	for _, r := range runs {
		if begun(r) && r.Hook.Result == v1alpha1.HookResultFailed && (last.Hook == nil || last.Hook.StartedAt.Before(r.Hook.StartedAt)) {
			last = r
		}
	}
	if last.Hook == nil {
		return ""
	}
	return failure(last)
}

// Limits are when running hooks have failed without a result.
func (runs Runs) Limits(f HookFacts) []time.Time {
	var at []time.Time
	for _, r := range runs {
		if running(r) {
			limit, _ := f.Limit(r.Hook.Name)
			at = append(at, r.Hook.StartedAt.Add(limit+grace))
		}
	}
	return at
}

// Ended reports whether a run with this key has a result.
func (runs Runs) Ended(key string) bool {
	i := runs.of(key)
	return i >= 0 && begun(runs[i]) && !running(runs[i])
}

// Events of runs that ended since they were remembered.
func (runs Runs) Events(remembered Runs) []compose.Event {
	var events []compose.Event
	for _, r := range runs {
		if !begun(r) || running(r) || remembered.Ended(r.Hook.Key) {
			continue
		}
		e := compose.Event{Reason: "HookPassed", Message: fmt.Sprintf("hook %q of Signal %q passed", r.Hook.Name, r.Name)}
		if r.Hook.Result == v1alpha1.HookResultFailed {
			e = compose.Event{Warning: true, Reason: string(v1alpha1.ReasonHookFailed), Message: failure(r)}
		}
		events = append(events, e)
	}
	return events
}

// failure of a run, in words.
func failure(r v1alpha1.SignalStatus) string {
	return fmt.Sprintf("hook %q of Signal %q failed: %s", r.Hook.Name, r.Name, r.Hook.Message)
}
