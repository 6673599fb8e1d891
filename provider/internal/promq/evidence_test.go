// SPDX-License-Identifier: Apache-2.0

package promq

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// TestExperimentKept has what was counted asked for again only after a part of the time.
func TestExperimentKept(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	kept := &Arms{Canary: ArmCount{N: 1}, At: now}
	m := &v1alpha1.MetricsParameters{Canary: &v1alpha1.CanaryParameters{Slot: "b", Baseline: "a", Experiment: &v1alpha1.ExperimentParameters{
		Kind: v1alpha1.ExperimentShare, Events: "sum(increase(purchases_total[$window]))", MinEffect: 0.01, MinSamples: 1000, Confidence: 95,
	}}}
	a := &Asker{Found: Discovery{Arms: kept}, Now: now.Add(time.Minute)}
	if got := a.count(t.Context(), m, 6*time.Hour); got != kept {
		t.Errorf("After six hours a minute changes little, got %+v", got)
	}
}
