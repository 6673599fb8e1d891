// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/signals"
)

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

// runForSignals composes what runs a hook that Signals name. A Job is made once, and stays for its log while the status has its Signal. A request
// stays until the status has its result.
func runForSignals(d *compose.Draft, p *pass, h v1alpha1.RolloutHook) {
	var requests []observev1alpha1.HookRequest
	for _, r := range p.hookRuns.Begun(h.Name) {
		switch resource := jobOf(r.Hook.Key); {
		case h.Job != nil && (p.Observed[resource] != nil || r.Hook.Object != "" || r.Hook.Result != v1alpha1.HookResultRunning):
			d.Keep(resource)
		case h.Job != nil:
			d.Offer(resource, p.jobOnce(h, r.Hook.Key, p.signalEnv(r)))
		case !p.toldRuns.Ended(r.Hook.Key):
			requests = append(requests, p.signalRequest(h, r))
		}
	}
	if len(requests) > 0 {
		p.send(d, h, requests)
	}
}

// signalEnv are the variables of a Job. They have nothing that a sender can choose: Kubernetes would expand it in the command.
func (p *pass) signalEnv(r v1alpha1.SignalStatus) [][2]string {
	return [][2]string{
		{"KEY", r.Hook.Key}, {"NAME", r.Hook.Name}, {"AT", string(v1alpha1.HookSignal)}, {"ALGORITHM", p.Name}, {"NAMESPACE", p.Namespace}, {"SIGNAL", r.Name},
	}
}

// signalBody is what an HTTP hook gets. Of what a sender chose it has the cause.
type signalBody struct {
	Key       string             `json:"key"`
	Hook      string             `json:"hook"`
	At        v1alpha1.HookPoint `json:"at"`
	Namespace string             `json:"namespace"`
	Name      string             `json:"name"`
	Signal    string             `json:"signal"`
	Cause     string             `json:"cause,omitempty"`
	Time      time.Time          `json:"time"`
}

func (p *pass) signalRequest(h v1alpha1.RolloutHook, r v1alpha1.SignalStatus) observev1alpha1.HookRequest {
	at := r.Hook.StartedAt.Time
	raw, _ := json.Marshal(signalBody{ //nolint:errchkjson // Text and times of this century always marshal.
		Key: r.Hook.Key, Hook: h.Name, At: h.At, Namespace: p.Namespace, Name: p.Name, Signal: r.Name, Cause: r.Cause, Time: at.UTC(),
	})
	return observev1alpha1.HookRequest{Key: r.Hook.Key, Body: string(raw), Until: metav1.NewTime(at.Add(h.Timeout.Duration))}
}
