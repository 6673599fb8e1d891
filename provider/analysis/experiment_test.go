// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"testing"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// TestExperimentEpoch counts the arms since the epoch settled, reports the result, and begins again with another epoch.
func TestExperimentEpoch(t *testing.T) {
	p := &prom{slots: map[string]told{"a": algorithm(50000, 5000, 2), "b": algorithm(50000, 500, 1)}}
	one := pod("reco-b-1", slot("b"), ready)
	s := newStand(t, p, nil, tried(func(m *v1alpha1.MetricsParameters) {
		m.Canary.Experiment = &v1alpha1.ExperimentParameters{
			Kind: v1alpha1.ExperimentSuccessRatio, MinEffect: 0.01, MinSamples: 1000, Confidence: 95,
		}
	}), &one)
	s.reconcile()
	if e := s.pass(3).Experiment; e != nil {
		t.Errorf("While it settles nothing counts, got %+v", e)
	}
	e := s.pass(1).Experiment
	if e == nil || e.Result != v1alpha1.ExperimentCanaryBetter || e.Canary.Samples != 50000 || e.Canary.Value != 0.99 || e.Baseline.Value != 0.9 || *e.Effect != 0.09 {
		t.Errorf("One failure in a hundred is better than one in ten, got %+v", e)
	}
	s.change(func(m *v1alpha1.MetricsParameters) { m.Canary.Epoch = 42 })
	s.reconcile()
	if e := s.canary().Experiment; e != nil {
		t.Errorf("Another epoch should begin with nothing, got %+v", e)
	}
}
