// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// Names of the objects of hooks within the composition.
const (
	nameHooks              = "hooks"
	nameHooksNetworkPolicy = "hooks-networkpolicy"
	nameHookPrefix         = "hook-"
)

// Keys of the ConfigMap that remembers the change that hooks are run for.
const (
	keyHookChange = "change"
	keyHookBegun  = "begun"
	keyHookAfter  = "after"
	keyHookEnded  = "ended"
)

// hooking is what is known of hooks in a pass. What has to be remembered is in a
// ConfigMap that is there from before the first hook until after the last.
type hooking struct {
	// change that hooks are run for, or "" when there is none, and begun when it began,
	// which tells its Jobs from those of the same change at another time.
	change, begun string

	// after tells that members are done, and the hooks after are run.
	after bool

	// ended hooks by id, with how they ended.
	ended map[string]v1alpha1.HookState

	// start is the step whose Job is made in this pass, over that all are done.
	start *hookStep
	over  bool

	// gate of members while hooks before are not done.
	gate gate
}

// A hookStep is one hook of a change.
type hookStep struct {
	v1alpha1.MaintenanceHook

	when  v1alpha1.HookTime
	id    string
	state v1alpha1.HookState
}

// job that runs it.
func (s *state) hookJob(st hookStep) string { return s.called(nameHookPrefix + st.id) }

// holds tells whether the step has failed and nothing goes on.
func (st hookStep) holds() bool {
	return st.state == v1alpha1.HookFailed && st.OnFailure != v1alpha1.HookContinues
}

// done tells whether the next step may follow.
func (st hookStep) done() bool {
	return st.state == v1alpha1.HookSucceeded || st.state == v1alpha1.HookFailed && !st.holds()
}

// rememberHooks of the change that is under way.
func (s *state) rememberHooks() hooking {
	h := hooking{ended: map[string]v1alpha1.HookState{}}

	o := s.Observed[nameHooks]
	if o == nil {
		return h
	}

	data := compose.Map(o.Map(), "data")
	h.change, h.begun, h.after = compose.Text(data, keyHookChange), compose.Text(data, keyHookBegun), compose.Text(data, keyHookAfter) == "true"

	for e := range strings.FieldsSeq(compose.Text(data, keyHookEnded)) {
		if id, state, ok := strings.Cut(e, "="); ok {
			h.ended[id] = v1alpha1.HookState(state)
		}
	}

	return h
}

// hookSteps of the change that is under way, in order. A hook that is edited is
// another one.
func (s *state) hookSteps() []hookStep {
	if s.hooks.change == "" || s.spec.Maintenance == nil || s.spec.Maintenance.Hooks == nil {
		return nil
	}

	var steps []hookStep

	add := func(when v1alpha1.HookTime, hooks []v1alpha1.MaintenanceHook) {
		for _, hook := range hooks {
			of := map[string]any{"change": s.hooks.change, "begun": s.hooks.begun, "when": when, "hook": hook}
			if when == v1alpha1.HookAfter {
				delete(of, "change") // They follow whatever was done last.
			}

			id, err := hash(of)
			if err != nil {
				continue // It is plain data.
			}

			st := hookStep{MaintenanceHook: hook, when: when, id: id}
			st.state = s.hookState(st)
			steps = append(steps, st)
		}
	}

	add(v1alpha1.HookBefore, s.spec.Maintenance.Hooks.Before)
	add(v1alpha1.HookAfter, s.spec.Maintenance.Hooks.After)

	return steps
}

// hookState by what was written down, or what its Job tells. One that failed is run
// again when its Job is deleted.
func (s *state) hookState(st hookStep) v1alpha1.HookState {
	o := s.Observed[nameHookPrefix+st.id]

	switch {
	case s.hooks.ended[st.id] == v1alpha1.HookSucceeded, o != nil && compose.IsTrue(o.Map(), "Complete"):
		return v1alpha1.HookSucceeded
	case o != nil && compose.IsTrue(o.Map(), "Failed"), s.hooks.ended[st.id] == v1alpha1.HookFailed && st.OnFailure == v1alpha1.HookContinues:
		return v1alpha1.HookFailed
	case o != nil:
		return v1alpha1.HookRunning
	default:
		return v1alpha1.HookWaiting
	}
}

// aboutToRun holds members for a pass.
var aboutToRun = gate{reason: v1alpha1.ReasonHookRunning, message: "the hooks of spec.maintenance.hooks are about to be run"}

// hookUp decides what hooks do in this pass, by how members are and what would happen
// to them if there were no hooks. What it returns holds members that serve.
func (s *state) hookUp(sit situation) gate {
	s.hooks = s.rememberHooks()
	if sit.hibernated || slices.ContainsFunc(sit.views, func(v view) bool { return v.stopped }) {
		return gate{} // They go on when members have started.
	}

	next := sit.rolled()
	// With a member that does not serve nobody asks first.
	due := (next.change != "" || next.remove != "" || s.upgradeNext(sit) && s.up(sit)) && !sit.gate.closed() && !sit.repairs(next)

	switch {
	case sit.handing:
		return gate{} // They go on when clients are led over, or it is given up.
	case s.hooks.change == "":
		return s.beginHooks(due)
	case s.hooks.after, len(sit.outdated())+len(sit.surplus()) == 0 && !s.hooksOfUpgrade():
		return s.endHooks(sit, due)
	}

	if due {
		s.hooks.change = s.changeID
	}

	return s.runHooks(v1alpha1.HookBefore, due && s.noted())
}

// beginHooks of a change that is due. It is written down first.
func (s *state) beginHooks(due bool) gate {
	if !due || len(s.allHooks()) == 0 {
		return gate{}
	}

	s.hooks.change, s.hooks.begun = s.changeID, s.Now.UTC().Format(time.RFC3339)

	return aboutToRun
}

// endHooks of a change whose members are done. Once a hook after has begun they are
// all run, whatever else is due.
func (s *state) endHooks(sit situation, due bool) gate {
	may := sit.known && sit.leads
	s.hooks.after = s.hooks.after || may && !slices.ContainsFunc(sit.views, func(v view) bool { return !v.healthy() || !v.expected })

	if !s.hooks.after {
		return gate{}
	}

	g := s.runHooks(v1alpha1.HookAfter, may)
	if s.hooks.over && due && len(s.allHooks()) > 0 {
		return aboutToRun // The next change has hooks of its own.
	}

	return g
}

// noted tells whether it is written down which change hooks are run for.
func (s *state) noted() bool { return s.rememberHooks().change == s.hooks.change }

// runHooks of a time, the next of them if it may be begun. What it returns holds
// members until they are done.
func (s *state) runHooks(when v1alpha1.HookTime, may bool) gate {
	for _, st := range s.hookSteps() {
		switch {
		case st.when != when || st.done():
			continue
		case st.holds():
			s.hooks.gate = gate{reason: v1alpha1.ReasonHookFailed, message: s.hookFailure(st), failed: true}
		default:
			if may && st.state == v1alpha1.HookWaiting {
				s.hooks.start = &st
			}

			s.hooks.gate = gate{reason: v1alpha1.ReasonHookRunning, message: fmt.Sprintf(
				"hook %q of spec.maintenance.hooks.%s runs for at most %s: see kubectl logs -n %s job/%s",
				st.Name, strings.ToLower(string(when)), st.Timeout.Duration, s.namespace, s.hookJob(st))}
		}

		return s.hooks.gate
	}

	s.hooks.over = when == v1alpha1.HookAfter

	return gate{}
}

// hookFailure in words.
func (s *state) hookFailure(st hookStep) string {
	how := "failed"
	if o := s.Observed[nameHookPrefix+st.id]; o != nil &&
		compose.Text(compose.Condition(o.Map(), "Failed"), "reason") == "DeadlineExceeded" {
		how = fmt.Sprintf("did not end within %s", hookDeadline(st.MaintenanceHook))
	}

	return fmt.Sprintf("hook %q of spec.maintenance.hooks.%s %s: read kubectl logs -n %s job/%s; to run it again delete that Job; "+
		"to go on without it correct it, take it out, or set its onFailure to Continue",
		st.Name, strings.ToLower(string(st.when)), how, s.namespace, s.hookJob(st))
}

// hooks around a change: their Jobs, what they may reach, and what is remembered.
func hooks(s *state) error {
	steps := s.hookSteps()
	wanted := map[string]bool{}

	if s.hooks.change == "" || s.hooks.over {
		s.letGo(nameHooks)
		s.letGo(nameHooksNetworkPolicy)
	} else {
		for _, st := range steps {
			if st.done() {
				s.hooks.ended[st.id] = st.state
			}

			wanted[nameHookPrefix+st.id] = true
		}

		s.ask(nameHooks, s.hookMemory())
		s.ask(nameHooksNetworkPolicy, s.hookNetworkPolicy())
	}

	for resource := range s.Observed {
		if !strings.HasPrefix(resource, nameHookPrefix) {
			continue
		}

		if wanted[resource] {
			s.keep(resource) // The template of a Job cannot be changed.
		} else {
			s.letGo(resource)
		}
	}

	if st := s.hooks.start; st != nil {
		s.offer(nameHookPrefix+st.id, s.hookRun(*st))
	}

	return nil
}

// hookMemory is what is remembered.
func (s *state) hookMemory() named {
	ended := make([]string, 0, len(s.hooks.ended))
	for _, id := range slices.Sorted(maps.Keys(s.hooks.ended)) {
		ended = append(ended, id+"="+string(s.hooks.ended[id]))
	}

	return applycorev1.ConfigMap(s.called(nameHooks), s.namespace).
		WithLabels(s.labels()).
		WithData(map[string]string{
			keyHookChange: s.hooks.change, keyHookBegun: s.hooks.begun,
			keyHookAfter: strconv.FormatBool(s.hooks.after), keyHookEnded: strings.Join(ended, " "),
		})
}

// hookStatus of the change that is under way.
func (s *state) hookStatus() []v1alpha1.HookStatus {
	if s.hooks.over {
		return nil
	}

	var all []v1alpha1.HookStatus

	for _, st := range s.hookSteps() {
		h := v1alpha1.HookStatus{Name: st.Name, When: st.when, State: st.state}
		if st.state != v1alpha1.HookWaiting {
			h.Job = s.hookJob(st)
		}

		all = append(all, h)
	}

	return all
}

// hooksAfter tells what holds up the end of a change whose members are done.
func (s *state) hooksAfter() (gate, bool) {
	left := func(st hookStep) bool { return st.when == v1alpha1.HookAfter && !st.done() }

	switch {
	case !slices.ContainsFunc(s.hookSteps(), left):
		return gate{}, false
	case s.hooks.gate.closed():
		return s.hooks.gate, s.hooks.after
	default:
		return gate{reason: v1alpha1.ReasonHookRunning, message: "the hooks of spec.maintenance.hooks.after are run once every member is well"}, true
	}
}
