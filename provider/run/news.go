// SPDX-License-Identifier: Apache-2.0

package run

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// Numbers that only grow are written after usual, or after soonest when a share of all steps was done. An hour without a fault makes at
// most six such writes. Each has Crossplane write the Training as well, and 20 writes an hour is what the two may make together.
const (
	soonest = time.Minute
	usual   = 10 * time.Minute
	share   = 0.2
)

// worth reports whether an observation is worth a write.
func worth(was, is v1alpha1.RunObservation, now time.Time) bool {
	if urgent(was, is) {
		return true
	}
	a, b := *was.DeepCopy(), *is.DeepCopy()
	for _, o := range []*v1alpha1.RunObservation{&a, &b} {
		if o.Progress != nil {
			o.Progress.At = nil
		}
	}
	if equality.Semantic.DeepEqual(a, b) {
		return false
	}
	if was.Progress == nil || was.Progress.At == nil {
		return true
	}
	since := now.Sub(was.Progress.At.Time)
	return since >= usual || since >= soonest && (leap(was, is) || was.Checkpoint == nil && is.Checkpoint != nil || len(is.Missing) < len(was.Missing))
}

// urgent reports whether anything has changed but numbers that only grow, and members that came while others are still missing.
func urgent(was, is v1alpha1.RunObservation) bool {
	a, b := *was.DeepCopy(), *is.DeepCopy()
	for _, o := range []*v1alpha1.RunObservation{&a, &b} {
		o.Progress, o.Checkpoint, o.GoodputPercent = nil, nil, nil
	}
	b.WithoutProgress = max(a.WithoutProgress, b.WithoutProgress)
	came := len(b.Missing) > 0
	for _, m := range b.Missing {
		since, ok := missingSince(a.Missing, m.Index)
		came = came && ok && since.Equal(&m.Since)
	}
	if came {
		b.Missing = a.Missing
	}
	return !equality.Semantic.DeepEqual(a, b)
}

// leap reports whether a share of all steps was done.
func leap(was, is v1alpha1.RunObservation) bool {
	return is.Progress != nil && is.Progress.Of > 0 && float64(is.Progress.Step-was.Progress.Step) >= share*float64(is.Progress.Of)
}
