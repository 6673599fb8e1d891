// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

// Why arms cannot be compared.
const (
	moreThanAll = "there are more events than there could have been: spec.metric.of of the Experiment must count everything that can have one event"
	ofArmA      = "arm A: "
	ofArmB      = "arm B: "
)

// Experiment decides between the arms by what was counted until now. The bounds hold at all looks together, so that the first
// result stays.
func Experiment(p *v1alpha1.ExperimentParameters, by *promq.Arms, reported *v1alpha1.ExperimentObservation) *v1alpha1.ExperimentObservation {
	if reported != nil && reported.Result != v1alpha1.ExperimentUndecided {
		return reported
	}
	undecided := func(message string) *v1alpha1.ExperimentObservation {
		return &v1alpha1.ExperimentObservation{Result: v1alpha1.ExperimentUndecided, Message: promq.Bounded(message)}
	}
	switch b, a := by.Canary, by.Baseline; {
	case !b.Unknown.Known():
		return undecided(ofArmB + b.Unknown.Message)
	case !a.Unknown.Known():
		return undecided(ofArmA + a.Unknown.Message)
	case b.Events > b.N || a.Events > a.N:
		return undecided(moreThanAll)
	case b.N < 1 || a.N < 1:
		return undecided("no sample of one of the arms yet")
	default:
		return between(p, b, a)
	}
}

func between(p *v1alpha1.ExperimentParameters, b, a promq.ArmCount) *v1alpha1.ExperimentObservation {
	effect := b.Share() - a.Share()
	off := stats.AlwaysWithin(stats.ShareVariance(a.Events, a.N)+stats.ShareVariance(b.Events, b.N), p.MinEffect, 1-p.Confidence/100)
	lower, upper := max(effect-off, -1), min(effect+off, 1)
	o := &v1alpha1.ExperimentObservation{
		Result:   v1alpha1.ExperimentUndecided,
		Canary:   &v1alpha1.ExperimentShareOf{Value: stats.RoundedShare(b.Share()), Samples: int64(b.N)},
		Baseline: &v1alpha1.ExperimentShareOf{Value: stats.RoundedShare(a.Share()), Samples: int64(a.N)},
		Effect:   new(stats.Rounded(effect, digits)), Lower: new(stats.Rounded(lower, digits)), Upper: new(stats.Rounded(upper, digits)),
	}
	better, worse := v1alpha1.ExperimentCanaryBetter, v1alpha1.ExperimentBaselineBetter
	if p.LowerIsBetter {
		better, worse = worse, better
	}
	switch least := float64(p.MinSamples); {
	case b.N < least || a.N < least:
		o.Message = fmt.Sprintf("at least %s samples of each arm are needed", grouped(least))
	case lower > -p.MinEffect && upper < p.MinEffect:
		o.Result = v1alpha1.ExperimentNoDifference
	case lower > 0:
		o.Result = better
	case upper < 0:
		o.Result = worse
	default:
		o.Message = "too few samples to tell the arms apart"
	}
	return o
}
