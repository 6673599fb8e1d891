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
	"github.com/capstan-dev/capstan/function/database/encoding"
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

// hooking is what is known of hooks in a pass. What has to be remembered is in a ConfigMap that is there from before the first
// hook until after the last.
type hooking struct {
	// change that hooks are run for, or "" when there is none, and begun when it began, which tells its Jobs from those of the
	// same change at another time.
	change, begun string

	// after reports that members are done, and the hooks after are run.
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

// hookJob of an id runs that hook.
func (s *names) hookJob(id string) string { return s.called(nameHookPrefix + id) }

// holds reports whether the step has failed and nothing goes on.
func (st hookStep) holds() bool {
	return st.state == v1alpha1.HookFailed && st.OnFailure != v1alpha1.HookContinues
}

// done reports whether the next step may follow.
func (st hookStep) done() bool {
	return st.state == v1alpha1.HookSucceeded || st.state == v1alpha1.HookFailed && !st.holds()
}

// rememberHooks of the change that is under way.
func (s *cluster) rememberHooks() hooking {
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

// hookSteps of the change that is under way, in order. A hook that is edited is another one.
func (s *cluster) hookSteps(h hooking) []hookStep {
	if h.change == "" || s.spec.Maintenance == nil || s.spec.Maintenance.Hooks == nil {
		return nil
	}
	var steps []hookStep
	add := func(when v1alpha1.HookTime, hooks []v1alpha1.MaintenanceHook) {
		for _, hook := range hooks {
			of := map[string]any{"change": h.change, "begun": h.begun, "when": when, "hook": hook}
			if when == v1alpha1.HookAfter {
				delete(of, "change") // They follow whatever was done last.
			}
			st := hookStep{MaintenanceHook: hook, when: when, id: encoding.Hash(of)}
			st.state = s.hookState(h, st)
			steps = append(steps, st)
		}
	}
	add(v1alpha1.HookBefore, s.spec.Maintenance.Hooks.Before)
	add(v1alpha1.HookAfter, s.spec.Maintenance.Hooks.After)
	return steps
}

// hookState by what was written down, or what its Job tells. One that failed is run again when its Job is deleted.
func (s *cluster) hookState(h hooking, st hookStep) v1alpha1.HookState {
	o := s.Observed[nameHookPrefix+st.id]
	switch {
	case h.ended[st.id] == v1alpha1.HookSucceeded, o != nil && compose.IsTrue(o.Map(), "Complete"):
		return v1alpha1.HookSucceeded
	case o != nil && compose.IsTrue(o.Map(), "Failed"), h.ended[st.id] == v1alpha1.HookFailed && st.OnFailure == v1alpha1.HookContinues:
		return v1alpha1.HookFailed
	case o != nil:
		return v1alpha1.HookRunning
	default:
		return v1alpha1.HookWaiting
	}
}

// aboutToRun holds members for a pass.
var aboutToRun = gate{reason: v1alpha1.ReasonHookRunning, message: "the hooks of spec.maintenance.hooks are about to be run"}

// decideHooks is what hooks do in this pass, by how members are and what would happen to them if there were no hooks, and the
// gate that holds members that serve.
func (s *cluster) decideHooks(sit situation, target, change string) (hooking, gate) {
	h := s.rememberHooks()
	if sit.hibernated || slices.ContainsFunc(sit.views, func(v view) bool { return v.stopped }) {
		return h, gate{} // They go on when members have started.
	}
	next := sit.rolled()
	// With a member that does not serve nobody asks first.
	due := (next.change != "" || next.remove != "" || s.upgradeNext(sit) && s.up(sit)) && !sit.gate.closed() && !sit.repairs(next)
	switch {
	case sit.handing:
		return h, gate{} // They go on when clients are switched, or it is given up.
	case h.change == "" && due && len(s.allHooks()) > 0:
		// It is written down first.
		h.change, h.begun = change, s.Now.UTC().Format(time.RFC3339)
		return h, aboutToRun
	case h.change == "":
		return h, gate{}
	case h.after, len(sit.outdated())+len(sit.surplus()) == 0 && h.change != s.upgradeHash(target):
		return s.endHooks(h, sit, due)
	}
	isNoted := h.change == change
	if due {
		h.change = change
	}
	return s.runHooks(h, v1alpha1.HookBefore, due && isNoted)
}

// endHooks of a change whose members are done. Once a hook after has begun they are all run, whatever else is due.
func (s *cluster) endHooks(h hooking, sit situation, due bool) (hooking, gate) {
	may := sit.known && sit.leads
	h.after = h.after || may && !slices.ContainsFunc(sit.views, func(v view) bool { return !v.healthy() || !v.expected })
	if !h.after {
		return h, gate{}
	}
	h, g := s.runHooks(h, v1alpha1.HookAfter, may)
	if h.over && due && len(s.allHooks()) > 0 {
		return h, aboutToRun // The next change has hooks of its own.
	}
	return h, g
}

// runHooks of a time, the next of them if it may be begun. The gate holds members until they are done.
func (s *cluster) runHooks(h hooking, when v1alpha1.HookTime, may bool) (hooking, gate) {
	for _, st := range s.hookSteps(h) {
		switch {
		case st.when != when || st.done():
			continue
		case st.holds():
			h.gate = gate{reason: v1alpha1.ReasonHookFailed, message: s.hookFailure(st), failed: true}
		default:
			if may && st.state == v1alpha1.HookWaiting {
				h.start = &st
			}
			h.gate = gate{reason: v1alpha1.ReasonHookRunning, message: fmt.Sprintf(
				"hook %q of spec.maintenance.hooks.%s runs for at most %s: see kubectl logs -n %s job/%s",
				st.Name, strings.ToLower(string(when)), st.Timeout.Duration, s.namespace, s.hookJob(st.id))}
		}
		return h, h.gate
	}
	h.over = when == v1alpha1.HookAfter
	return h, gate{}
}

// hookFailure in words.
func (s *cluster) hookFailure(st hookStep) string {
	how := "failed"
	if o := s.Observed[nameHookPrefix+st.id]; o != nil &&
		compose.Text(compose.Condition(o.Map(), "Failed"), "reason") == "DeadlineExceeded" {
		how = fmt.Sprintf("did not end within %s", hookDeadline(st.MaintenanceHook))
	}
	return fmt.Sprintf("hook %q of spec.maintenance.hooks.%s %s: read kubectl logs -n %s job/%s; to run it again delete that Job; "+
		"to go on without it correct it, take it out, or set its onFailure to Continue",
		st.Name, strings.ToLower(string(st.when)), how, s.namespace, s.hookJob(st.id))
}

// hooks around a change: their Jobs, what they may reach, and what is remembered.
func hooks(d *compose.Draft, s *decision) {
	steps := s.hookSteps(s.hooks)
	wanted, ended := map[string]bool{}, maps.Clone(s.hooks.ended)
	if s.hooks.change == "" || s.hooks.over {
		d.Remove(nameHooks)
		d.Remove(nameHooksNetworkPolicy)
	} else {
		for _, st := range steps {
			if st.done() {
				ended[st.id] = st.state
			}
			wanted[nameHookPrefix+st.id] = true
		}
		d.Require(nameHooks, s.hookMemory(ended))
		d.Require(nameHooksNetworkPolicy, s.hookNetworkPolicy())
	}
	for resource := range s.Observed {
		if !strings.HasPrefix(resource, nameHookPrefix) {
			continue
		}
		if wanted[resource] {
			d.Keep(resource) // The template of a Job cannot be changed.
		} else {
			d.Remove(resource)
		}
	}
	if st := s.hooks.start; st != nil {
		d.Offer(nameHookPrefix+st.id, s.hookRun(*st))
	}
}

// hookMemory is what is remembered.
func (s *decision) hookMemory(ended map[string]v1alpha1.HookState) compose.Named {
	texts := make([]string, 0, len(ended))
	for _, id := range compose.SortedKeys(ended) {
		texts = append(texts, id+"="+string(ended[id]))
	}
	return applycorev1.ConfigMap(s.called(nameHooks), s.namespace).
		WithLabels(s.labels()).
		WithData(map[string]string{
			keyHookChange: s.hooks.change, keyHookBegun: s.hooks.begun,
			keyHookAfter: strconv.FormatBool(s.hooks.after), keyHookEnded: strings.Join(texts, " "),
		})
}

// hookStatus of the change that is under way.
func (s *decision) hookStatus() []v1alpha1.HookStatus {
	if s.hooks.over {
		return nil
	}
	var all []v1alpha1.HookStatus
	for _, st := range s.hookSteps(s.hooks) {
		h := v1alpha1.HookStatus{Name: st.Name, When: st.when, State: st.state}
		if st.state != v1alpha1.HookWaiting {
			h.Job = s.hookJob(st.id)
		}
		all = append(all, h)
	}
	return all
}

// hooksAfter tells what holds up the end of a change whose members are done.
func (s *decision) hooksAfter() (gate, bool) {
	left := func(st hookStep) bool { return st.when == v1alpha1.HookAfter && !st.done() }
	switch {
	case !slices.ContainsFunc(s.hookSteps(s.hooks), left):
		return gate{}, false
	case s.hooks.gate.closed():
		return s.hooks.gate, s.hooks.after
	default:
		return gate{reason: v1alpha1.ReasonHookRunning, message: "the hooks of spec.maintenance.hooks.after are run once every member is well"}, true
	}
}
