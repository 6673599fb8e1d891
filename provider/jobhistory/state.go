// SPDX-License-Identifier: Apache-2.0

package jobhistory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/provider/internal/podask"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// Bounds of what a companion may report. Texts are in bytes.
const (
	maxCount   = 1_000_000
	maxMessage = 1024
)

var (
	phases  = []runner.Phase{runner.PhaseRunning, runner.PhaseRecovering, runner.PhaseEnding, runner.PhaseSucceeded, runner.PhaseFailed}
	classes = []runner.Class{runner.ClassUser, runner.ClassOutOfMemory, runner.ClassInfrastructure}
	actions = []runner.Action{runner.ActionRetry, runner.ActionFail, runner.ActionMemory}

	errNoState = errors.New("its answer is no State of a run")
)

// An ask for the State of the companion in a pod. An error is a refusal, or says nothing about the companion.
type ask func(ctx context.Context, p *corev1.Pod, _ int32) (*runner.State, error)

// parse a State. A word that this provider does not know is an error.
func parse(raw []byte, _ int32) (*runner.State, error) {
	s, ok := podask.Decode[runner.State](raw)
	if !ok {
		return nil, errNoState
	}
	f := s.LastFailure
	switch {
	case s.Version > runner.PlanVersion:
		return nil, fmt.Errorf("its State has version %d, and this provider knows versions up to %d", s.Version, runner.PlanVersion)
	case !slices.Contains(phases, s.Phase), f != nil && (!slices.Contains(classes, f.Class) || !slices.Contains(actions, f.Action)):
		return nil, errNoState
	}
	return s, nil
}

// failure as a companion reports it.
func failure(f *runner.Failure, now time.Time) *v1alpha1.ObservedFailure {
	if f == nil {
		return nil
	}
	said := f.Message
	if f.Lines != "" {
		said += "; last lines: " + f.Lines
	}
	return &v1alpha1.ObservedFailure{
		Class: string(f.Class), Action: string(f.Action), ExitCode: int32(min(max(f.ExitCode, -1), 255)), //nolint:gosec // It is bounded.
		At: past(f.At, now), Message: words.Heard(said, maxMessage),
	}
}

// past is a time that the API can hold: in whole seconds, after 1970 and not in the future.
func past(t, now time.Time) metav1.Time {
	if t.After(now) || t.Before(time.Unix(0, 0)) {
		t = now
	}
	return metav1.NewTime(t.UTC().Truncate(time.Second))
}

// count of anything.
func count(n int) int32 { return int32(min(max(n, 0), maxCount)) } //nolint:gosec // It is bounded.
