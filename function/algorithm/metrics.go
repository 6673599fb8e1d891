// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/measure"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

const notScaling = "the autoscaler leaves the number of replicas as it is, because it gets no metric: "

// metricsAvailable reports whether what is needed is known, or is nil where nothing is. An autoscaler that only follows the CPU
// is reported when it cannot.
func (p *pass) metricsAvailable() *xpv2.Condition {
	not := func(reason xpv2.ConditionReason, message string) *xpv2.Condition {
		return new(compose.False(v1alpha1.TypeMetricsAvailable, reason, message))
	}
	if message := p.unapplied(); message != "" {
		return not(v1alpha1.ReasonNotScaling, message)
	}
	scaler, noSignal := p.unscaled(), p.noSignal()
	if !p.measures() {
		return p.cpuAvailable(scaler, noSignal)
	}
	failed := firstWith(p.metrics, observev1alpha1.VerdictError, false)
	empty := firstWith(p.metrics, observev1alpha1.VerdictNoData, true)
	switch {
	case !p.observes:
		return not(v1alpha1.ReasonProviderMissing, rollout.ProviderMissing)
	case p.foreign != "":
		return not(v1alpha1.ReasonQueryFailed, fmt.Sprintf("the status of Analysis %q asks to record the series %q, which the provider never does: "+
			"another client wrote it, so the recorded rules stay as they are. Find that client, and remove the annotation "+
			"crossplane.io/paused from the Analysis, if it has it: the provider then replaces the status", p.Name, p.foreign))
	case p.quiet() != "":
		return new(compose.Unknown(v1alpha1.TypeMetricsAvailable, v1alpha1.ReasonMeasuring, p.quiet()))
	case measure.RecordsOwn(&p.spec) && p.Kinds[PrometheusRuleGVK] == compose.Unavailable && p.Observed[names.Rules] == nil:
		return not(v1alpha1.ReasonOperatorMissing,
			"the autoscaler follows your own query (spec.metrics.queries), which needs the Prometheus Operator to record it, "+
				"and the cluster does not have it: install it, or remove the query, so that the autoscaler follows the model server's metrics")
	case failed != nil:
		return not(v1alpha1.ReasonQueryFailed, failed.Name+": "+failed.Message)
	case noSignal != "":
		return not(v1alpha1.ReasonNoSignal, noSignal)
	case p.learned.Message != "" && p.spec.Scaling != nil:
		return not(p.loadUnknown(), "spec.scaling: "+p.learned.Message)
	case empty != nil:
		return not(v1alpha1.ReasonNoData, empty.Name+": "+empty.Message)
	case len(p.metrics) == 0:
		return new(compose.Unknown(v1alpha1.TypeMetricsAvailable, v1alpha1.ReasonMeasuring, "Prometheus has not been queried yet"))
	case scaler != "":
		return not(v1alpha1.ReasonNotScaling, notScaling+scaler+
			": check Prometheus, the rules of package/monitoring and the adapter that serves external metrics")
	case measure.DriftNotMeasured(&p.spec):
		return not(v1alpha1.ReasonDriftNotMeasured, "spec.lifecycle.drift: the pods expose no known histogram of their predictions, "+
			"so rollouts continue without this check: expose algorithm_prediction_score, or name a histogram in the query outputs of spec.metrics.queries")
	default:
		return new(compose.True(v1alpha1.TypeMetricsAvailable, v1alpha1.ReasonMeasured, "every metric that is needed is available"))
	}
}

// quiet says why there is nothing to measure, or is empty.
func (p *pass) quiet() string {
	switch {
	case p.stopped():
		return "zero replicas are desired, so there are no metrics"
	case p.sleep.Down():
		return "the Algorithm is asleep, so there are no metrics"
	default:
		return ""
	}
}

// cpuAvailable reports whether an autoscaler gets the use of the CPU, where it needs no other metric.
func (p *pass) cpuAvailable(scaler, noSignal string) *xpv2.Condition {
	switch {
	case noSignal != "":
		return new(compose.False(v1alpha1.TypeMetricsAvailable, v1alpha1.ReasonNoSignal, noSignal))
	case scaler != "":
		return new(compose.False(v1alpha1.TypeMetricsAvailable, v1alpha1.ReasonNotScaling, notScaling+scaler+": check the metrics server of the cluster"))
	}
	return nil
}

// loadUnknown is why the load is not known: a query of the spec failed, or there is no data.
func (p *pass) loadUnknown() xpv2.ConditionReason {
	if p.spec.Scaling.Signal == string(observev1alpha1.SignalQuery) {
		return v1alpha1.ReasonQueryFailed
	}
	return v1alpha1.ReasonNoData
}

// noSignal is why replicas with a GPU keep their number, if they do.
func (p *pass) noSignal() string {
	switch {
	case !measure.NoSignal(&p.spec, p.learned, p.observes):
		return ""
	case !p.measures() || p.spec.Scaling.Signal == "":
		return "spec.scaling: the number of replicas does not change, because no metric of their load is set, and CPU usage says little " +
			"about a GPU: set targetLatencyMs, or signal with perReplica"
	default:
		return "spec.scaling: the number of replicas does not change, because their load is unknown, and CPU usage says little about a GPU: " + p.learned.Message
	}
}

// scalerTimeout is how long an autoscaler may be without metrics. A new one is for the first half minute.
const scalerTimeout = time.Minute

// scalerFailure is why the autoscaler cannot scale, if it cannot, and since when.
func (f *facts) scalerFailure() (message string, since time.Time) {
	if f.spec.Scaling == nil {
		return "", since
	}
	message, since = f.autoscaler.Failure()
	return ofPod.ReplaceAllString(message, "of a pod"), since
}

// unscaled is why the autoscaler has not scaled for too long, or empty.
func (f *facts) unscaled() string {
	message, since := f.scalerFailure()
	if f.Now.Before(since.Add(scalerTimeout)) {
		return ""
	}
	return message
}

// unapplied is why the provider has not applied the autoscaler as it should be, or empty.
func (f *facts) unapplied() string {
	if f.spec.Scaling == nil {
		return ""
	}
	why, since := f.autoscaler.Unapplied()
	if why == "" || f.Now.Before(since.Add(scalerTimeout)) {
		return ""
	}
	return fmt.Sprintf("the autoscaler does not match spec.scaling: %s: see the conditions of Autoscaler %s", why, f.OfSlot(f.rollout.Ledger.Slot))
}

// ofPod is how an autoscaler names one of many pods, another one at every try.
var ofPod = regexp.MustCompile(`of [Pp]od \S+`)

// firstWith a verdict among metrics. Those without a bound are only shown.
func firstWith(ms []measure.Metric, verdict observev1alpha1.Verdict, bounded bool) *measure.Metric {
	for i, m := range ms {
		if m.Verdict == string(verdict) && (m.Bounded || !bounded) {
			return &ms[i]
		}
	}
	return nil
}

// withinTargets reports whether the live revision meets the targets of the spec, or is nil without targets.
func (p *pass) withinTargets() *xpv2.Condition {
	if !p.measures() {
		return nil
	}
	asked, passed := 0, 0
	for _, c := range measure.Checks(&p.spec) {
		if measure.Bounded(c) {
			asked++
		}
	}
	var missed []string
	for _, m := range p.metrics {
		switch {
		case !m.Bounded:
		case m.Verdict == string(observev1alpha1.VerdictPass):
			passed++
		case m.Verdict == string(observev1alpha1.VerdictFail):
			missed = append(missed, m.Words)
		}
	}
	switch {
	case asked == 0:
		return nil
	case len(missed) > 0:
		message := strings.Join(missed, "; ")
		if p.learned.LoadIndependent {
			message += ": replicas are mostly idle, so more of them would not help: check what they wait for"
		}
		return new(compose.False(v1alpha1.TypeWithinTargets, v1alpha1.ReasonTargetMissed, message))
	case passed == asked:
		return new(compose.True(v1alpha1.TypeWithinTargets, v1alpha1.ReasonTargetsMet, "every target is met"))
	default:
		return new(compose.Unknown(v1alpha1.TypeWithinTargets, v1alpha1.ReasonTooLittleData, "there is too little data to decide: see status.metrics"))
	}
}

// dataDrift reports whether the distribution of what the live revision answers has left the one of an earlier time, or is nil
// where it is not compared.
func (p *pass) dataDrift() *xpv2.Condition {
	if !measure.ComparesData(&p.spec) {
		return nil
	}
	for _, m := range p.metrics {
		switch {
		case m.Name != measure.CheckDataDrift:
		case m.Verdict == string(observev1alpha1.VerdictFail):
			return new(compose.True(v1alpha1.TypeDataDrift, v1alpha1.ReasonDistributionLeft,
				"predictions of the live revision are no longer distributed as "+p.spec.Lifecycle.Drift.Reference.Duration.String()+
					" ago: check the incoming data, and train again if the change is permanent"))
		case m.Verdict == string(observev1alpha1.VerdictPass):
			return new(compose.False(v1alpha1.TypeDataDrift, v1alpha1.ReasonDistributionKept, "predictions of the live revision are distributed as before"))
		}
	}
	return new(compose.Unknown(v1alpha1.TypeDataDrift, v1alpha1.ReasonTooLittleData, "there is too little data to decide: see status.metrics"))
}

// withinSLO reports whether some of the error budget is left, or is nil without an objective.
func (p *pass) withinSLO() *xpv2.Condition {
	if p.spec.SLO == nil {
		return nil
	}
	o, freezes := p.slo, p.rollout.BudgetExhausted
	unknown := func(reason xpv2.ConditionReason, message string) *xpv2.Condition {
		return new(compose.Unknown(v1alpha1.TypeWithinSLO, reason, message))
	}
	switch {
	case !p.observes:
		return unknown(v1alpha1.ReasonProviderMissing, rollout.ProviderMissing)
	case o.Verdict == observev1alpha1.VerdictError:
		return unknown(v1alpha1.ReasonQueryFailed, o.Message)
	case o.Verdict == observev1alpha1.VerdictNoData:
		return unknown(v1alpha1.ReasonNoData, o.Message)
	case o.Verdict == observev1alpha1.VerdictInsufficient:
		return unknown(v1alpha1.ReasonTooLittleData, o.Message)
	case o.BudgetRemainingPercent == nil || o.Availability == nil:
		return unknown(v1alpha1.ReasonMeasuring, "the error budget has not been evaluated yet")
	case o.Verdict == observev1alpha1.VerdictFail:
		message := fmt.Sprintf("the error budget is used up: availability %g %% over %s, must be at least %g %%",
			*o.Availability, check.Duration(p.spec.SLO.Window.Duration), measure.Availability(&p.spec))
		if freezes != "" {
			message += fmt.Sprintf("; rollouts hold until more than %d %% of it is left", *p.spec.SLO.FreezeRolloutsAtPercent)
		}
		return new(compose.False(v1alpha1.TypeWithinSLO, v1alpha1.ReasonBudgetExhausted, message))
	case freezes != "":
		return new(compose.True(v1alpha1.TypeWithinSLO, v1alpha1.ReasonBudgetLow, freezes))
	default:
		return new(compose.True(v1alpha1.TypeWithinSLO, v1alpha1.ReasonBudgetLeft, "some of the error budget is left: status.slo shows how much"))
	}
}
