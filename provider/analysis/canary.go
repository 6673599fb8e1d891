// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

const (
	// defaultSettle is the one of the schema.
	defaultSettle = 30 * time.Second

	// remembered verdicts of a check.
	lastVerdicts = 10
)

// startEpoch begins to count anew when the epoch of a canary is another one, or when
// what is asked about it is. All that is counted is in the status, so that a restart of
// the provider goes on where it was, unless the spec has changed meanwhile.
func (m *remembered) startEpoch(cr *v1alpha1.Analysis, now time.Time) {
	p, at := cr.Spec.ForProvider.Metrics, &cr.Status.AtProvider
	if p.Canary == nil {
		m.trial, m.epochAt, at.Canary = "", time.Time{}, nil

		return
	}

	trial, was := trialOf(p), m.trial
	m.trial = trial

	same := at.Canary != nil && at.Canary.Epoch == p.Canary.Epoch
	if was == "" {
		same = same && cr.GetCondition(xpv2.TypeReady).ObservedGeneration == cr.GetGeneration()
	} else {
		same = same && was == trial
	}

	// A clock that went back would have nothing counted until it is there again.
	if same && !at.Canary.StartedAt.After(now.Add(time.Second)) {
		return
	}

	// In whole seconds, as the status has it, and not before now.
	start := metav1.NewTime(now.Add(time.Second - 1).Truncate(time.Second))

	m.epochAt = now
	at.Canary = &v1alpha1.CanaryObservation{Epoch: p.Canary.Epoch, StartedAt: start, LookedAt: start}
}

// trialOf is everything that the evidence about a canary depends on.
func trialOf(p *v1alpha1.MetricsParameters) string {
	b, err := json.Marshal([]any{p.Canary, p.Queries})
	if err != nil {
		return ""
	}

	return string(b)
}

// settled is how long ago the epoch of the canary settled. A clock that jumps ahead does
// not have what was before it counted: by the clock of this process, which does not
// jump, the epoch began then.
func (m *remembered) settled(cr *v1alpha1.Analysis, now time.Time) time.Duration {
	c := cr.Status.AtProvider.Canary
	if c == nil {
		return 0
	}

	passed := now.Sub(c.StartedAt.Time)
	if !m.epochAt.IsZero() {
		passed = min(passed, now.Sub(m.epochAt))
	}

	return passed - settleOf(cr.Spec.ForProvider.Metrics.Canary)
}

func settleOf(c *v1alpha1.CanaryParameters) time.Duration {
	if c.Settle == nil || c.Settle.Duration < 0 {
		return defaultSettle
	}

	return c.Settle.Duration
}

// tellCanary what a look at it comes to. It is told each time, so that whoever waits for
// it sees that somebody looks.
func tellCanary(cr *v1alpha1.Analysis, e *evidence, pods []corev1.Pod, lookedAt time.Time) {
	p, told := cr.Spec.ForProvider.Metrics.Canary, cr.Status.AtProvider.Canary
	if p == nil || told == nil || e == nil || !e.since.Equal(&told.StartedAt) {
		return
	}

	o := told.DeepCopy()
	o.LookedAt = metav1.NewTime(lookedAt.Truncate(time.Second))
	o.Errors = 0

	if e.failure != nil {
		o.Errors = told.Errors + 1
		cr.SetConditions(outside.Failed(e.failure).WithObservedGeneration(cr.GetGeneration()))
	}

	cr.Status.AtProvider.Canary = o

	if e.settling {
		return
	}

	ready := func(slot string) int { return len(readyOf(pods, slot)) }

	if p.Experiment != nil && e.arms != nil {
		o.Experiment = compared(p.Experiment, e.arms, told.Experiment)
	}

	o.Looks++
	o.Checks = make([]v1alpha1.CanaryCheck, 0, len(p.Checks))

	for _, c := range p.Checks {
		o.Checks = append(o.Checks, after(checkOf(told, c.Name), c, p, e, ready))
	}
}

// after what is told of a check comes what it is now. When Prometheus does not answer,
// the numbers stay as they were.
func after(
	told v1alpha1.CanaryCheck, c v1alpha1.Check, p *v1alpha1.CanaryParameters, e *evidence, ready func(string) int,
) v1alpha1.CanaryCheck {
	now, verdict := told, v1alpha1.VerdictError

	if e.failure != nil {
		now.Message = bounded(e.failure.Error())
	} else {
		verdict, now = weigh(c, p, e, ready)
	}

	// Their first letters are all different.
	now.Verdicts = told.Verdicts + string(verdict[:1])
	now.Verdicts = now.Verdicts[max(len(now.Verdicts)-lastVerdicts, 0):]

	return now
}

func checkOf(o *v1alpha1.CanaryObservation, name string) v1alpha1.CanaryCheck {
	if i := slices.IndexFunc(o.Checks, func(c v1alpha1.CanaryCheck) bool { return c.Name == name }); i >= 0 {
		return o.Checks[i]
	}

	return v1alpha1.CanaryCheck{Name: name}
}
