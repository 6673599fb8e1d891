// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"

	_ "time/tzdata" // freeze windows mean the same wherever the function runs
)

// holds a phase for a reason.
func (r *rollout) holds(phase v1alpha1.RolloutPhase, reason xpv2.ConditionReason, message string) {
	l := &r.ledger
	r.message = message

	if l.Phase == v1alpha1.RolloutHolding && l.Reason == reason {
		return
	}

	l.Held = phase
	r.to(v1alpha1.RolloutHolding, reason, message)
}

// resumes what is held for one of some reasons. After a time without metrics
// everything is counted anew.
func (r *rollout) resumes(reasons ...xpv2.ConditionReason) bool {
	l := &r.ledger
	if l.Phase != v1alpha1.RolloutHolding || !slices.Contains(reasons, l.Reason) {
		return false
	}

	// The arms of an experiment were counted by Prometheus all the same.
	anew := l.Reason == v1alpha1.ReasonMetricsUnavailable && l.Experiment == nil
	r.to(l.Held, v1alpha1.ReasonResumed, "what held it is gone")

	if anew {
		l.Evidence, l.Began = l.Epoch, l.Entered
	}

	return true
}

// lacks knowledge: it holds, and when that has lasted for the deadline, the spec
// says what happens.
func (r *rollout) lacks(reason xpv2.ConditionReason, message string) {
	l := &r.ledger
	phase := l.standing()

	late := reason == v1alpha1.ReasonInconclusive ||
		l.Phase == v1alpha1.RolloutHolding && l.Reason == reason && r.over(l.Entered, r.lc.Deadline.Duration)

	switch baking := phase == v1alpha1.RolloutBaking; {
	case late && r.lc.OnNoData == v1alpha1.NoDataRollback && baking && r.there.available > 0:
		r.goesBack(reason, message)
	case late && r.lc.OnNoData == v1alpha1.NoDataRollback && !baking:
		r.fails(reason, message)
	case late && r.lc.OnNoData == v1alpha1.NoDataContinue && baking:
		r.ends(v1alpha1.ReasonContinued, message)
	case late && r.lc.OnNoData == v1alpha1.NoDataContinue:
		l.Next, l.NextBy = r.next(), v1alpha1.ReasonContinued
		r.grows()
	default:
		r.holds(phase, reason, message)
	}
}

// unknown tells why nobody can tell how the candidate does, if so.
func (r *rollout) unknown() (xpv2.ConditionReason, string) {
	l := r.ledger

	switch silent := r.evidence.silent(l, r.spec.Metrics.Interval.Duration); {
	case !r.evidence.asked:
		return "", ""
	case !r.observes():
		return v1alpha1.ReasonMetricsUnavailable, providerMissing
	case r.evidence.errors >= errorsInRow:
		return v1alpha1.ReasonMetricsUnavailable, "Prometheus does not answer: see the condition MetricsAvailable"
	case l.Phase == v1alpha1.RolloutHolding && l.Reason == v1alpha1.ReasonMetricsUnavailable && (r.evidence.errors > 0 || !r.lookedSince()):
		return v1alpha1.ReasonMetricsUnavailable, "Prometheus does not answer: see the condition MetricsAvailable"
	case !r.Now.Before(silent):
		return v1alpha1.ReasonMetricsUnavailable, "nobody has looked at Prometheus for some time: see the conditions of Analysis " + r.name
	default:
		r.silentAt = silent
		return "", ""
	}
}

// lookedSince tells whether anybody has looked at Prometheus since the rollout
// holds.
func (r *rollout) lookedSince() bool { return r.evidence.lookedAt.After(r.ledger.Entered) }

// mayNotBegin tells what keeps a rollout from beginning.
func (r *rollout) mayNotBegin() (xpv2.ConditionReason, string) {
	// What corrects an outage must not wait for it to be over.
	if r.lc.Promote == r.target {
		return "", ""
	}

	if n := len(r.ledger.Rollbacks); n >= loopLimit {
		if at := r.ledger.Rollbacks[loopLimit-1].Add(loopTime); r.Now.Before(at) {
			r.wakes(at)

			return v1alpha1.ReasonRollbackLoop, fmt.Sprintf(
				"%d revisions were rolled back within an hour: the next one starts at %s", loopLimit, at.UTC().Format(time.RFC3339))
		}
	}

	if r.mirrorFirst() {
		if message, offered := r.mirrorsOffered(); !offered {
			return v1alpha1.ReasonMirrorNotOffered, message
		}
	}

	return r.notNow()
}

// notNow tells what keeps callers from being sent to a revision at this time.
func (r *rollout) notNow() (xpv2.ConditionReason, string) {
	otherwise := fmt.Sprintf("wait, or name revision %s in spec.lifecycle.promote", r.target)
	if r.target == r.ledger.Revision {
		otherwise = "wait" // for an experiment, which nobody can be in such a hurry for
	}

	if until, frozen := frozen(r.lc.Freeze, r.Now); frozen {
		r.wakes(until)
		return v1alpha1.ReasonFreezeWindow, fmt.Sprintf(
			"spec.lifecycle.freeze holds rollouts until %s: %s", until.UTC().Format(time.RFC3339), otherwise)
	}

	if message, exhausted := r.budgetExhausted(); exhausted {
		return v1alpha1.ReasonErrorBudget, fmt.Sprintf("%s: %s", message, otherwise)
	}

	return "", ""
}

// mayNotGoOn tells what keeps a candidate from a greater share of callers.
func (r *rollout) mayNotGoOn(weight int32, approved bool) (xpv2.ConditionReason, string) {
	if reason, message := r.notNow(); reason != "" {
		return reason, message
	}

	if approved && r.wantsApproval(weight) && !r.approved(weight) {
		return v1alpha1.ReasonAwaitingApproval, fmt.Sprintf("somebody has to agree that %s: add %q to spec.lifecycle.approve, or %q to spec.lifecycle.abort",
			shareInWords(weight), fmt.Sprintf("%s:%d", r.ledger.Candidate, weight), r.ledger.Candidate)
	}

	return "", ""
}

func shareInWords(weight int32) string {
	if weight == 100 {
		return "all callers go over"
	}

	return fmt.Sprintf("%d %% of callers do", weight)
}

func (r *rollout) wantsApproval(weight int32) bool {
	return r.lc.Approval == v1alpha1.ApprovalEveryStep || r.lc.Approval == v1alpha1.ApprovalBeforePromotion && weight == 100
}

// approved tells whether somebody agreed to a share of callers.
func (r *rollout) approved(weight int32) bool {
	return slices.ContainsFunc(r.lc.Approve, func(entry string) bool {
		revision, upTo, limited := strings.Cut(entry, ":")
		if revision != r.ledger.Candidate {
			return false
		}

		n, err := strconv.Atoi(upTo)

		return !limited || err == nil && n >= int(weight)
	})
}

// awaitsRoute that a Gateway has not taken.
func (r *rollout) awaitsRoute(phase v1alpha1.RolloutPhase) {
	r.suffers(v1alpha1.ReasonAwaitingRoute)

	g := r.gateway()
	r.message = "the Gateway has not taken the latest change of the route yet"

	if r.lasts(patience) {
		r.holds(phase, v1alpha1.ReasonAwaitingRoute, fmt.Sprintf(
			"Gateway %q of namespace %q has not taken the route: see the condition RouteAccepted, or remove spec.route", g.Name, g.Namespace))
	}
}

// awaitsShare that is not in force.
func (r *rollout) awaitsShare() {
	if !r.byReplicas() {
		r.awaitsRoute(v1alpha1.RolloutStepping)
		return
	}

	reason, why := r.trouble(otherSlot(r.ledger.Slot))
	r.message = fmt.Sprintf("replicas of revision %s start for %d %% of callers", r.ledger.Candidate, r.ledger.Weight)

	if outOfRoom(reason) && r.lasts(patience) {
		r.holds(v1alpha1.RolloutStepping, v1alpha1.ReasonNoCapacity, why)
	}
}

// troubled candidate: since when it has what it suffers from now.
func (r *rollout) troubled() {
	switch r.ledger.standing() {
	case v1alpha1.RolloutPreparing, v1alpha1.RolloutMirroring, v1alpha1.RolloutStepping:
		reason, _ := r.trouble(otherSlot(r.ledger.Slot))
		if reason == "" && r.ledger.Trouble == v1alpha1.ReasonAwaitingRoute && !r.routeTaken() {
			return
		}

		r.suffers(reason)
	default:
		r.suffers("")
	}
}

// suffers from something.
func (r *rollout) suffers(reason xpv2.ConditionReason) {
	l := &r.ledger

	switch reason {
	case l.Trouble:
	case "":
		l.Trouble, l.TroubleAt = "", time.Time{}
	default:
		l.Trouble, l.TroubleAt = reason, r.clock()
	}
}

// lasts tells whether the trouble has lasted for a time.
func (r *rollout) lasts(d time.Duration) bool { return r.over(r.ledger.TroubleAt, d) }

// hindered tells whether replicas are kept from serving by what is wrong with the
// revision itself, as far as anybody knows.
func hindered(reason xpv2.ConditionReason) bool {
	return reason != "" && !outOfRoom(reason) && reason != v1alpha1.ReasonModelFetching
}

// outOfRoom tells whether replicas wait for others to make room.
func outOfRoom(reason xpv2.ConditionReason) bool {
	return slices.Contains([]xpv2.ConditionReason{
		v1alpha1.ReasonInsufficientGPU, v1alpha1.ReasonUnschedulable, v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonPodsRefused,
	}, reason)
}

// mostBegins of a window that are looked at. It does not overlap itself, so that
// there is usually one.
const mostBegins = 64

// frozen tells whether a window lasts, and until when. The latest end counts.
func frozen(windows []v1alpha1.FreezeWindow, now time.Time) (until time.Time, ok bool) {
	for _, w := range windows {
		schedule, zone, err := scheduleOf(w)
		if err != nil {
			continue // validation has told
		}

		// The last begin that the window could still be lasting from.
		begin := schedule.Next(now.Add(-w.For.Duration).In(zone))
		for range mostBegins {
			if begin.IsZero() || begin.After(now) {
				break
			}

			if end := begin.Add(w.For.Duration); end.After(now) && end.After(until) {
				until, ok = end, true
			}

			begin = schedule.Next(begin)
		}
	}

	return until, ok
}

func scheduleOf(w v1alpha1.FreezeWindow) (cron.Schedule, *time.Location, error) {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot find the time zone: %w", err)
	}

	schedule, err := cron.ParseStandard(w.Cron)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read cron: %w", err)
	}

	return schedule, zone, nil
}

// dataDrift tells whether the distribution of what the live revision tells is that
// of an earlier time.
func (s *state) dataDrift() (xpv2.Condition, bool) {
	if len(s.dataDriftCheck()) == 0 {
		return xpv2.Condition{}, false
	}

	c := xpv2.Condition{
		Type: v1alpha1.TypeDataDrift, Status: corev1.ConditionUnknown, Reason: v1alpha1.ReasonTooLittleData,
		Message: "too little is known to say so: see status.metrics",
	}

	for _, m := range s.metrics() {
		switch {
		case m.name != checkOfDataDrift:
		case m.verdict == string(observev1alpha1.VerdictFail):
			c.Status, c.Reason = corev1.ConditionTrue, v1alpha1.ReasonDistributionLeft
			c.Message = "what the live revision tells has left the distribution of " + s.spec.Lifecycle.Drift.Reference.Duration.String() +
				" ago: look at what comes in, and train again if it is to stay"
		case m.verdict == string(observev1alpha1.VerdictPass):
			c.Status, c.Reason = corev1.ConditionFalse, v1alpha1.ReasonDistributionKept
			c.Message = "what the live revision tells is distributed as before"
		}
	}

	return c, true
}

// byReplicas tells whether callers are shared out by the number of replicas, because
// no Gateway does by weight.
func (s *state) byReplicas() bool {
	return s.spec.Route == nil || s.Kinds[RouteGVK] == compose.Unavailable && s.Observed[nameRoute] == nil
}
