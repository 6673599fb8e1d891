// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// A HookRun is a hook at a point of an attempt, as the ledger remembers it.
type HookRun struct {
	Name string             `json:"name"`
	At   v1alpha1.HookPoint `json:"at"`

	// Revision, the Attempt that it is about and the Weight that the revision had: together with the name the key of the run.
	Revision string `json:"revision"`
	Attempt  int64  `json:"attempt"`
	Weight   int32  `json:"weight,omitempty"`

	// Slot of the revision.
	Slot string `json:"slot"`

	// Started is when it did, or zero while it waits for another one.
	Started time.Time `json:"started,omitzero"`

	// Seen reports whether its Job existed.
	Seen bool `json:"seen,omitempty"`

	// Result, or empty while it has none, and why it failed.
	Result  v1alpha1.HookResult `json:"result,omitempty"`
	Message string              `json:"message,omitempty"`
}

// Key of a run. It is the same however often the run is begun.
func (r HookRun) Key() string {
	return fmt.Sprintf("%s-%d-%d-%s", r.Revision, r.Attempt, r.Weight, r.Name)
}

// Runs reports whether it has begun and has no result.
func (r HookRun) Runs() bool { return r.Result == "" && !r.Started.IsZero() }

// gates reports whether the rollout waits for it.
func (r HookRun) gates() bool { return !after(r.At) }

// after reports whether hooks of a point follow a decision that nothing changes any more.
func after(at v1alpha1.HookPoint) bool {
	return at == v1alpha1.HookAfterPromotion || at == v1alpha1.HookAfterRollback
}

// of reports whether it is a run of a hook at a weight of the present attempt.
func (r HookRun) of(l Ledger, name string, at v1alpha1.HookPoint, weight int32) bool {
	return r.Name == name && r.At == at && r.Revision == l.Candidate && r.Attempt == l.Attempt && (r.Weight == weight || at != v1alpha1.HookDuringStep)
}

// A HookSeen is what is observed of a run.
type HookSeen struct {
	// Job reports whether its Job exists.
	Job bool

	// Done reports whether there is a result, Passed which, and Message why it did not pass.
	Done, Passed bool
	Message      string
}

// HooksSeen are the observed runs by their keys.
type HooksSeen map[string]HookSeen

// following points of a ledger: what was decided.
func (l Ledger) following() []v1alpha1.HookPoint {
	switch phase := l.Standing(); {
	case l.Candidate == "" || l.Attempt == 0 || l.Experiment != nil:
		return nil
	case phase == v1alpha1.RolloutBaking:
		return []v1alpha1.HookPoint{v1alpha1.HookAfterPromotion}
	case phase == v1alpha1.RolloutRollingBack:
		return []v1alpha1.HookPoint{v1alpha1.HookAfterRollback}
	default:
		return nil
	}
}

// busy reports whether a hook runs.
func (l Ledger) busy() bool { return slices.ContainsFunc(l.Hooks, HookRun.Runs) }

// run of a hook in the present attempt, and whether there is one.
func (l Ledger) run(name string, at v1alpha1.HookPoint, weight int32) (HookRun, bool) {
	i := slices.IndexFunc(l.Hooks, func(r HookRun) bool { return r.of(l, name, at, weight) })
	if i < 0 {
		return HookRun{}, false
	}
	return l.Hooks[i], true
}

// newRun of a hook, which has not begun. The candidate is in the idle slot until it is promoted.
func (l Ledger) newRun(name string, at v1alpha1.HookPoint) HookRun {
	r := HookRun{Name: name, At: at, Revision: l.Candidate, Attempt: l.Attempt, Weight: l.Weight, Slot: names.Other(l.Slot)}
	if l.Previous != "" {
		r.Slot = l.Slot
	}
	return r
}

// ungated ledger: hooks that the rollout waited for, and that have no result, are not waited for any more.
func (l Ledger) ungated() Ledger {
	l.Hooks = slices.DeleteFunc(slices.Clone(l.Hooks), func(r HookRun) bool { return r.gates() && r.Result == "" })
	return l
}

// attempting a candidate again, or another one. Hooks that follow the attempt before still run.
func (l Ledger) attempting() Ledger {
	l.Attempt = 0
	l.Hooks = slices.DeleteFunc(slices.Clone(l.Hooks), func(r HookRun) bool { return r.gates() || r.Result != "" })
	return l
}

// hookStatus of the latest runs.
func (l Ledger) hookStatus() []v1alpha1.RolloutHookStatus {
	if len(l.Hooks) == 0 {
		return nil
	}
	st := make([]v1alpha1.RolloutHookStatus, 0, len(l.Hooks))
	for _, r := range l.Hooks {
		s := v1alpha1.RolloutHookStatus{
			Name: r.Name, At: r.At, Revision: r.Revision, Weight: r.Weight, Result: r.Result, Message: r.Message, Key: r.Key(),
		}
		switch {
		case r.Runs():
			s.Result = v1alpha1.HookResultRunning
		case r.Result == "":
			s.Result = v1alpha1.HookResultWaiting
		}
		st = append(st, s)
	}
	return st
}
