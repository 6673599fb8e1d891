// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/measure"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/sleep"
	"github.com/capstan-dev/capstan/function/compose"
)

// status is complete: Crossplane removes what is left out. What a spec that cannot be carried out leaves as it is, the status
// does, too.
func status(d *compose.Draft, p *pass, history []string) (any, error) {
	st := v1alpha1.AlgorithmStatus{
		Phase:         p.phase(),
		Replicas:      int32(p.live.Total), //nolint:gosec // The API server keeps it in an int32.
		ReadyReplicas: int32(p.live.Ready), //nolint:gosec // The same.
		Selector:      labelQuery(p.SlotPods(p.rollout.Ledger.Slot)),
		Withheld:      d.Withheld(),
	}
	if p.sleep.State == sleep.Asleep {
		// Those that this pass ends count no more, as Kubernetes counts them a moment later.
		st.Replicas, st.ReadyReplicas = 0, 0
	}
	if service := p.Observed[names.Service]; service != nil {
		st.Endpoint = p.endpoint(service, p.Name)
	}
	if !p.accepted() {
		next, err := compose.AsMap(st)
		if err != nil {
			return nil, fmt.Errorf("cannot keep the status: %w", err)
		}
		before := compose.Map(p.Composite.Map(), "status")
		for _, k := range []string{"revision", "rollout", "model", "route", "scaling", "metrics", "experiment", "slo", "signals"} {
			if v, ok := before[k]; ok {
				next[k] = v
			}
		}
		return next, nil
	}
	st.Revision = p.revisionStatus(history)
	st.Rollout = p.decision.Status(p.rollout)
	if slot := p.decision.Previewed(p.rollout); slot != "" && st.Rollout != nil {
		st.Rollout.PreviewURL = p.endpoint(p.Observed[names.SlotService(slot)], p.ServiceOf(slot))
	}
	st.Signals = p.signals.Status(p.hookRuns, p.ignores)
	st.Experiment = p.decision.ExperimentStatus(p.rollout)
	if o := p.slo; o.Verdict != "" {
		st.SLO = &v1alpha1.SLOStatus{
			Verdict: string(o.Verdict), Availability: o.Availability, BudgetRemainingPercent: o.BudgetRemainingPercent,
			BurnRate1h: o.BurnRate1h, BurnRate6h: o.BurnRate6h, Message: o.Message,
		}
	}
	if p.registered() != nil {
		st.Model, _ = p.modelResolved(p.target)
	}
	st.Route = p.routePath()
	if p.spec.Scaling != nil {
		if l := p.load(); l.Signal != "" {
			st.Scaling = &l
		}
	}
	st.Metrics = p.metricsShown()
	return st, nil
}

// ignores says why an act of a Signal has no effect.
func (p *pass) ignores(act eventsv1alpha1.Act) string {
	switch {
	case act == eventsv1alpha1.ActMinReplicas && p.spec.Scaling == nil:
		return "spec.scaling is not set: set it, or edit spec.replicas"
	case act != eventsv1alpha1.ActMinReplicas && p.spec.Lifecycle == nil:
		return "spec.lifecycle is not set, so that there are no rollouts"
	default:
		return ""
	}
}

// metricsShown are the metrics with their values. While a rollout stays in its phase and no verdict changes, they are those that were
// shown: the load of a revision follows its share of requests, and each change of the status has Crossplane apply every object.
func (p *pass) metricsShown() []v1alpha1.MetricStatus {
	measured := p.measured()
	now, before := make([]v1alpha1.MetricStatus, 0, len(measured)), make([]v1alpha1.MetricStatus, 0, len(measured))
	for _, m := range measured {
		now = append(now, v1alpha1.MetricStatus{Name: m.Name, Verdict: m.Verdict, Value: m.Value})
	}
	if !p.decision.Stays() {
		return now
	}
	for _, v := range compose.List(p.Composite.Map(), "status", "metrics") {
		var m v1alpha1.MetricStatus
		if o, ok := v.(map[string]any); !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(o, &m) != nil {
			return now
		}
		before = append(before, m)
	}
	alike := func(a, b v1alpha1.MetricStatus) bool { return a.Name == b.Name && a.Verdict == b.Verdict }
	if !slices.EqualFunc(before, now, alike) {
		return now
	}
	return before
}

// measured are the metrics that people see. Without replicas there is nothing to measure, and that is no news.
func (p *pass) measured() []measure.Metric {
	if p.sleep.Down() {
		return nil
	}
	return p.metrics
}

func (p *pass) revisionStatus(history []string) *v1alpha1.RevisionStatus {
	dec := p.decision
	st := &v1alpha1.RevisionStatus{Live: dec.Ledger.Revision, Slot: dec.Ledger.Slot, History: history}
	if p.target.revision != dec.Ledger.Revision {
		st.Candidate = p.target.revision
	}
	if dec.Beside.Revision != "" && !dec.Coming && dec.Ledger.Previous == "" {
		st.Draining = dec.Beside.Revision
	}
	return st
}

func (p *pass) phase() v1alpha1.Phase {
	target := p.target.revision
	settled := !p.accepted() || target == "" || p.decision.Ledger.Revision == target || p.decision.RolledBack(target)
	switch {
	case !p.live.Exists:
		return v1alpha1.PhasePending
	case p.stopped():
		return v1alpha1.PhaseStopped
	case p.sleep.State == sleep.Asleep && p.well():
		return v1alpha1.PhaseAsleep
	case p.sleep.State == sleep.Waking && p.well():
		return v1alpha1.PhaseProgressing
	case p.live.Trouble != "", p.decision.Coming && p.rollout.Slots[p.decision.Beside.Slot].Trouble != "":
		return v1alpha1.PhaseDegraded
	case p.rolledOut() && p.serving() && settled:
		return v1alpha1.PhaseReady
	default:
		return v1alpha1.PhaseProgressing
	}
}

// ready reports whether enough pods serve and nothing that the Algorithm needs is missing. Once ready, it stays so while it is
// updated or changes its size.
func (p *pass) ready(d *compose.Draft) bool {
	return d.Complete() && (p.serving() || compose.IsTrue(p.Composite.Map(), xpv2.TypeReady) && p.unblocked())
}

// ttl by what the Algorithm waits for.
func (p *pass) ttl(d *compose.Draft, ready bool) time.Duration {
	pace := compose.Settled
	if !ready || !p.upToDate() && !p.decision.Watched() {
		pace = compose.Waiting
	}
	// The end of the Analysis' promise is a deadline, should its report go unheard.
	unheard := compose.Unheard(p.Request)
	if p.decision.Watched() {
		unheard = compose.Unresponsive(p.Request)
	}
	if unheard {
		pace = compose.Following
	}
	if d.Waits() {
		pace = compose.Asking
	}
	_, failing := p.scalerFailure()
	_, unapplied := p.autoscaler.Unapplied()
	deadlines := d.Deadlines()
	due := append(append(p.decision.Deadlines(p.Now), p.hookRuns.Limits(p.hookFacts())...), p.decision.Until, failing.Add(scalerTimeout), unapplied.Add(scalerTimeout))
	if p.accepted() {
		due = append(due, p.sleep.Due(p.sleepFacts()))
	}
	if r := p.rollout.Route; r.Exists && !r.Current {
		due = append(due, r.ChangedAt.Add(routeTakes))
	}
	for _, at := range due {
		if at.After(p.Now) {
			deadlines = append(deadlines, at)
		}
	}
	return pace.TTL(p.Now, deadlines...)
}
