// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podask"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// Bounds of what a coordinator may report. Texts are in bytes.
const (
	stateVersion = 1
	maxCount     = 1_000_000
	maxRate      = 1e9
	maxMissing   = 100
	maxLoss      = 32
	maxURI       = 1024
	maxMessage   = 2048
)

var (
	phases  = []crew.Phase{crew.PhaseGathering, crew.PhaseRunning, crew.PhaseRecovering, crew.PhaseSucceeded, crew.PhaseFailed}
	classes = []crew.Class{crew.ClassInfrastructure, crew.ClassStalled, crew.ClassNonFinite, crew.ClassOutOfMemory, crew.ClassUser}

	errNoState = errors.New("its answer is no State of a run")
)

// parse the State of a run with a number. A word that this provider does not know is an error.
func parse(raw []byte, number int32) (*crew.State, error) {
	s, ok := podask.Decode[crew.State](raw)
	if !ok {
		return nil, errNoState
	}
	switch {
	case s.Version > stateVersion:
		return nil, fmt.Errorf("its State has version %d, and this provider knows versions up to %d", s.Version, stateVersion)
	case s.Run != int(number):
		return nil, errors.New("it coordinates another run")
	case !slices.Contains(phases, s.Phase), s.LastFault != nil && !slices.Contains(classes, s.LastFault.Class):
		return nil, errNoState
	}
	return s, nil
}

// final reports whether a phase does not change any more.
func final(p string) bool { return p == string(crew.PhaseSucceeded) || p == string(crew.PhaseFailed) }

// take over what a coordinator says. A coordinator that was replaced knows nothing of the time before, so that nothing is forgotten that
// it does not know. Node and class of the fault are what is known of its pod.
func (v *view) take(out *v1alpha1.RunObservation, s *crew.State) {
	out.Phase = string(s.Phase)
	out.Attempt = new(max(count(s.Attempt), attempt(out)))
	out.Restarts = max(count(s.Restarts), out.Restarts)
	out.WithoutProgress = count(s.WithoutProgress)
	out.GoodputPercent = new(min(count(s.GoodputPercent), 100))
	out.Missing = v.missing(s.Missing)
	out.Message = words.Heard(s.Message, maxMessage)
	out.Progress = &v1alpha1.RunProgress{
		Step: max(s.Progress.Step, 0), Of: max(s.Progress.Of, 0), Loss: words.Heard(s.Progress.Loss, maxLoss),
		StepsPerMinute: rounded(60 * s.Progress.StepsPerSecond), At: new(metav1.NewTime(v.now)),
	}
	out.OverdueSince, out.Unremoved = nil, words.Heard(s.Unremoved, maxMessage)
	if s.OverdueSince != nil {
		out.OverdueSince = new(v.past(*s.OverdueSince))
	}
	// A part of a URI would name something else.
	if c := s.Checkpoint; c != nil && words.Heard(c.URI, maxURI) == c.URI {
		was := out.Checkpoint
		out.Checkpoint = &v1alpha1.RunCheckpoint{Step: max(c.Step, 0), URI: c.URI, At: v.past(c.At)}
		if was != nil && was.Step == out.Checkpoint.Step && was.URI == out.Checkpoint.URI {
			out.Checkpoint.At = was.At
		}
	}
	if f := s.LastFault; f != nil {
		out.LastFault = v.fault(f)
	}
}

// attempt that is known, 0 at first.
func attempt(o *v1alpha1.RunObservation) int32 {
	if o.Attempt == nil {
		return 0
	}
	return *o.Attempt
}

// missing members, by index. A time that was reported stays as long as there is no other.
func (v *view) missing(said []crew.Missing) []v1alpha1.RunMember {
	since := map[int32]metav1.Time{}
	for _, m := range said {
		if m.Index < 0 || m.Index > maxCount {
			continue
		}
		i, at := int32(m.Index), v.past(m.Since)
		if was, ok := missingSince(v.was.Missing, i); ok && m.Since.After(v.now) {
			at = was
		}
		since[i] = at
	}
	out := make([]v1alpha1.RunMember, 0, len(since))
	for i, at := range since {
		out = append(out, v1alpha1.RunMember{Index: i, Since: at})
	}
	slices.SortFunc(out, func(a, b v1alpha1.RunMember) int { return int(a.Index - b.Index) })
	return out[:min(len(out), maxMissing)]
}

// missingSince is since when a member is missing, if it is.
func missingSince(all []v1alpha1.RunMember, index int32) (metav1.Time, bool) {
	for _, m := range all {
		if m.Index == index {
			return m.Since, true
		}
	}
	return metav1.Time{}, false
}

// past is a time that the API can hold: in whole seconds, after 1970 and not in the future.
func (v *view) past(t time.Time) metav1.Time {
	if t.After(v.now) || t.Before(time.Unix(0, 0)) {
		t = v.now
	}
	return metav1.NewTime(t.UTC().Truncate(time.Second))
}

// count of anything.
func count(n int) int32 { return int32(min(max(n, 0), maxCount)) } //nolint:gosec // It is bounded.

// rounded to three digits: more of a rate would be noise.
func rounded(f float64) float64 {
	if math.IsNaN(f) || f <= 0 {
		return 0
	}
	f, _ = strconv.ParseFloat(strconv.FormatFloat(min(f, maxRate), 'g', 3, 64), 64)
	return f
}
