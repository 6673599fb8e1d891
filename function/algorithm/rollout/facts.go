// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/observed"
	"github.com/capstan-dev/capstan/function/signals"
)

// NoService is what the Service of an Algorithm selects while it does not exist.
const NoService = "none"

// ByActivator is what it selects while requests go through the activator: the pods of no slot.
const ByActivator = "activator"

// Facts are everything that decisions about revisions are made by. They do not change within a pass.
type Facts struct {
	Now time.Time

	// Name of the Algorithm, for messages.
	Name string

	// Target is the revision that the spec asks for. It is empty while something that belongs to it is unknown.
	Target string

	// Slots by name, and the ledger that is remembered.
	Slots  map[string]Slot
	Ledger Ledger

	// Lifecycle and Scaling of the spec, or nil, and its Replicas.
	Lifecycle *v1alpha1.Lifecycle
	Scaling   *v1alpha1.Scaling
	Replicas  int32

	// Experiment that shall run, or nil, and Named, the name in spec.experiment. They differ while the one that is named cannot
	// be used, for the reason Unusable, and another one runs.
	Experiment *Experiment
	Named      string
	Unusable   Waiting

	// Requests of a person about the rollout.
	Requests v1alpha1.RolloutRequests

	// Held is the Signal that holds rollouts as spec.rollout.pause does, and Aborted are the revisions that Signals abort.
	Held    signals.Hold
	Aborted []string

	// MaxUnavailable is how many replicas may be missing.
	MaxUnavailable intstr.IntOrString

	// Startup is how long a replica may take to start, without the time for image and model.
	Startup time.Duration

	// Drain is how long a revision stays that no requests reach any more.
	Drain time.Duration

	// HasRoute reports whether the spec has one, ByReplicas whether the number of replicas makes the share of a candidate,
	// because no Gateway does by weight. Route is the observed one, Gateway the one it is for.
	HasRoute, ByReplicas bool
	Route                observed.HTTPRoute
	Gateway              v1alpha1.GatewayReference

	// Selects is the slot whose pods the observed Service selects: empty for both, NoService without one, or ByActivator.
	Selects string

	// LastCandidate is the revision that an earlier pass reported as candidate.
	LastCandidate string

	// Shown is the evidence that the status shows.
	Shown []v1alpha1.EvidenceStatus

	// Evidence about the candidate, Rehearsal of its checks, Observes whether an Analysis exists or can, and Interval between two looks.
	Evidence  Evidence
	Rehearsal Rehearsal
	Observes  bool
	Interval  time.Duration

	// Hooks are the observed runs of hooks and notices, and SendsHooks reports whether the provider can send requests.
	Hooks      HooksSeen
	SendsHooks bool

	// BudgetExhausted is why the error budget blocks rollouts, or empty. MirrorRefused is why no request can be copied as
	// spec.lifecycle.mirrorPercent asks, or empty.
	BudgetExhausted, MirrorRefused string

	// ArmB is the revision of the experiment's arm B, or empty with the reason ArmBUnknown.
	ArmB, ArmBUnknown string
}

// clock to the second, as objects keep it.
func (f Facts) clock() time.Time { return f.Now.UTC().Truncate(time.Second) }

// live and idle slot of a ledger.
func (f Facts) live(l Ledger) Slot { return f.Slots[l.Slot] }
func (f Facts) idle(l Ledger) Slot { return f.Slots[names.Other(l.Slot)] }

// due reports whether a time has passed since something, and if not, when it has.
func (f Facts) due(since time.Time, d time.Duration) (bool, time.Time) {
	if at := since.Add(d); f.Now.Before(at) {
		return false, at
	}
	return true, time.Time{}
}

// routeTaken reports whether the Gateway serves the route as it is now.
func (f Facts) routeTaken() bool {
	return f.ByReplicas || f.Route.Exists && f.Route.Known && f.Route.Current && f.Route.Served && f.Route.Reason == ""
}

// routeReaches reports whether the Gateway knows a slot, so that traffic can shift to it. A route that no controller ever
// reported about serves nothing, and neither does one that the Gateway refuses as it is now; nothing waits for them.
func (f Facts) routeReaches(slot string) bool {
	r := f.Route
	if !f.HasRoute || !r.Exists || !r.Known || r.Current && !r.Served {
		return true
	}
	return f.Slots[slot].Routed.Named && r.Current && r.Reason == ""
}

// drained reports whether nothing sends requests to a slot any more.
func (f Facts) drained(slot string) bool {
	to := f.Slots[slot].Routed
	byRoute := f.Route.Exists && f.Route.Known && (to.Weight != 0 || to.Chosen || !f.Route.Current)
	return f.Selects != slot && f.Selects != "" && !byRoute
}

// finished reports whether the idle slot has had its time, and nothing sends requests there.
func (f Facts) finished(l Ledger) bool {
	return !f.Now.Before(l.Since.Add(f.Drain)) && f.drained(names.Other(l.Slot))
}

// ended reports whether nothing of a revision that finished is left but what this pass removes.
func (f Facts) ended(l Ledger, idle Slot) bool {
	return f.finished(l) && !idle.HoldsRoom() && idle.Noticed
}

// ends reports whether what is in the idle slot still ends: its pods have not gone. What this pass removes has ended.
func (f Facts) ends(l Ledger) bool {
	idle := f.idle(l)
	return idle.Exists && !f.ended(l, idle)
}

// Needed is the number of pods that have to serve. What an autoscaler adds beyond its minimum is not needed.
func (f Facts) Needed() int64 {
	if f.Scaling != nil {
		return int64(f.fewest())
	}
	return int64(f.Replicas)
}

// fewest replicas that an autoscaler keeps. It keeps none where an Algorithm may sleep, which is not its decision.
func (f Facts) fewest() int32 { return max(f.Scaling.MinReplicas, 1) }

// mirrorsFirst reports whether copies of requests reach the candidate before requests do.
func (f Facts) mirrorsFirst(l Ledger) bool {
	return f.Lifecycle.MirrorPercent != nil && l.Experiment == nil
}

// retries reports whether the spec requests another attempt of a failed revision.
func (f Facts) retries(failed *v1alpha1.FailedRevision) bool {
	var n int32
	revision, attempt, _ := strings.Cut(f.Requests.Retry, "#")
	_, err := fmt.Sscan(attempt, &n)
	return err == nil && revision == failed.Revision && n > failed.Attempts
}

// promotes reports whether the spec requests the promotion of a revision.
func (f Facts) promotes(revision string) bool {
	return revision != "" && f.Requests.Promote == revision
}

// aborts reports whether the spec or a Signal requests the end of a candidate.
func (f Facts) aborts(revision string) bool {
	return revision != "" && (f.Requests.Abort == revision || slices.Contains(f.Aborted, revision))
}

// abortedBy says what requests the end of a candidate that is aborted.
func (f Facts) abortedBy(revision string) string {
	if f.Requests.Abort == revision {
		return "spec.rollout.abort names it"
	}
	return "a Signal aborts it"
}

// paused reports whether rollouts are held on request: what holds them, how that ends, and when it does by itself.
func (f Facts) paused() (by, remedy string, end timers, ok bool) {
	switch {
	case f.Requests.Pause:
		return "spec.rollout.pause", "remove pause to continue", timers{}, true
	case f.Held.Holds():
		return f.Held.Signal, f.Held.Remedy(), at(f.Held.Until), true
	default:
		return "", "", timers{}, false
	}
}

// hook of the spec.
func (f Facts) hook(name string, at v1alpha1.HookPoint) (v1alpha1.RolloutHook, bool) {
	i := slices.IndexFunc(f.Lifecycle.Hooks, func(h v1alpha1.RolloutHook) bool { return h.Name == name && h.At == at })
	if i < 0 {
		return v1alpha1.RolloutHook{}, false
	}
	return f.Lifecycle.Hooks[i], true
}

// hooksAt a point, in their order.
func (f Facts) hooksAt(at v1alpha1.HookPoint) []v1alpha1.RolloutHook {
	var hs []v1alpha1.RolloutHook
	for _, h := range f.Lifecycle.Hooks {
		if h.At == at {
			hs = append(hs, h)
		}
	}
	return hs
}

// Waiting is a reason and a message.
type Waiting struct {
	Reason  xpv2.ConditionReason
	Message string
}
