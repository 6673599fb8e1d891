// SPDX-License-Identifier: Apache-2.0

// Package hooks decides which hook of a change is run next, and whether members wait for it. It also knows the hooks that Signals name.
package hooks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/maintenance"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/order"
	"github.com/capstan-dev/capstan/function/database/podinputs"
)

// Keys of the ConfigMap that remembers the change that hooks are run for.
const (
	KeyHookChange = "change"
	KeyHookBegun  = "begun"
	KeyHookAfter  = "after"
	KeyHookEnded  = "ended"
)

// State is what is known of hooks in a pass. What has to be remembered is in a ConfigMap that is there from before the first
// hook until after the last.
type State struct {
	// Change that hooks are run for, or "" when there is none, and Begun is when it began: the same change at another time
	// has other Jobs.
	Change, Begun string

	// After reports that members are done, and the hooks after are run.
	After bool

	// Ended hooks by id, with how they ended.
	Ended map[string]v1alpha1.HookState

	// Start is the step whose Job is made in this pass, over that all are done.
	Start *Step
	Over  bool

	// Gate of members while hooks before are not done.
	Gate maintenance.Gate
}

// A Step is one hook of a change.
type Step struct {
	v1alpha1.MaintenanceHook

	When  v1alpha1.HookTime
	ID    string
	State v1alpha1.HookState
}

// holds reports whether the step has failed and blocks the change.
func (st Step) holds() bool {
	return st.State == v1alpha1.HookFailed && st.OnFailure != v1alpha1.HookContinues
}

// Done reports whether the next step may follow.
func (st Step) Done() bool {
	return st.State == v1alpha1.HookSucceeded || st.State == v1alpha1.HookFailed && !st.holds()
}

// rememberHooks of the change that is under way.
func rememberHooks(s *facts.Cluster) State {
	h := State{Ended: map[string]v1alpha1.HookState{}}
	o := s.Observed[names.Hooks]
	if o == nil {
		return h
	}
	data := compose.Map(o.Map(), "data")
	h.Change, h.Begun, h.After = compose.Text(data, KeyHookChange), compose.Text(data, KeyHookBegun), compose.Text(data, KeyHookAfter) == "true"
	for e := range strings.FieldsSeq(compose.Text(data, KeyHookEnded)) {
		if id, state, ok := strings.Cut(e, "="); ok {
			h.Ended[id] = v1alpha1.HookState(state)
		}
	}
	return h
}

// Steps of the change that is under way, in order. A hook that is edited is another one.
func Steps(s *facts.Cluster, h State) []Step {
	if h.Change == "" || !s.HasChangeHooks() {
		return nil
	}
	var steps []Step
	add := func(when v1alpha1.HookTime, hooks []v1alpha1.MaintenanceHook) {
		for _, hook := range hooks {
			of := map[string]any{"change": h.Change, "begun": h.Begun, "when": when, "hook": hook}
			if when == v1alpha1.HookAfter {
				delete(of, "change") // They follow the change that was done last.
			}
			st := Step{MaintenanceHook: hook, When: when, ID: encoding.Hash(of)}
			st.State = hookState(s, h, st)
			steps = append(steps, st)
		}
	}
	add(v1alpha1.HookBefore, s.Spec.Maintenance.Hooks.Before)
	add(v1alpha1.HookAfter, s.Spec.Maintenance.Hooks.After)
	return steps
}

// hookState by what is remembered, or by its Job. A hook that failed is run again when its Job is deleted.
func hookState(s *facts.Cluster, h State, st Step) v1alpha1.HookState {
	o := s.Observed[names.HookPrefix+st.ID]
	switch {
	case h.Ended[st.ID] == v1alpha1.HookSucceeded, o != nil && compose.IsTrue(o.Map(), "Complete"):
		return v1alpha1.HookSucceeded
	case o != nil && compose.IsTrue(o.Map(), "Failed"), h.Ended[st.ID] == v1alpha1.HookFailed && st.OnFailure == v1alpha1.HookContinues:
		return v1alpha1.HookFailed
	case o != nil:
		return v1alpha1.HookRunning
	default:
		return v1alpha1.HookWaiting
	}
}

// aboutToRun holds members for a pass.
var aboutToRun = maintenance.Gate{Reason: v1alpha1.ReasonHookRunning, Message: "the hooks of spec.maintenance.hooks are about to run"}

// Decide is what hooks do in this pass, by how members are and what would happen to them if there were no hooks, and the
// gate that holds members that serve.
func Decide(s *facts.Cluster, sit order.Situation, target, change string) (State, maintenance.Gate) {
	h := rememberHooks(s)
	if sit.Hibernated || slices.ContainsFunc(sit.Views, func(v order.View) bool { return v.Stopped }) {
		return h, maintenance.Gate{} // They continue when members have started.
	}
	next := sit.Rolled()
	// A member that does not serve is repaired without hooks.
	due := (next.Change != "" || next.Remove != "" || order.UpgradeNext(s, sit) && order.AllHealthy(s, sit)) && !sit.Gate.Closed() && !sit.Repairs(next)
	switch {
	case sit.Handing:
		return h, maintenance.Gate{} // They continue when clients are switched, or the upgrade is aborted.
	case h.Change == "" && due && s.HasChangeHooks():
		// It is remembered before the first hook runs.
		h.Change, h.Begun = change, s.Now.UTC().Format(time.RFC3339)
		return h, aboutToRun
	case h.Change == "":
		return h, maintenance.Gate{}
	case h.After, len(sit.Outdated())+len(sit.Surplus()) == 0 && h.Change != podinputs.UpgradeHash(s, target):
		return endHooks(s, h, sit, due)
	}
	isNoted := h.Change == change
	if due {
		h.Change = change
	}
	return runHooks(s, h, v1alpha1.HookBefore, due && isNoted)
}

// endHooks of a change whose members are done. Once the first hook after has begun, all of them are run, even if
// another change is due.
func endHooks(s *facts.Cluster, h State, sit order.Situation, due bool) (State, maintenance.Gate) {
	may := sit.Known && sit.HasLeader
	h.After = h.After || may && !slices.ContainsFunc(sit.Views, func(v order.View) bool { return !v.Healthy() || !v.Expected })
	if !h.After {
		return h, maintenance.Gate{}
	}
	h, g := runHooks(s, h, v1alpha1.HookAfter, may)
	if h.Over && due && s.HasChangeHooks() {
		return h, aboutToRun // The next change has hooks of its own.
	}
	return h, g
}

// runHooks of a time, the next of them if it may be begun. The gate holds members until they are done.
func runHooks(s *facts.Cluster, h State, when v1alpha1.HookTime, may bool) (State, maintenance.Gate) {
	for _, st := range Steps(s, h) {
		switch {
		case st.When != when || st.Done():
			continue
		case st.holds():
			h.Gate = maintenance.Gate{Reason: v1alpha1.ReasonHookFailed, Message: hookFailure(s, st), Failed: true}
		default:
			if may && st.State == v1alpha1.HookWaiting {
				h.Start = &st
			}
			h.Gate = maintenance.Gate{Reason: v1alpha1.ReasonHookRunning, Message: fmt.Sprintf(
				"hook %q of spec.maintenance.hooks.%s runs for at most %s: see kubectl logs -n %s job/%s",
				st.Name, strings.ToLower(string(when)), st.Timeout.Duration, s.Namespace, s.HookJob(st.ID))}
		}
		return h, h.Gate
	}
	h.Over = when == v1alpha1.HookAfter
	return h, maintenance.Gate{}
}

func hookFailure(s *facts.Cluster, st Step) string {
	how := "failed"
	if o := s.Observed[names.HookPrefix+st.ID]; o != nil && isLate(o) {
		how = fmt.Sprintf("did not end within %s", Deadline(st.DatabaseHook))
	}
	return fmt.Sprintf("hook %q of spec.maintenance.hooks.%s %s: run kubectl logs -n %s job/%s for the cause; to run it again, delete that Job; "+
		"to continue without it, correct it, remove it, or set its onFailure to Continue",
		st.Name, strings.ToLower(string(st.When)), how, s.Namespace, s.HookJob(st.ID))
}

// isLate reports whether a Job failed because its time was over.
func isLate(job compose.Object) bool {
	return compose.Text(compose.Condition(job.Map(), "Failed"), "reason") == "DeadlineExceeded"
}

// grace is how long a pod may take to be scheduled and to pull its image, in addition to the timeout of the hook.
const grace = 5 * time.Minute

// Deadline of the Job of a hook.
func Deadline(h v1alpha1.DatabaseHook) time.Duration { return h.Timeout.Duration + grace }
