// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
)

var (
	shapeRevision  = regexp.MustCompile(`^[0-9a-f]{10}$`)
	shapeApproval  = regexp.MustCompile(`^[0-9a-f]{10}(:([1-9]|[1-9][0-9]|100))?$`)
	shapeRetry     = regexp.MustCompile(`^[0-9a-f]{10}#([2-9]|[1-9][0-9]{1,3})$`)
	shapeToken     = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9_]*$`)
	shapeTokenText = regexp.MustCompile(`^[-A-Za-z0-9_.~]+$`)
)

// judged are the names of checks of a candidate that are made of other fields.
var judged = []string{checkOfSuccess, checkOfSuccessAgainst, checkOfLatency, checkOfLatencyAgainst, checkOfDrift}

const week = 168 * time.Hour

func checkLifecycle(s *state) []check.Problem {
	lc := s.spec.Lifecycle
	if lc == nil {
		return nil
	}

	ps := slices.Concat(
		checkShares(lc),
		lasting("spec.lifecycle.soak", lc.Soak, 0, week),
		lasting("spec.lifecycle.deadline", lc.Deadline, time.Minute, week),
		lasting("spec.lifecycle.bake", lc.Bake, 0, week),
		check.Between("spec.lifecycle.minSamples", *lc.MinSamples, 1, 1_000_000),
		check.Among("spec.lifecycle.onNoData", lc.OnNoData, v1alpha1.NoDataHold, v1alpha1.NoDataRollback, v1alpha1.NoDataContinue),
		check.Among("spec.lifecycle.approval", lc.Approval, v1alpha1.ApprovalNone, v1alpha1.ApprovalBeforePromotion, v1alpha1.ApprovalEveryStep),
		check.Shaped("spec.lifecycle.promote", lc.Promote, shapeRevision, "must be a revision of status.rollout"),
		check.Shaped("spec.lifecycle.abort", lc.Abort, shapeRevision, "must be a revision of status.rollout"),
		check.Shaped("spec.lifecycle.retry", lc.Retry, shapeRetry, "must be a revision of status.rollout.failed and the number of the attempt, for instance 1a2b3c4d5e#2"),
		checkLatency("spec.lifecycle.latency", lc.Latency),
		checkJudged(lc),
		checkDrift(lc),
		checkFreeze(lc.Freeze),
		checkMatches(s),
	)

	if lc.Soak.Duration > lc.Deadline.Duration {
		ps = append(ps, check.Invalid("spec.lifecycle.soak", lc.Soak.Duration,
			fmt.Sprintf("is longer than deadline %s, when a step has to know enough: raise deadline or lower soak", words(lc.Deadline.Duration))))
	}

	if m := lc.Mirror; m != nil {
		ps = slices.Concat(ps, check.Between("spec.lifecycle.mirror.percent", m.Percent, 1, 100), lasting("spec.lifecycle.mirror.for", m.For, 0, week))

		if s.spec.Route == nil {
			ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.lifecycle.mirror: needs spec.route: only a Gateway copies requests"})
		}

		if m.For.Duration > lc.Deadline.Duration {
			ps = append(ps, check.Invalid("spec.lifecycle.mirror.for", m.For.Duration,
				fmt.Sprintf("is longer than deadline %s, when a step has to know enough: raise deadline or lower it", words(lc.Deadline.Duration))))
		}
	}

	if n := lc.StandbyReplicas; n != nil {
		ps = append(ps, check.Between("spec.lifecycle.standbyReplicas", *n, 1, 1000)...)
	}

	if t := *lc.SuccessThreshold; t < 0 || t >= 1 {
		ps = append(ps, check.Invalid("spec.lifecycle.successThreshold", t,
			"must be from 0 to less than 1: that nothing ever fails cannot be told from any number of requests"))
	}

	for i, a := range lc.Approve {
		ps = append(ps, check.Shaped(fmt.Sprintf("spec.lifecycle.approve[%d]", i), a, shapeApproval,
			"must be a revision of status.rollout, or one with a weight, for instance 1a2b3c4d5e:50")...)
	}

	return ps
}

func checkShares(lc *v1alpha1.Lifecycle) []check.Problem {
	var ps []check.Problem

	if w := lc.CanaryWeight; w != nil {
		ps = check.Between("spec.lifecycle.canaryWeight", *w, 1, 100)
	}

	if lc.CanaryWeight != nil && len(lc.Steps) > 0 {
		ps = append(ps, check.Invalid("spec.lifecycle.steps", lc.Steps, "take the place of canaryWeight: set one of them"))
	}

	for i, w := range lc.Steps {
		field := fmt.Sprintf("spec.lifecycle.steps[%d]", i)
		ps = append(ps, check.Between(field, w, 1, 99)...)

		if i > 0 && w <= lc.Steps[i-1] {
			ps = append(ps, check.Invalid(field, w, "must be greater than the step before it"))
		}
	}

	return ps
}

func checkLatency(at string, l *v1alpha1.LatencyTarget) []check.Problem {
	if l == nil {
		return nil
	}

	var ps []check.Problem

	if l.MaxMs == nil && l.MaxRegressionPercent == nil {
		ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: at + ": has neither maxMs nor maxRegressionPercent: set one, or nothing is asked"})
	}

	if l.MaxMs != nil {
		ps = append(ps, check.Between(at+".maxMs", *l.MaxMs, 1, 3600000)...)
	}

	if l.MaxRegressionPercent != nil {
		ps = append(ps, check.Between(at+".maxRegressionPercent", *l.MaxRegressionPercent, 1, 1000)...)
	}

	if !slices.Contains([]int32{50, 90, 95, 99}, l.Percentile) {
		ps = append(ps, check.Invalid(at+".percentile", l.Percentile, "must be 50, 90, 95 or 99"))
	}

	return ps
}

// checkJudged metrics of a candidate.
func checkJudged(lc *v1alpha1.Lifecycle) []check.Problem {
	var ps []check.Problem

	seen := map[string]bool{}

	for i, m := range lc.Metrics {
		field := fmt.Sprintf("spec.lifecycle.metrics[%d]", i)

		switch {
		case !shapeCheckName.MatchString(m.Name) || len(m.Name) > 63:
			ps = append(ps, check.Invalid(field+".name", m.Name, "must be at most 63 lower case letters, digits and '-', start with a letter and end with a letter or digit"))
		case slices.Contains(judged, m.Name):
			ps = append(ps, check.Invalid(field+".name", m.Name, "is the name of a built-in check: choose another"))
		case seen[m.Name]:
			ps = append(ps, check.Invalid(field+".name", m.Name, "is there twice: remove one"))
		}

		seen[m.Name] = true

		if m.Query == "" {
			ps = append(ps, check.Invalid(field+".query", m.Query, "must be a PromQL expression"))
		}

		if m.RelativeTo != "" {
			ps = append(ps, check.Among(field+".relativeTo", m.RelativeTo, v1alpha1.RelativeToBaseline)...)
		}

		ps = append(ps, tooLong(field+".query", m.Query)...)

		switch {
		case m.Min == nil && m.Max == nil:
			ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: field + ": has neither min nor max: set one, or nothing is asked"})
		case m.Min != nil && m.Max != nil && *m.Min > *m.Max:
			ps = append(ps, check.Invalid(field+".min", *m.Min, fmt.Sprintf("is above max %g: lower min or raise max", *m.Max)))
		}
	}

	return ps
}

func checkDrift(lc *v1alpha1.Lifecycle) []check.Problem {
	d := lc.Drift

	switch {
	case d == nil && lc.RollbackOnDrift:
		return []check.Problem{check.Invalid("spec.lifecycle.rollbackOnDrift", true, "needs drift: name the histogram whose distribution is compared")}
	case d == nil:
		return nil
	}

	ps := slices.Concat(
		tooLong("spec.lifecycle.drift.query", d.Query),
		check.Among("spec.lifecycle.drift.method", d.Method, v1alpha1.DriftPSI, v1alpha1.DriftKS),
		lasting("spec.lifecycle.drift.reference", d.Reference, time.Minute, 720*time.Hour),
	)

	if d.Query == "" {
		ps = append(ps, check.Invalid("spec.lifecycle.drift.query", d.Query, "must be a PromQL expression"))
	}

	if *d.Max <= 0 || *d.Max > 10 {
		ps = append(ps, check.Invalid("spec.lifecycle.drift.max", *d.Max, "must be above 0 and at most 10"))
	}

	if !lc.RollbackOnDrift && d.Reference == nil {
		ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.lifecycle.drift: has no effect: set rollbackOnDrift, or a reference to compare with"})
	}

	return ps
}

// fewBegins are looked at to see whether a window overlaps itself.
const fewBegins = 16

func checkFreeze(windows []v1alpha1.FreezeWindow) []check.Problem {
	var ps []check.Problem

	for i, w := range windows {
		field := fmt.Sprintf("spec.lifecycle.freeze[%d]", i)
		d := w.For
		ps = append(ps, lasting(field+".for", &d, time.Minute, 744*time.Hour)...)

		if _, err := time.LoadLocation(w.TimeZone); err != nil {
			ps = append(ps, check.Invalid(field+".timeZone", w.TimeZone, "must be the name of a time zone, for instance Europe/Berlin"))
			continue
		}

		schedule, _, err := scheduleOf(w)
		if err != nil {
			ps = append(ps, check.Invalid(field+".cron", w.Cron, "must be minute, hour, day of the month, month and day of the week, for instance 0 17 * * 5"))
			continue
		}

		begin := schedule.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
		if begin.IsZero() {
			ps = append(ps, check.Invalid(field+".cron", w.Cron, "names a day that never comes"))
			continue
		}

		for range fewBegins {
			next := schedule.Next(begin)
			if !next.IsZero() && next.Before(begin.Add(w.For.Duration)) {
				ps = append(ps, check.Invalid(field+".for", w.For.Duration, "is longer than the time until cron begins it again: shorten it"))
				break
			}

			begin = next
		}
	}

	return ps
}

func checkMatches(s *state) []check.Problem {
	var ps []check.Problem

	ms := s.spec.Lifecycle.Match
	if len(ms) > 0 && s.spec.Route == nil {
		ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.lifecycle.match: needs spec.route: only a Gateway sees headers and cookies"})
	}

	return append(ps, checkCallers("spec.lifecycle.match", ms)...)
}

func checkCallers(at string, ms []v1alpha1.CallerMatch) []check.Problem {
	var ps []check.Problem

	for i, m := range ms {
		field := fmt.Sprintf("%s[%d]", at, i)

		if (m.Header == "") == (m.Cookie == "") {
			ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: field + ": must have exactly one of header and cookie"})
		}

		ps = slices.Concat(ps,
			check.Shaped(field+".header", m.Header, shapeToken, "must be the name of a header: letters, digits, '-' and '_'"),
			check.Shaped(field+".cookie", m.Cookie, shapeToken, "must be the name of a cookie: letters, digits, '-' and '_'"),
			required(field+".value", m.Value, shapeTokenText, "must be letters, digits, '-', '_', '.' and '~'"))
	}

	return ps
}
