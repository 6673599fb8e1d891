// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// signalHooks composes what runs hooks that Signals name.
func signalHooks(d *compose.Draft, p *pass) {
	if p.spec.Lifecycle == nil {
		return
	}
	for _, h := range p.spec.Lifecycle.Hooks {
		if h.At == v1alpha1.HookSignal {
			runForSignals(d, p, h)
		}
	}
}

// runForSignals composes what runs a hook. A Job is made once, and stays for its log while the status has its Signal. A request stays until
// the status has its result.
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
