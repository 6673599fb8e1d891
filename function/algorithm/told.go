// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// updated tells whether callers reach the revision that the spec asks for.
func updated(s *state) error {
	c := xpv2.Condition{Type: v1alpha1.TypeUpdated, Status: corev1.ConditionFalse}
	d := s.decision

	// Whatever happens to the new revision, this is what people want to know first.
	serves := "; until then callers reach revision " + s.ledger.Revision
	if s.ledger.Revision == "" {
		serves = ""
	}

	slot := d.beside.slot
	if !d.coming {
		slot = s.ledger.Slot
	}

	reason, message := s.trouble(slot)
	rolling, tells := s.rolling(serves)

	switch {
	case len(s.problems) > 0:
		c.Reason, c.Message = v1alpha1.ReasonNotAccepted, "the spec is not carried out: see the condition Accepted"
	case s.awaits != nil:
		c.Reason, c.Message = s.awaits.reason, s.awaits.message+serves
	case d.ledger.Revision == s.target:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, v1alpha1.ReasonLive, "callers reach revision "+s.target
	case tells:
		c = rolling
	case d.waits == v1alpha1.ReasonAwaitingDrain:
		c.Reason = d.waits
		c.Message = fmt.Sprintf("revision %s starts once the one before the live one has finished its requests%s", s.target, serves)
	case d.waits == v1alpha1.ReasonAwaitingRoute:
		c.Reason = d.waits
		c.Message = fmt.Sprintf("revision %s waits for the Gateway to take the latest change of the route: see the condition RouteAccepted, or remove spec.route%s", s.target, serves)
	case reason != "":
		c.Reason, c.Message = reason, fmt.Sprintf("revision %s: %s%s", s.target, message, serves)
	case s.slots[slot].stalled && s.slots[slot].revision == s.target:
		c.Reason = v1alpha1.ReasonPreparing
		c.Message = fmt.Sprintf("revision %s is not ready after the time it has, and no cause was found: read the logs of its pods with kubectl logs -n %s -l %s%s",
			s.target, s.namespace, query(s.selector(slot)), serves)
	default:
		c.Reason, c.Message = v1alpha1.ReasonPreparing, fmt.Sprintf("pods of revision %s are starting%s", s.target, serves)
	}

	s.tell(c)

	return nil
}

// particular conditions, each told only when the spec asks for what it is about.
func particular(s *state) error {
	if len(s.problems) > 0 {
		s.tellAgain(v1alpha1.TypeImagePinned, v1alpha1.TypeModelResolved, v1alpha1.TypeRouteAccepted,
			v1alpha1.TypeMetricsAvailable, v1alpha1.TypeWithinTargets, v1alpha1.TypeDataDrift, v1alpha1.TypeWithinSLO, v1alpha1.TypeExperimentDecided)

		return nil
	}

	s.tell(s.imagePinned())

	if s.fromRegistry() != nil {
		_, c := s.resolution()
		s.tell(c)
	}

	if c, told := s.routeAccepted(); told {
		s.tell(c)
	}

	if c, told := s.metricsAvailable(); told {
		s.tell(c)
	}

	if s.measures() {
		if c, told := s.withinTargets(); told {
			s.tell(c)
		}
	}

	if c, told := s.dataDrift(); told {
		s.tell(c)
	}

	if c, told := s.withinSLO(); told {
		s.tell(c)
	}

	if c, told := s.experimentDecided(); told {
		s.tell(c)
	}

	return nil
}

// tellAgain what was told of conditions: nothing about them was looked at.
func (s *state) tellAgain(types ...xpv2.ConditionType) {
	for _, t := range types {
		c := compose.Condition(s.Composite.Map(), string(t))
		if c == nil {
			continue
		}

		s.tell(xpv2.Condition{
			Type:    t,
			Status:  corev1.ConditionStatus(compose.Text(c, "status")),
			Reason:  xpv2.ConditionReason(compose.Text(c, "reason")),
			Message: compose.Text(c, "message"),
		})
	}
}

// moving tags are those that usually name another image tomorrow: words for what
// is newest, and names of branches. Tags with a number in them are taken for
// versions.
var moving = regexp.MustCompile(`^(latest|stable|edge|nightly|current|main|master|develop|dev|trunk|head|release|prod|production|staging|test)$`)

// imagePinned tells whether every replica runs the same bytes.
func (s *state) imagePinned() xpv2.Condition {
	c := xpv2.Condition{Type: v1alpha1.TypeImagePinned, Status: corev1.ConditionTrue}

	image := s.spec.Image
	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, tagged := strings.Cut(name, ":")

	switch {
	case strings.Contains(image, "@"):
		c.Reason, c.Message = v1alpha1.ReasonByDigest, "every replica runs the same image"
	case tagged && !moving.MatchString(strings.ToLower(tag)):
		c.Reason, c.Message = v1alpha1.ReasonByTag, "every replica runs the same image, as long as nobody moves the tag"
	default:
		c.Status, c.Reason = corev1.ConditionFalse, v1alpha1.ReasonMutableTag
		c.Message = fmt.Sprintf("spec.image: %q: this name may mean another image tomorrow, and replicas that start then would run it beside those of today, "+
			"without a new revision: name the digest, or a tag that never moves", image)
	}

	return c
}

// metricsAvailable tells whether what is needed is known. An autoscaler that only
// follows the CPU is told of when it cannot.
func (s *state) metricsAvailable() (xpv2.Condition, bool) {
	c := xpv2.Condition{Type: v1alpha1.TypeMetricsAvailable, Status: corev1.ConditionFalse}
	metrics := s.metrics()
	scaler, since := s.scalerTrouble()
	scaler = beyondPatience(scaler, since, s.Now)

	if !s.measures() {
		c.Reason, c.Message = v1alpha1.ReasonNotScaling, notScaling+scaler+": check the metrics server of the cluster"
		return c, scaler != ""
	}

	switch failed := firstOf(metrics, observev1alpha1.VerdictError, false); {
	case !s.observes():
		c.Reason = v1alpha1.ReasonProviderMissing
		c.Message = providerMissing
	case s.stopped():
		c.Status, c.Reason, c.Message = corev1.ConditionUnknown, v1alpha1.ReasonMeasuring, "zero replicas are asked for, and have no metrics"
	case s.wantsOperator():
		c.Reason = v1alpha1.ReasonOperatorMissing
		c.Message = "what the autoscaler is to follow by a query of one's own (spec.scaling.query, spec.metrics.queries) is recorded by the Prometheus Operator, " +
			"which the cluster does not have: install it, or let the autoscaler follow what is known of the server"
	case failed != nil:
		c.Reason, c.Message = v1alpha1.ReasonQueryFailed, failed.name+": "+failed.message
	case s.learned().message != "" && s.spec.Scaling != nil:
		c.Reason, c.Message = v1alpha1.ReasonNoData, "spec.scaling: "+s.learned().message
		if s.spec.Scaling.Signal == string(observev1alpha1.SignalQuery) {
			c.Reason = v1alpha1.ReasonQueryFailed
		}
	case firstOf(metrics, observev1alpha1.VerdictNoData, true) != nil:
		m := firstOf(metrics, observev1alpha1.VerdictNoData, true)
		c.Reason, c.Message = v1alpha1.ReasonNoData, m.name+": "+m.message
	case len(metrics) == 0:
		c.Status, c.Reason, c.Message = corev1.ConditionUnknown, v1alpha1.ReasonMeasuring, "Prometheus was not asked yet"
	case scaler != "":
		c.Reason = v1alpha1.ReasonNotScaling
		c.Message = notScaling + scaler +
			": check Prometheus, the rules of package/monitoring and the adapter that serves external metrics"
	default:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, v1alpha1.ReasonMeasured, "every metric that is needed is known"
	}

	return c, true
}

const providerMissing = "provider-capstan asks Prometheus, and is not installed: install the package capstan"

const notScaling = "the autoscaler leaves the number of replicas as it is, because it gets no metric: "

// scalerPatience is how long an autoscaler may be without metrics. A new one is
// for the first half minute.
const scalerPatience = time.Minute

// scalerTrouble is why the autoscaler cannot scale, if it cannot, and since when.
func (s *state) scalerTrouble() (message string, since time.Time) {
	o := s.Observed[autoscalerOf(s.ledger.Slot)]
	if o == nil || s.spec.Scaling == nil {
		return "", since
	}

	c := compose.Condition(o.Map(), "ScalingActive")
	if compose.Text(c, "status") != string(corev1.ConditionFalse) || compose.Text(c, "reason") == "ScalingDisabled" {
		return "", since
	}

	since, _ = time.Parse(time.RFC3339, compose.Text(c, "lastTransitionTime"))

	return ofPod.ReplaceAllString(compose.Text(c, "message"), "of a pod"), since
}

// ofPod is how an autoscaler names one of many pods, another one at every try.
var ofPod = regexp.MustCompile(`of [Pp]od \S+`)

// beyondPatience is trouble that a new autoscaler does not have.
func beyondPatience(message string, since, now time.Time) string {
	if now.Before(since.Add(scalerPatience)) {
		return ""
	}

	return message
}

// wantsOperator tells whether something is asked that only the Prometheus
// Operator can do, and it is not there.
func (s *state) wantsOperator() bool {
	return s.recordsOwn() && s.Kinds[PrometheusRuleGVK] == compose.Unavailable && s.Observed[nameRules] == nil
}

// firstOf the metrics with a verdict. Those without a bound are only shown.
func firstOf(ms []metric, verdict observev1alpha1.Verdict, bounded bool) *metric {
	for _, m := range ms {
		if m.verdict == string(verdict) && (m.bounded || !bounded) {
			return &m
		}
	}

	return nil
}

// withinTargets tells whether the live revision keeps what is asked of it.
func (s *state) withinTargets() (xpv2.Condition, bool) {
	c := xpv2.Condition{Type: v1alpha1.TypeWithinTargets, Status: corev1.ConditionUnknown}
	asked, passed := 0, 0

	for _, check := range s.metricChecks() {
		if targeted(check) {
			asked++
		}
	}

	var missed []string

	for _, m := range s.metrics() {
		switch {
		case !m.bounded:
		case m.verdict == string(observev1alpha1.VerdictPass):
			passed++
		case m.verdict == string(observev1alpha1.VerdictFail):
			missed = append(missed, m.words)
		}
	}

	switch {
	case asked == 0:
		return c, false
	case len(missed) > 0:
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, v1alpha1.ReasonTargetMissed, strings.Join(missed, "; ")
		if s.learned().loadIndependent {
			c.Message += ": replicas have little to do, so that more of them would not help: look at what they wait for"
		}
	case passed == asked:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, v1alpha1.ReasonTargetsMet, "every target is met"
	default:
		c.Reason, c.Message = v1alpha1.ReasonTooLittleData, "too little is known to say so: see status.metrics"
	}

	return c, true
}
