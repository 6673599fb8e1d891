// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/verdict"
)

// defaultSettle is the default of the schema.
const defaultSettle = 30 * time.Second

// startEpoch begins to count from zero when the epoch of a canary is another one, or when its checks are. All that decides is
// in the status, so that a restart of the provider continues where it was, unless the spec has changed meanwhile.
func (m *remembered) startEpoch(cr *v1alpha1.Analysis, now time.Time) {
	p, at := cr.Spec.ForProvider.Metrics, &cr.Status.AtProvider
	if p.Canary == nil {
		m.trial, m.epochAt, m.canary, at.Canary = "", time.Time{}, nil, nil
		return
	}
	// Everything that the evidence about a canary depends on. When it decides is no part of that.
	about := *p.Canary
	about.DecidesAt = nil
	trial, was := textOf(about, p.Queries), m.trial
	m.trial = trial
	same := at.Canary != nil && at.Canary.Epoch == p.Canary.Epoch
	if was == "" {
		same = same && cr.GetCondition(xpv2.TypeReady).ObservedGeneration == cr.GetGeneration()
	} else {
		same = same && was == trial
	}
	// With a clock that went back nothing would count until it is there again.
	if same && !at.Canary.StartedAt.After(now.Add(time.Second)) {
		return
	}
	// In whole seconds, as the status has it, and not before now.
	start := metav1.NewTime(now.Add(time.Second - 1).Truncate(time.Second))
	m.epochAt, m.canary = now, nil
	at.Canary = &v1alpha1.CanaryObservation{
		Epoch: p.Canary.Epoch, StartedAt: start, LookedAt: start, LooksUntil: verdict.Promise(p.Canary, start.Time, start.Time, intervalOf(p)),
	}
}

// settled is how long ago the epoch of the canary settled. With a clock that jumps ahead, nothing from before counts: by the
// clock of this process, which does not jump, the epoch began then.
func (m *remembered) settled(cr *v1alpha1.Analysis, now time.Time) time.Duration {
	c := cr.Status.AtProvider.Canary
	if c == nil {
		return 0
	}
	passed := now.Sub(c.StartedAt.Time)
	if !m.epochAt.IsZero() {
		passed = min(passed, now.Sub(m.epochAt))
	}
	return passed - m.settle(cr.Spec.ForProvider.Metrics.Canary)
}

// settle is how long an epoch takes to settle.
func (m *remembered) settle(p *v1alpha1.CanaryParameters) time.Duration {
	asked := defaultSettle
	if s := p.Settle; s != nil && s.Duration >= 0 {
		asked = s.Duration
	}
	return m.found.Settle(asked)
}

// due is when the next look is: an interval after the last one, as soon as there can be evidence about a canary, or when it decides.
// After a failure the next look is as soon as there can be more.
func (m *remembered) due(cr *v1alpha1.Analysis) time.Time {
	p := cr.Spec.ForProvider.Metrics
	next := m.lookedAt.Add(intervalOf(p))
	c := m.known(cr.Status.AtProvider.Canary)
	if p.Canary == nil || c == nil {
		return next
	}
	if end := p.Canary.DecidesAt; end != nil && m.lookedAt.Before(end.Time) && end.Time.Before(next) {
		next = end.Time
	}
	least := m.found.LeastPeriod()
	if first := c.StartedAt.Add(m.settle(p.Canary) + least); m.lookedAt.Before(first) && first.Before(next) {
		return first
	}
	if again := m.lookedAt.Add(least); again.Before(next) && verdict.Suspects(c) {
		return again
	}
	return next
}

// counted is for how long checks count of an epoch that settled so long ago: not from before counting began again.
func counted(c *v1alpha1.CanaryObservation, settled time.Duration, now time.Time) time.Duration {
	if c.CountedFrom == nil {
		return settled
	}
	return min(settled, now.Sub(c.CountedFrom.Time))
}

// known of a canary. After a restart what is reported is all.
func (m *remembered) known(reported *v1alpha1.CanaryObservation) *v1alpha1.CanaryObservation {
	if reported == nil || m.canary == nil || m.canary.Epoch != reported.Epoch || !m.canary.StartedAt.Equal(&reported.StartedAt) {
		return reported
	}
	return m.canary
}

// seeCanary adds a look to what is known of a canary, unless another epoch has begun meanwhile. The status reports it when it
// matters: each report has Crossplane apply every object of the Algorithm once more.
func (m *remembered) seeCanary(cr *v1alpha1.Analysis, k seen, pods []corev1.Pod, lookedAt time.Time) {
	p, reported := cr.Spec.ForProvider.Metrics, cr.Status.AtProvider.Canary
	if p.Canary == nil || reported == nil || k.evidence == nil || !k.since.Equal(&reported.StartedAt) {
		return
	}
	m.canary = verdict.Canary(m.known(reported), p.Canary, k.evidence, readyIn(pods), lookedAt)
	if verdict.Matters(p.Canary, reported, m.canary, intervalOf(p)) {
		m.canary.LooksUntil = verdict.Promise(p.Canary, m.canary.StartedAt.Time, lookedAt, intervalOf(p))
		cr.Status.AtProvider.Canary = m.canary.DeepCopy()
	}
}
