// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// hookGrace is how long after its timeout a hook may stay without a result. Then it has failed: what should report it does not.
const hookGrace = time.Minute

// hooked ledger: with the results of hooks that are known now, and with the hooks that follow what was decided. One hook runs at a
// time.
func (l Ledger) hooked(f Facts) Ledger {
	runs := make([]HookRun, 0, len(l.Hooks))
	for _, r := range l.Hooks {
		if h, asked := f.hook(r.Name, r.At); asked {
			runs = append(runs, r.seen(f, h))
		}
	}
	l.Hooks = runs
	if l.Testing() && l.Attempt == 0 && len(f.Lifecycle.Hooks) > 0 {
		l.Attempt = l.Epoch
	}
	for _, at := range l.following() {
		for _, h := range f.hooksAt(at) {
			if _, known := l.run(h.Name, at, l.Weight); !known {
				// One that still waits for an earlier attempt is replaced.
				l.Hooks = slices.DeleteFunc(l.Hooks, func(r HookRun) bool { return r.Name == h.Name && r.Result == "" && r.Started.IsZero() })
				l.Hooks = append(l.Hooks, l.newRun(h.Name, at))
			}
		}
	}
	next := slices.IndexFunc(l.Hooks, func(r HookRun) bool { return r.Result == "" })
	if next >= 0 && !l.busy() {
		l.Hooks[next].Started = f.clock()
	}
	if len(l.Hooks) == 0 {
		l.Hooks = nil
	}
	return l.noticed(f)
}

// seen run: with its result, if there is one.
func (r HookRun) seen(f Facts, h v1alpha1.RolloutHook) HookRun {
	if !r.Runs() {
		return r
	}
	s := f.Hooks[r.Key()]
	over, _ := f.due(r.Started, h.Timeout.Duration+hookGrace)
	gone := r.Seen && !s.Job
	r.Seen = r.Seen || s.Job
	switch {
	case s.Done && s.Passed:
		r.Result = v1alpha1.HookResultPassed
	case s.Done:
		r.Result, r.Message = v1alpha1.HookResultFailed, s.Message
	case gone:
		r.Result, r.Message = v1alpha1.HookResultFailed, "its Job was deleted before it ended"
	case over && h.Job != nil && !r.Seen:
		r.Result, r.Message = v1alpha1.HookResultFailed, "its Job could not be created until the timeout: see the condition Composed"
	case over && h.Job != nil:
		r.Result, r.Message = v1alpha1.HookResultFailed, "its Job did not end until the timeout"
	case over && !f.SendsHooks:
		r.Result, r.Message = v1alpha1.HookResultFailed, ProviderMissing
	case over:
		r.Result, r.Message = v1alpha1.HookResultFailed, "the provider reported no result until the timeout: see the conditions of the Hook"
	}
	r.Message = clipped(r.Message)
	return r
}

// hookWake is when the running hook has failed without a result.
func (f Facts) hookWake(l Ledger) timers {
	var t timers
	for _, r := range l.Hooks {
		if h, asked := f.hook(r.Name, r.At); asked && r.Runs() {
			t = t.with(at(r.Started.Add(h.Timeout.Duration + hookGrace)))
		}
	}
	return t
}

// hooksAtPoint are what the hooks of a point ask of a rollout: that it waits, rolls back or holds. Otherwise they have passed.
func hooksAtPoint(f Facts, l Ledger, point v1alpha1.HookPoint) (transition, bool) {
	if l.Experiment != nil || f.promotes(l.Candidate) {
		return transition{}, false
	}
	for _, h := range f.hooksAt(point) {
		r, known := l.run(h.Name, point, l.Weight)
		switch {
		case !known && l.busy():
			return stay(fmt.Sprintf("hook %q of spec.lifecycle.hooks runs once the one before it has ended", h.Name)), true
		case !known:
			name := h.Name
			return transition{
				message: fmt.Sprintf("hook %q of spec.lifecycle.hooks starts", name),
				timers:  at(f.clock().Add(h.Timeout.Duration + hookGrace)),
				change: func(l Ledger) Ledger {
					r := l.newRun(name, point)
					r.Started = f.clock()
					l.Hooks = append(slices.DeleteFunc(slices.Clone(l.Hooks), func(o HookRun) bool { return o.Name == name && o.gates() }), r)
					return l
				},
			}, true
		case r.Result == "":
			return stay(fmt.Sprintf("hook %q of spec.lifecycle.hooks runs until %s at most", h.Name,
				r.Started.Add(h.Timeout.Duration).UTC().Format(time.RFC3339))), true
		case r.Result == v1alpha1.HookResultPassed || h.OnFailure == v1alpha1.HookFailureContinue:
			continue
		case h.OnFailure == v1alpha1.HookFailureHold && !l.Stopped: // otherwise clients would be refused until a person decides
			return hold(l, l.Standing(), v1alpha1.ReasonHookFailed, fmt.Sprintf(
				"hook %q of spec.lifecycle.hooks failed: %s: name revision %s in spec.rollout.promote or abort, or change or remove the hook",
				h.Name, r.Message, l.Candidate)), true
		default:
			return fail(f, l, v1alpha1.ReasonHookFailed, fmt.Sprintf("hook %q of spec.lifecycle.hooks failed: %s", h.Name, r.Message)), true
		}
	}
	return transition{}, false
}

// hooksBeforeTraffic pass before any request reaches the candidate, or a copy of one.
func hooksBeforeTraffic(f Facts, l Ledger) (transition, bool) {
	if t, waits := hooksAtPoint(f, l, v1alpha1.HookBeforeTraffic); waits {
		return t, true
	}
	if first := f.first(l); first.weight == 100 && !first.copied {
		return hooksAtPoint(f, l, v1alpha1.HookBeforePromotion)
	}
	return transition{}, false
}

// hooksDuringStep begin with the share. While one runs, evidence counts; the next share waits for it.
func hooksDuringStep(f Facts, l Ledger) (transition, bool) {
	t, waits := hooksAtPoint(f, l, v1alpha1.HookDuringStep)
	runs := t.to == "" && t.change == nil && !l.holdsFor(v1alpha1.ReasonHookFailed)
	return t, waits && !runs
}

// hooksBefore the next share of requests.
func hooksBefore(f Facts, l Ledger, next int32) (transition, bool) {
	if l.Standing() == v1alpha1.RolloutStepping {
		if t, waits := hooksAtPoint(f, l, v1alpha1.HookDuringStep); waits {
			return t, true
		}
	}
	if next == 100 {
		return hooksAtPoint(f, l, v1alpha1.HookBeforePromotion)
	}
	return transition{}, false
}

// hooksAgain resumes what a hook held that does not hold it any more.
func hooksAgain(f Facts, l Ledger) (transition, bool) {
	holds := slices.ContainsFunc(l.Hooks, func(r HookRun) bool {
		h, _ := f.hook(r.Name, r.At)
		return r.gates() && r.Result == v1alpha1.HookResultFailed && h.OnFailure != v1alpha1.HookFailureContinue && r.of(l, r.Name, r.At, l.Weight)
	})
	return resume(l), l.holdsFor(v1alpha1.ReasonHookFailed) && !holds
}
