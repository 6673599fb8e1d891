// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/pods"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/compose"
)

// hooks of a rollout: a Hook for what the provider sends, and a Job for each run. They are made of the ledger as it is remembered,
// not as it is decided now: what runs once has to be remembered before it begins.
func hooks(d *compose.Draft, p *pass) {
	if p.spec.Lifecycle == nil {
		return
	}
	l := p.rollout.Ledger
	for _, h := range p.spec.Lifecycle.Hooks {
		if h.At == v1alpha1.HookTransition {
			p.send(d, h, p.notices(h, l))
			continue
		}
		for _, r := range l.Hooks {
			switch runs := r.Name == h.Name && r.At == h.At; {
			case runs && h.Job != nil:
				hookJob(d, p, h, r)
			case runs && r.Runs():
				p.send(d, h, []observev1alpha1.HookRequest{p.request(h, r)})
			}
		}
	}
}

type hookSpec struct {
	ForProvider observev1alpha1.HookParameters `json:"forProvider"`
}

// send requests of a hook, where the provider is installed.
func (p *pass) send(d *compose.Draft, h v1alpha1.RolloutHook, requests []observev1alpha1.HookRequest) {
	resource := names.HookPrefix + h.Name
	if !p.available(observev1alpha1.HookGroupVersionKind, resource) {
		return
	}
	apiVersion, kind := observev1alpha1.HookGroupVersionKind.ToAPIVersionAndKind()
	d.Offer(resource, compose.NewManifest(apiVersion, kind, p.Metadata(p.OfHook(h.Name)), hookSpec{
		ForProvider: observev1alpha1.HookParameters{URL: h.URL, SecretName: h.SecretName, Requests: requests},
	}))
}

// hookBody is what a hook gets.
type hookBody struct {
	// Text for people, as chats show it.
	Text string `json:"text,omitempty"`

	Key          string              `json:"key"`
	Hook         string              `json:"hook"`
	At           v1alpha1.HookPoint  `json:"at"`
	Event        rollout.NoticeEvent `json:"event,omitempty"`
	Namespace    string              `json:"namespace"`
	Name         string              `json:"name"`
	Revision     string              `json:"revision"`
	Attempt      int64               `json:"attempt,omitempty"`
	Weight       int32               `json:"weight"`
	CandidateURL string              `json:"candidateURL,omitempty"`
	Reason       string              `json:"reason,omitempty"`
	Message      string              `json:"message,omitempty"`
	Time         time.Time           `json:"time"`
}

// bodyOf a run.
func (p *pass) bodyOf(r rollout.HookRun) hookBody {
	b := hookBody{
		Key: r.Key(), Hook: r.Name, At: r.At, Namespace: p.Namespace, Name: p.Name, Revision: r.Revision, Attempt: r.Attempt, Weight: r.Weight, Time: r.Started,
	}
	if r.At != v1alpha1.HookAfterRollback {
		b.CandidateURL = fmt.Sprintf("http://%s.%s.svc", p.ServiceOf(r.Slot), p.Namespace)
	}
	return b
}

// request of a run.
func (p *pass) request(h v1alpha1.RolloutHook, r rollout.HookRun) observev1alpha1.HookRequest {
	raw, _ := json.Marshal(p.bodyOf(r)) //nolint:errchkjson // Text, numbers and times of this century always marshal.
	return observev1alpha1.HookRequest{Key: r.Key(), Body: string(raw), Until: metav1.NewTime(r.Started.Add(h.Timeout.Duration))}
}

// notices that a hook delivers.
func (p *pass) notices(h v1alpha1.RolloutHook, l rollout.Ledger) []observev1alpha1.HookRequest {
	rs := make([]observev1alpha1.HookRequest, 0, len(l.Notices))
	for _, n := range l.Notices {
		raw, _ := json.Marshal(hookBody{ //nolint:errchkjson // The same.
			Text: fmt.Sprintf("%s/%s: %s (%s): %s", p.Namespace, p.Name, n.Event, n.Reason, n.Message),
			Key:  n.Key(), Hook: h.Name, At: h.At, Event: n.Event, Namespace: p.Namespace, Name: p.Name, Revision: n.Revision, Weight: n.Weight,
			Reason: string(n.Reason), Message: n.Message, Time: n.At,
		})
		rs = append(rs, observev1alpha1.HookRequest{Key: n.Key(), Body: string(raw), Until: metav1.NewTime(n.At.Add(h.Timeout.Duration))})
	}
	return rs
}

// hookJob of a run. It is made once: its template cannot be changed, one that was deleted is not made again, and one that has ended
// stays for its log until the next attempt.
func hookJob(d *compose.Draft, p *pass, h v1alpha1.RolloutHook, r rollout.HookRun) {
	resource := jobOf(r.Key())
	if p.Observed[resource] != nil || r.Seen || !r.Runs() {
		d.Keep(resource)
		return
	}
	b := p.bodyOf(r)
	d.Offer(resource, p.jobOnce(h, b.Key, [][2]string{
		{"KEY", b.Key},
		{"NAME", b.Hook},
		{"AT", string(b.At)},
		{"ALGORITHM", b.Name},
		{"NAMESPACE", b.Namespace},
		{"REVISION", b.Revision},
		{"WEIGHT", strconv.Itoa(int(b.Weight))},
		{"CANDIDATE_URL", b.CandidateURL},
	}))
}

// jobOnce is the Job of a hook's run, with variables.
func (p *pass) jobOnce(h v1alpha1.RolloutHook, key string, env [][2]string) compose.Named {
	in := pods.Inputs{Names: p.Names, Spec: p.spec}
	return applybatchv1.Job(p.hookJobName(h.Name, key), p.Namespace).WithLabels(p.Labels()).WithSpec(applybatchv1.JobSpec().
		WithBackoffLimit(0).
		WithActiveDeadlineSeconds(int64(h.Timeout.Seconds())).
		WithPodReplacementPolicy(batchv1.Failed).
		// Only a pod that had to make room is followed by another one.
		WithPodFailurePolicy(applybatchv1.PodFailurePolicy().WithRules(applybatchv1.PodFailurePolicyRule().
			WithAction(batchv1.PodFailurePolicyActionIgnore).
			WithOnPodConditions(applybatchv1.PodFailurePolicyOnPodConditionsPattern().
				WithType(corev1.DisruptionTarget).WithStatus(corev1.ConditionTrue)))).
		WithTemplate(in.HookTemplate(h.Job.Core, env)))
}

// hasJobs reports whether a hook of the spec is a Job.
func (f *facts) hasJobs() bool {
	return f.spec.Lifecycle != nil && slices.ContainsFunc(f.spec.Lifecycle.Hooks, func(h v1alpha1.RolloutHook) bool { return h.Job != nil })
}

// hooksPassed reports whether hooks passed and notices were delivered, or is nil without hooks.
func (p *pass) hooksPassed() *xpv2.Condition {
	if p.spec.Lifecycle == nil || len(p.spec.Lifecycle.Hooks) == 0 {
		return nil
	}
	l := p.decision.Ledger
	for _, r := range l.Hooks {
		if r.Result == v1alpha1.HookResultFailed {
			return new(compose.False(v1alpha1.TypeHooksPassed, v1alpha1.ReasonHookFailed, fmt.Sprintf(
				"hook %q of spec.lifecycle.hooks failed for revision %s: %s", r.Name, r.Revision, r.Message)))
		}
	}
	if failure := p.toldRuns.Failure(); failure != "" {
		return new(compose.False(v1alpha1.TypeHooksPassed, v1alpha1.ReasonHookFailed, failure))
	}
	if l.Unheard != "" {
		return new(compose.False(v1alpha1.TypeHooksPassed, v1alpha1.ReasonHookFailed, "spec.lifecycle.hooks: a notification was not delivered: "+l.Unheard))
	}
	return new(compose.True(v1alpha1.TypeHooksPassed, v1alpha1.ReasonPassed, "no hook has failed"))
}
