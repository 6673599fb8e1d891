// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/algorithm/sleep"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/observed"
	"github.com/capstan-dev/capstan/function/signals"
)

// observedSleep is what the Service remembers, and the slot that it selects.
func observedSleep(service compose.Object) (m sleep.Mark, selects string) {
	if service == nil {
		return sleep.Mark{}, rollout.NoService
	}
	if compose.TextOf(service, "spec", "selector", names.LabelActivator) != "" {
		selects = rollout.ByActivator
	} else {
		selects = compose.TextOf(service, "spec", "selector", names.LabelSlot)
	}
	return sleep.Parse(compose.TextOf(service, "metadata", "annotations", names.AnnotationSleep)), selects
}

// scaler of a slot, as observed.
func (f *facts) scaler(slot string) observed.Autoscaler {
	return observed.NewAutoscaler(f.Observed[names.Autoscaler(slot)], f.Observed[names.ComposedAutoscaler(slot)])
}

// A routeKind is a kind of route, with its name within the composition: an object of another kind is another object.
type routeKind struct {
	gvk      schema.GroupVersionKind
	resource string
}

// routeKind for the protocol of the spec.
func (f *facts) routeKind() routeKind {
	if f.spec.Protocol == v1alpha1.ProtocolGRPC {
		return routeKind{GRPCRouteGVK, names.GRPCRoute}
	}
	return routeKind{RouteGVK, names.Route}
}

// observedRoute is the route for the protocol that the spec is written with, or else the other one: both exist while one replaces
// the other, and an invalid spec keeps the one that exists.
func (f *facts) observedRoute() compose.Object {
	resources := []string{names.Route, names.GRPCRoute}
	if compose.Text(f.Composite.Map(), "spec", "protocol") == string(v1alpha1.ProtocolGRPC) {
		slices.Reverse(resources)
	}
	if o := f.Observed[resources[0]]; o != nil {
		return o
	}
	return f.Observed[resources[1]]
}

// sendsHooks reports whether the provider can send requests.
func (f *facts) sendsHooks() bool {
	return slices.ContainsFunc(f.spec.Lifecycle.Hooks, func(h v1alpha1.RolloutHook) bool {
		return f.available(observev1alpha1.HookGroupVersionKind, names.HookPrefix+h.Name)
	})
}

// hooksSeen are the runs and notices of a ledger, as observed.
func (f *facts) hooksSeen(l rollout.Ledger) rollout.HooksSeen {
	seen := rollout.HooksSeen{}
	for _, h := range f.spec.Lifecycle.Hooks {
		results := hookResults(f.Observed[names.HookPrefix+h.Name])
		for _, n := range l.Notices {
			if s, done := results[n.Key()]; done && h.At == v1alpha1.HookTransition {
				seen[rollout.NoticeKey(h.Name, n)] = s
			}
		}
		for _, r := range l.Hooks {
			if r.Name != h.Name || r.At != h.At {
				continue
			}
			if s, done := results[r.Key()]; done && h.Job == nil {
				seen[r.Key()] = s
			}
			if o := f.Observed[jobOf(r.Key())]; o != nil && h.Job != nil {
				seen[r.Key()] = f.jobSeen(r.Name, r.Key(), o.Map())
			}
		}
	}
	return seen
}

// hookResults that the provider reports, by the keys of the requests.
func hookResults(o compose.Object) rollout.HooksSeen {
	seen := rollout.HooksSeen{}
	st, _ := observed.Status[observev1alpha1.HookObservation](o)
	for _, r := range st.Results {
		seen[r.Key] = rollout.HookSeen{Done: true, Passed: r.Result == observev1alpha1.HookPassed, Message: r.Message}
	}
	return seen
}

// jobSeen is how far the Job of a hook's run is. One that is being deleted does not end any more.
func (f *facts) jobSeen(hook, key string, job map[string]any) rollout.HookSeen {
	s := rollout.HookSeen{Job: compose.Text(job, "metadata", "deletionTimestamp") == ""}
	switch {
	case compose.IsTrue(job, xpv2.ConditionType(batchv1.JobComplete)):
		s.Done, s.Passed = true, true
	case compose.IsTrue(job, xpv2.ConditionType(batchv1.JobFailed)):
		how := "failed"
		if compose.Text(compose.Condition(job, string(batchv1.JobFailed)), "reason") == batchv1.JobReasonDeadlineExceeded {
			how = "did not end until the timeout"
		}
		s.Done, s.Message = true, fmt.Sprintf("its Job %s: see kubectl logs -n %s job/%s", how, f.Namespace, f.hookJobName(hook, key))
	}
	return s
}

// jobOf a run within the composition.
func jobOf(key string) string { return names.HookJobPrefix + hashOf(key) }

func (f *facts) hookJobName(hook, key string) string {
	return compose.Name(f.Name, "hook", hook, hashOf(f.Name, key))
}

// hookFacts is what is known of the hooks that Signals may name.
func (f *facts) hookFacts() signals.HookFacts {
	return signals.HookFacts{
		Limit: func(hook string) (time.Duration, string) {
			h, declared := f.signalHook(hook)
			if !declared {
				return 0, fmt.Sprintf("spec.lifecycle.hooks has no hook %q with at: Signal: declare it, or name another one", hook)
			}
			return h.Timeout.Duration, ""
		},
		Ready: func(string) bool { return true },
		Seen: func(run v1alpha1.SignalHookStatus) signals.HookSeen {
			h, declared := f.signalHook(run.Name)
			switch {
			case !declared:
				return signals.HookSeen{}
			case h.Job != nil:
				return f.signalJobSeen(run)
			default:
				return f.signalRequestSeen(run)
			}
		},
	}
}

// signalHook of the spec.
func (f *facts) signalHook(name string) (v1alpha1.RolloutHook, bool) {
	if f.spec.Lifecycle == nil {
		return v1alpha1.RolloutHook{}, false
	}
	for _, h := range f.spec.Lifecycle.Hooks {
		if h.Name == name && h.At == v1alpha1.HookSignal {
			return h, true
		}
	}
	return v1alpha1.RolloutHook{}, false
}

func (f *facts) signalJobSeen(run v1alpha1.SignalHookStatus) signals.HookSeen {
	o := f.Observed[jobOf(run.Key)]
	if o == nil {
		return signals.HookSeen{}
	}
	s := f.jobSeen(run.Name, run.Key, o.Map())
	seen := signals.HookSeen{Done: s.Done, Passed: s.Passed, Message: s.Message}
	if s.Job {
		seen.Object = "job/" + f.hookJobName(run.Name, run.Key)
	}
	return seen
}

func (f *facts) signalRequestSeen(run v1alpha1.SignalHookStatus) signals.HookSeen {
	o := f.Observed[names.HookPrefix+run.Name]
	if o == nil {
		return signals.HookSeen{}
	}
	s := hookResults(o)[run.Key]
	seen := signals.HookSeen{Done: s.Done, Passed: s.Passed, Message: s.Message}
	if slices.ContainsFunc(compose.List(o.Map(), "spec", "forProvider", "requests"), func(v any) bool {
		q, ok := v.(map[string]any)
		return ok && q["key"] == run.Key
	}) {
		seen.Object = "hook/" + f.OfHook(run.Name)
	}
	return seen
}

// hashOf texts, for the names of what cannot change from one to another.
func hashOf(texts ...string) string {
	raw, _ := json.Marshal(texts) //nolint:errchkjson // Text always marshals.
	return compose.Hash(raw)
}
