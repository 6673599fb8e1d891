// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"math"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	ofTheReference = "of the reference: "
	noReference    = "there is no reference to compare with"
)

// drift of what a slot tells from what all slots told some time ago. It is entered
// beyond doubt, and left at half of what is asked.
func (o *opinion) drift(c v1alpha1.Check, at place, s *sample, m *v1alpha1.MetricsParameters, told v1alpha1.Verdict) {
	if c.Reference == nil {
		o.Verdict, o.Message = v1alpha1.VerdictNoData, noReference

		return
	}

	now, then := s.distribution(at), s.reference(c.Name)
	if o.unknown(now.reading) {
		return
	}

	if o.unknown(then.reading) {
		o.Message = ofTheReference + o.Message

		return
	}

	n := math.Round(now.samples())
	o.Samples = new(int64(n))

	if n < fewestCompared || math.Round(then.samples()) < fewestCompared {
		o.Verdict = v1alpha1.VerdictInsufficient
		o.Message = fmt.Sprintf("too few samples in %s to compare, now or %s ago: at least %d are needed", window(m), c.Reference.Duration, fewestCompared)

		return
	}

	both, ok := pairOf(now.histogram, then.histogram)
	if !ok {
		o.Verdict, o.Message = v1alpha1.VerdictNoData, noCommonBucket

		return
	}

	d := both.distance(c.Method)
	o.distance(d.value, d.bounds(confident))
	o.sigma = d.sigma
	o.Verdict = steadily(c, d, told)

	if o.Verdict == v1alpha1.VerdictInsufficient {
		o.Message = fmt.Sprintf("too few samples in %s to tell", window(m))
	}
}

func (o *opinion) distance(value float64, s span) {
	o.Value, o.Lower, o.Upper = new(rounded(value, digits)), new(rounded(s.lower, digits)), new(rounded(s.upper, digits))
}

// steadily is the verdict on a distance. What is told stays until the distance is
// clearly another one.
func steadily(c v1alpha1.Check, d distance, told v1alpha1.Verdict) v1alpha1.Verdict {
	at := span{d.value, d.value}

	if told == v1alpha1.VerdictFail {
		if c.Max != nil {
			c.Max = new(*c.Max / 2)
		}

		return compare(c, at)
	}

	switch {
	case compare(c, d.bounds(certain)) == v1alpha1.VerdictFail:
		return v1alpha1.VerdictFail
	case told == v1alpha1.VerdictPass, compare(c, at) == v1alpha1.VerdictPass:
		return v1alpha1.VerdictPass
	default:
		return v1alpha1.VerdictInsufficient
	}
}
