// SPDX-License-Identifier: Apache-2.0

// Package verdict decides checks by evidence: of a slot that serves, of a canary and its baseline, and of the arms of an
// experiment.
//
// There is one engine: a check and its evidence give a Verdict. What differs is how often the same evidence is judged. A slot
// that serves is judged by one window, and its verdict stays until it is clearly wrong. A canary is judged again and again by
// evidence that grows, so that only sequential tests fail it.
package verdict

import (
	"fmt"
	"math"
	"time"

	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

// Why a check has no verdict.
const (
	noBaseline     = "there is no baseline to compare with"
	noReference    = "there is no reference to compare with"
	noReplica      = "no replica of this slot is ready"
	noCommonBucket = "the histograms have fewer than two buckets in common: let both revisions expose the same ones"
	baselineIsZero = "the baseline is 0, so that nothing is a multiple of it"
	notAll         = "no number of requests proves that none ever fails: set a minimum below 1"
	ofTheBaseline  = "of the baseline: "
	ofTheReference = "of the reference: "
)

const (
	// digits that are reported of a number.
	digits = 3
	// fewestCompared is how many samples of each side a distance of distributions needs at least: below, the approximation that
	// its bounds are made of does not hold.
	fewestCompared = 200
)

// A Verdict on a check, with the numbers that it rests on.
type Verdict struct {
	Is                            v1alpha1.Verdict
	Message                       string
	Value, Lower, Upper, Baseline *float64
	Samples                       *int64
	// Sigma is the standard deviation of the value.
	Sigma float64
	// Incomparable means that candidate and baseline get other shares of the requests than they should.
	Incomparable bool
}

// Evidence about a slot.
type Evidence struct {
	Slot string
	// Ready is the number of ready replicas of a slot.
	Ready func(slot string) int
	// Recent is what the last window shows.
	Recent promq.Sample
	Window time.Duration
	// Previous verdict on the check, for a slot that serves.
	Previous v1alpha1.Verdict
	// Canary means that the slot is a canary. Whole is what the period since its epoch settled shows.
	Canary   bool
	Baseline string
	// Percent of all requests to canary and baseline that the canary gets, or nil when it is unknown.
	Percent    *int32
	MinSamples int32
	Whole      promq.Sample
	Period     time.Duration
}

// Judge a check.
func Judge(c v1alpha1.Check, e Evidence) Verdict {
	if !e.Canary {
		e.Whole, e.Period = e.Recent, e.Window
	}
	j := judge{e, c}
	var v Verdict
	switch {
	case j.relative() && e.Baseline == "":
		v = v.is(v1alpha1.VerdictNoData, noBaseline)
	case c.Kind == v1alpha1.CheckSuccessRatio:
		v = j.successRatio()
	case c.Kind == v1alpha1.CheckLatency, c.Kind == v1alpha1.CheckFirstToken, c.Kind == v1alpha1.CheckEachToken:
		v = j.latency()
	case c.Kind == v1alpha1.CheckDrift:
		v = j.drift()
	default:
		v = j.value()
	}
	if why := j.incomparable(); why != "" && v.Is != v1alpha1.VerdictNoData && v.Is != v1alpha1.VerdictError {
		v, v.Incomparable = v.insufficient(why), true
	}
	v.Message = promq.Bounded(v.Message)
	return v
}

// A judge of one check.
type judge struct {
	Evidence

	check v1alpha1.Check
}

func (j judge) relative() bool { return j.Canary && j.check.RelativeTo == v1alpha1.RelativeToBaseline }

// least is how many requests a verdict on a canary takes.
func (j judge) least() float64 { return float64(max(j.MinSamples, 1)) }

// is the verdict with a decision.
func (v Verdict) is(decision v1alpha1.Verdict, message string) Verdict {
	v.Is, v.Message = decision, message
	return v
}

func (v Verdict) pass() Verdict { return v.is(v1alpha1.VerdictPass, "") }

func (v Verdict) fail(format string, args ...any) Verdict {
	return v.is(v1alpha1.VerdictFail, fmt.Sprintf(format, args...))
}

func (v Verdict) insufficient(message string) Verdict {
	return v.is(v1alpha1.VerdictInsufficient, message)
}

// unknown is the verdict where a reading has no value.
func (v Verdict) unknown(whose string, r promq.Reading) Verdict {
	return v.is(r.Verdict, whose+r.Message)
}

// firstUnknown of some readings.
func firstUnknown(all ...promq.Reading) (promq.Reading, bool) {
	for _, r := range all {
		if !r.Known() {
			return r, true
		}
	}
	return promq.Reading{}, false
}

func (v Verdict) samples(n float64) Verdict {
	v.Samples = new(int64(n))
	return v
}

// estimate is the verdict with a value and its bounds.
func (v Verdict) estimate(value float64, s stats.Span) Verdict {
	v.Value, v.Lower, v.Upper = new(stats.Rounded(value, digits)), new(stats.Rounded(s.Lower, digits)), nil
	if !math.IsInf(s.Upper, 1) {
		v.Upper = new(stats.Rounded(s.Upper, digits))
	}
	return v
}

// compare a span with the bounds of a check.
func compare(c v1alpha1.Check, s stats.Span) v1alpha1.Verdict {
	least, most := ptr.Deref(c.Min, math.Inf(-1)), ptr.Deref(c.Max, math.Inf(1))
	switch {
	case s.Upper < least, s.Lower > most:
		return v1alpha1.VerdictFail
	case s.Lower >= least && s.Upper <= most:
		return v1alpha1.VerdictPass
	default:
		return v1alpha1.VerdictInsufficient
	}
}

// hold the previous verdict as long as it is not clearly wrong: it is reached at one confidence and dropped at a lower one.
func (j judge) hold(bounds func(z float64) stats.Span) v1alpha1.Verdict {
	v := compare(j.check, bounds(stats.Confident))
	if v != v1alpha1.VerdictInsufficient || j.Previous != v1alpha1.VerdictPass && j.Previous != v1alpha1.VerdictFail {
		return v
	}
	if compare(j.check, bounds(stats.Doubtful)) == j.Previous {
		return j.Previous
	}
	return v
}

// tooFew samples for a verdict on a canary.
func (j judge) tooFew(v Verdict, whose string, have, need float64) Verdict {
	what := "request"
	if j.check.Kind == v1alpha1.CheckDrift {
		what = "sample"
	}
	switch {
	case have <= 0:
		return v.insufficient(fmt.Sprintf("%sno %s yet, at least %s are needed", whose, what, grouped(need)))
	case have != 1:
		what += "s"
	}
	return v.insufficient(fmt.Sprintf("%s%s %s, at least %s are needed: %s more%s",
		whose, grouped(have), what, grouped(need), grouped(need-have), j.wait(have, need)))
}

// wait is how long it takes until so many samples have come, as fast as they did.
func (j judge) wait(have, need float64) string {
	if have <= 0 {
		return ""
	}
	more := (need - have) / have * j.Period.Seconds()
	return fmt.Sprintf(", about %s at this rate", lasting(time.Duration(min(more, 1e9)*float64(time.Second))))
}
