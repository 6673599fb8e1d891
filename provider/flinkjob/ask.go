// SPDX-License-Identifier: Apache-2.0

package flinkjob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	answer := podask.New(dialer)
	return func(ctx context.Context, p *corev1.Pod, _ int32) (*flink.State, error) {
		body, err := answer(ctx, p)
		if err != nil {
			return nil, err //nolint:wrapcheck // It is a refusal, or says what failed.
		}
		s, err := parse(body)
		if err != nil {
			return nil, &podask.Refusal{Why: err.Error() + ": " + podask.RemedyLogs}
		}
		return s, nil
	}
}

// parse a State. It is one JSON object, and nothing follows it. Fields that this provider does not know are no error, because the companion
// may be newer; phases that it does not know are.
func parse(raw []byte) (*flink.State, error) {
	s, d := &flink.State{}, json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(s); err != nil {
		return nil, errNoState
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
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
