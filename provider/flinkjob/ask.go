// SPDX-License-Identifier: Apache-2.0

package flinkjob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/podask"
)

const (
	// askEvery is the longest time between two looks at a stream.
	askEvery = 15 * time.Second

	stateVersion = 1
)

var (
	phases = []flink.Phase{
		flink.PhaseStarting, flink.PhaseRunning, flink.PhaseRestarting, flink.PhaseStopping, flink.PhaseStopped, flink.PhaseFinished,
		flink.PhaseCanceled, flink.PhaseBlocked,
	}

	errNoState = errors.New("its answer is no State of a stream")
)

// newAsker asks the companion in a pod for its State. A revision that is edited has another number, so that none is expected.
func newAsker(dialer func(net.Dialer) outside.Dial) func(ctx context.Context, p *corev1.Pod, _ int32) (*flink.State, error) {
	return podask.Parsed(podask.New(dialer), parse)
}

// parse a State. A phase that this provider does not know is an error.
func parse(raw []byte, _ int32) (*flink.State, error) {
	s, ok := podask.Decode[flink.State](raw)
	if !ok {
		return nil, errNoState
	}
	switch {
	case s.Version > stateVersion:
		return nil, fmt.Errorf("its State has version %d, and this provider knows versions up to %d", s.Version, stateVersion)
	case s.Revision < 1 || s.Revision > maxCount || !slices.Contains(phases, s.Phase):
		return nil, errNoState
	}
	return s, nil
}
