// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"math"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

// lastVerdicts is how many verdicts of a check are kept.
const lastVerdicts = 10

// Steady reports the verdicts on slots that serve, or what was reported before when nothing of it has changed: a verdict, a
// message, or a number by more than a quarter and by more than chance explains. When one thing has changed, all is reported as it
// is now.
func Steady(
	reported []v1alpha1.MetricObservation, m *v1alpha1.MetricsParameters, s promq.Sample, ready func(slot string) int,
) []v1alpha1.MetricObservation {
	fresh := make([]v1alpha1.MetricObservation, 0, len(m.Slots)*len(m.Checks))
	kept, changed := make([]v1alpha1.MetricObservation, 0, cap(fresh)), false
	for _, slot := range m.Slots {
		for _, c := range m.Checks {
			i := slices.IndexFunc(reported, func(o v1alpha1.MetricObservation) bool { return o.Slot == slot && o.Name == c.Name })
			before := v1alpha1.MetricObservation{}
			if i >= 0 {
				before = reported[i]
			}
			v := Judge(c, Evidence{Slot: slot, Ready: ready, Recent: s, Window: promq.WindowOf(m), Previous: before.Verdict})
			// The load of a slot follows its share of requests while a canary is tried. That is no news.
			loaded := m.Canary != nil && c.Min == nil && c.Max == nil && v.Is == before.Verdict
			changed = changed || i < 0 || !loaded && v.differs(before)
			kept = append(kept, before)
			fresh = append(fresh, v1alpha1.MetricObservation{
				Slot: slot, Name: c.Name, Verdict: v.Is, Value: v.Value, Lower: v.Lower, Upper: v.Upper, Samples: v.Samples, Message: v.Message,
			})
		}
	}
	switch {
	case len(fresh) == 0:
		return nil
	case !changed:
		return kept
	default:
		return fresh
	}
}

// differs reports whether a verdict is another one than what was reported.
func (v Verdict) differs(before v1alpha1.MetricObservation) bool {
	if v.Is != before.Verdict || v.Message != before.Message || (v.Samples == nil) != (before.Samples == nil) {
		return true
	}
	// A value that is made of too few requests says nothing, only their number does.
	if v.Is != v1alpha1.VerdictInsufficient &&
		((v.Value == nil) != (before.Value == nil) || v.Value != nil && stats.Moved(*before.Value, *v.Value, v.Sigma)) {
		return true
	}
	if v.Samples == nil {
		return false
	}
	// The number of what arrives at random has its mean as its variance.
	was, is := float64(*before.Samples), float64(*v.Samples)
	return stats.Moved(was, is, math.Sqrt(max(was, is)))
}

const (
	// promisedIntervals is how many intervals a promise to look lasts at least, and leastPromise its least time.
	promisedIntervals = 4
	leastPromise      = 3 * time.Minute
	// longestPromise bounds for how long a provider that died goes unnoticed, and longestBake while a canary bakes, which ends by a look
	// at its end. The function believes no promise of an hour.
	longestPromise = 10 * time.Minute
	longestBake    = 45 * time.Minute
	// lateLook is how late a look may be that renews a promise: as long as queries may take.
	lateLook = 30 * time.Second
)

// Promise is until when a canary is polled: as long as what was gathered since its epoch began, within bounds. So what decides
// is never much older than what was seen, and evidence of hours is not reported every minute. While a canary bakes, the look at the
// end decides, and the promise lasts until then.
func Promise(p *v1alpha1.CanaryParameters, startedAt, lookedAt time.Time, interval time.Duration) *metav1.Time {
	least := max(promisedIntervals*interval, leastPromise)
	promise := max(least, min(lookedAt.Sub(startedAt), longestPromise))
	if bakes(p) && p.DecidesAt.After(lookedAt) {
		promise = max(promise, min(p.DecidesAt.Sub(lookedAt)+least, longestBake))
	}
	return &metav1.Time{Time: lookedAt.Add(promise).Truncate(time.Second)}
}

// bakes reports whether the look at the end of a time decides, and no pass before.
func bakes(p *v1alpha1.CanaryParameters) bool { return p.Baseline == "" && p.DecidesAt != nil }

// early reports whether a look was before passes can decide.
func early(p *v1alpha1.CanaryParameters, c *v1alpha1.CanaryObservation) bool {
	return p.DecidesAt != nil && c.LookedAt.Before(p.DecidesAt)
}

// Matters reports whether what a look shows of a canary has to be reported: a decision could be another one, or the promise to look
// would end before the next look.
func Matters(p *v1alpha1.CanaryParameters, reported, fresh *v1alpha1.CanaryObservation, interval time.Duration) bool {
	if reported.LooksUntil == nil || reported.LooksUntil.Sub(fresh.LookedAt.Time) < interval+lateLook {
		return true
	}
	if bakes(p) && early(p, reported) && !early(p, fresh) {
		return true
	}
	return !reflect.DeepEqual(standing(p, reported), standing(p, fresh))
}

// Suspects reports whether the latest evaluation of a check was a failure, and does not fail the canary yet.
func Suspects(c *v1alpha1.CanaryObservation) bool {
	return slices.ContainsFunc(c.Checks, func(k v1alpha1.CanaryCheck) bool {
		s := v1alpha1.StandingOf(k.Verdicts)
		return s.Latest == string(v1alpha1.VerdictFail[:1]) && !s.Failing
	})
}

// standing of a canary is all that decisions take from it. What a pass leads to is the end of a step, or of an experiment: a single
// pass is no news, none is before the time of the step is over, and none is while the canary bakes.
func standing(p *v1alpha1.CanaryParameters, c *v1alpha1.CanaryObservation) any {
	type check struct {
		v1alpha1.Standing

		name         string
		incomparable bool
	}
	of := struct {
		errors int64
		result v1alpha1.ExperimentResult
		checks []check
	}{errors: min(c.Errors, v1alpha1.ErrorsInRow)}
	if c.Experiment != nil {
		of.result = c.Experiment.Result
	}
	for _, k := range c.Checks {
		st := v1alpha1.StandingOf(k.Verdicts)
		if p.Experiment == nil {
			st = st.Deciding()
		}
		st.Passing = st.Passing && p.Baseline != "" && !early(p, c)
		if st != (v1alpha1.Standing{}) || k.Incomparable {
			of.checks = append(of.checks, check{st, k.Name, k.Incomparable})
		}
	}
	return of
}

// Canary is what one look shows of a canary, beside what the looks before have shown.
func Canary(
	reported *v1alpha1.CanaryObservation, p *v1alpha1.CanaryParameters, e *promq.Evidence, ready func(slot string) int, lookedAt time.Time,
) *v1alpha1.CanaryObservation {
	o := reported.DeepCopy()
	o.LookedAt, o.Errors = metav1.NewTime(lookedAt.Truncate(time.Second)), 0
	if e.Failure != nil {
		o.Errors = reported.Errors + 1
	}
	if e.Settling {
		return o
	}
	if p.Experiment != nil && e.Arms != nil {
		o.Experiment = Experiment(p.Experiment, e.Arms, reported.Experiment)
	}
	o.Looks++
	found, both := make([]Verdict, len(p.Checks)), false
	for i, c := range p.Checks {
		found[i] = Verdict{Is: v1alpha1.VerdictError}
		if e.Failure == nil {
			found[i] = ofCanary(c, p, e, ready)
		}
		both = both || found[i].Is == shared
	}
	o.Checks = make([]v1alpha1.CanaryCheck, 0, len(p.Checks))
	for i, c := range p.Checks {
		before := v1alpha1.CanaryCheck{Name: c.Name}
		if i := slices.IndexFunc(reported.Checks, func(o v1alpha1.CanaryCheck) bool { return o.Name == c.Name }); i >= 0 {
			before = reported.Checks[i]
		}
		if both && found[i].excused(c) {
			found[i].Is = shared
		}
		o.Checks = append(o.Checks, next(before, found[i], e))
	}
	if both {
		// What was counted while both failed would never be made up for.
		o.CountedFrom = new(o.LookedAt)
	}
	return o
}

// next report on a check of a canary. When Prometheus does not answer, the numbers stay as they were.
func next(before v1alpha1.CanaryCheck, v Verdict, e *promq.Evidence) v1alpha1.CanaryCheck {
	now := before
	if e.Failure != nil {
		now.Message = promq.Bounded(e.Failure.Error())
	} else {
		now = v1alpha1.CanaryCheck{
			Name: before.Name, Value: v.Value, Lower: v.Lower, Upper: v.Upper, Baseline: v.Baseline, Samples: v.Samples,
			Incomparable: v.Incomparable, Message: v.Message,
		}
	}
	// Their first letters are all different.
	now.Verdicts = before.Verdicts + string(v.Is[:1])
	now.Verdicts = now.Verdicts[max(len(now.Verdicts)-lastVerdicts, 0):]
	return now
}

// ofCanary is the verdict on a check of a canary.
func ofCanary(c v1alpha1.Check, p *v1alpha1.CanaryParameters, e *promq.Evidence, ready func(slot string) int) Verdict {
	return Judge(c, Evidence{
		Slot: p.Slot, Ready: ready, Recent: e.Recent, Window: e.Window,
		Canary: true, Baseline: p.Baseline, Percent: p.Percent, MinSamples: p.MinSamples, Whole: e.Whole, Period: e.Period,
	})
}

// Trial reports which checks of a canary can be measured, by trying them on a slot that serves: as a canary, and as its own
// baseline. What they would decide about it is not reported.
func Trial(m *v1alpha1.MetricsParameters, s promq.Sample, ready func(slot string) int) []v1alpha1.TrialObservation {
	if len(m.Trial) == 0 || len(m.Slots) == 0 {
		return nil
	}
	slot, window := m.Slots[0], promq.WindowOf(m)
	all := make([]v1alpha1.TrialObservation, 0, len(m.Trial))
	for _, c := range m.Trial {
		o := v1alpha1.TrialObservation{Name: c.Name, Verdict: v1alpha1.VerdictPass}
		v := Judge(c, Evidence{
			Slot: slot, Ready: ready, Recent: s, Window: window, Canary: true, Baseline: slot, MinSamples: 1, Whole: s, Period: window,
		})
		if v.Is == v1alpha1.VerdictNoData || v.Is == v1alpha1.VerdictError {
			o.Verdict, o.Message = v.Is, v.Message
		}
		all = append(all, o)
	}
	return all
}
