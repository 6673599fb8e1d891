// SPDX-License-Identifier: Apache-2.0

package promq

import (
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/modelserver"
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

// TestPace shows how early there is evidence: by how often pods are scraped.
func TestPace(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                        string
		most                          float64
		scrapes, asked, settle, least time.Duration
	}{
		"Unknown": {"without a scrape in a minute nothing is shorter than asked", 0, 0, 30 * time.Second, 30 * time.Second, LeastPeriod},
		"Often":   {"Gateways take their time, too", 30, 2 * time.Second, 30 * time.Second, shortestSettle, ShortestPeriod},
		"Five":    {"two scrapes and a half", 12, 5 * time.Second, 10 * time.Second, 5 * time.Second, 12500 * time.Millisecond},
		"Fifteen": {"an increase takes two scrapes", 4, 15 * time.Second, 30 * time.Second, 15 * time.Second, LeastPeriod},
		"Missed":  {"one that is missed makes it longer", 11, 6 * time.Second, 30 * time.Second, 6 * time.Second, 15 * time.Second},
		"Asked":   {"never longer than asked", 2, 30 * time.Second, 10 * time.Second, 10 * time.Second, LeastPeriod},
	} {
		t.Run(name, func(t *testing.T) {
			line := func(v float64) *model.Sample {
				return &model.Sample{Metric: model.Metric{modelserver.LabelMeasure: modelserver.MeasureScrapes}, Value: model.SampleValue(v)}
			}
			d := Discovery{Scrapes: scrapes(model.Vector{line(tc.most), line(tc.most / 2)})}
			if d.Scrapes != tc.scrapes || d.Settle(tc.asked) != tc.settle || d.LeastPeriod() != tc.least {
				t.Errorf("%s: want %s, %s and %s, got %s, %s and %s", tc.reason, tc.scrapes, tc.settle, tc.least, d.Scrapes, d.Settle(tc.asked), d.LeastPeriod())
			}
		})
	}
}
