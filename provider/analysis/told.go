// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"math"
	"slices"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	// apart is the share by which a number has to leave the one that is told.
	apart = 0.25

	// byChance is how many standard deviations chance may explain. What is told was a
	// matter of chance itself, so that the difference has √2 of them: in 120 windows an
	// hour none is further off than four of those.
	byChance = 4 * math.Sqrt2
)

// tell what is thought now, or what was told before when nothing of it has changed:
// a verdict, a message, or a number by more than a quarter and by more than chance
// explains. When one thing has changed, all is told as it is now.
func tell(told []v1alpha1.MetricObservation, now []opinion) []v1alpha1.MetricObservation {
	changed := len(told) != len(now)

	fresh := make([]v1alpha1.MetricObservation, 0, len(now))

	for _, o := range now {
		i := slices.IndexFunc(told, func(t v1alpha1.MetricObservation) bool { return t.Slot == o.Slot && t.Name == o.Name })
		changed = changed || i < 0 || o.differs(told[i])
		fresh = append(fresh, o.MetricObservation)
	}

	switch {
	case len(fresh) == 0:
		return nil
	case !changed:
		return told
	default:
		return fresh
	}
}

// differs tells whether an opinion is another one than what was told.
func (o *opinion) differs(told v1alpha1.MetricObservation) bool {
	if o.Verdict != told.Verdict || o.Message != told.Message {
		return true
	}

	// A value that is made of too few requests says nothing, only their number does.
	if o.Verdict != v1alpha1.VerdictInsufficient {
		if (o.Value == nil) != (told.Value == nil) || o.Value != nil && moved(*told.Value, *o.Value, o.sigma) {
			return true
		}
	}

	if (o.Samples == nil) != (told.Samples == nil) {
		return true
	}

	if o.Samples == nil {
		return false
	}

	// The number of what arrives at random has its mean as its variance.
	was, is := float64(*told.Samples), float64(*o.Samples)

	return moved(was, is, math.Sqrt(max(was, is)))
}

// moved tells whether a number has left the one that is told.
func moved(told, now, sigma float64) bool {
	off := math.Abs(now - told)

	return off > apart*math.Abs(told) && off > byChance*sigma
}
