// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// conversion compares shares of one's own.
func conversion(mods ...func(*v1alpha1.ExperimentParameters)) *v1alpha1.ExperimentParameters {
	p := &v1alpha1.ExperimentParameters{
		Kind: v1alpha1.ExperimentShare, Events: "sum(increase(purchases_total[$window]))", MinEffect: 0.01, MinSamples: 1000, Confidence: 95,
	}
	for _, m := range mods {
		m(p)
	}

	return p
}

// TestCompared decides between arms by what was counted.
func TestCompared(t *testing.T) {
	lower := func(p *v1alpha1.ExperimentParameters) { p.LowerIsBetter = true }

	cases := map[string]struct {
		reason  string
		p       *v1alpha1.ExperimentParameters
		b, a    armCount
		told    *v1alpha1.ExperimentObservation
		want    v1alpha1.ExperimentResult
		message string
	}{
		"Better":       {"Two points of a percent of so many are no chance.", conversion(), armCount{n: 50000, events: 6000}, armCount{n: 50000, events: 5000}, nil, v1alpha1.ExperimentCanaryBetter, ""},
		"Worse":        {"The same the other way.", conversion(), armCount{n: 50000, events: 5000}, armCount{n: 50000, events: 6000}, nil, v1alpha1.ExperimentBaselineBetter, ""},
		"LowerBetter":  {"More of what is bad is worse.", conversion(lower), armCount{n: 50000, events: 6000}, armCount{n: 50000, events: 5000}, nil, v1alpha1.ExperimentBaselineBetter, ""},
		"NoDifference": {"They are closer than what matters.", conversion(), armCount{n: 100000, events: 10010}, armCount{n: 100000, events: 10000}, nil, v1alpha1.ExperimentNoDifference, ""},
		"Small":        {"A difference that does not matter is none, however sure.", conversion(), armCount{n: 1e8, events: 1.001e7}, armCount{n: 1e8, events: 1e7}, nil, v1alpha1.ExperimentNoDifference, ""},
		"TooFew":       {"They may be apart, or not.", conversion(), armCount{n: 2000, events: 220}, armCount{n: 2000, events: 200}, nil, v1alpha1.ExperimentUndecided, "too few samples to tell the arms apart"},
		"OneArmTooFew": {"Each arm needs its samples.", conversion(), armCount{n: 900, events: 900}, armCount{n: 50000, events: 0}, nil, v1alpha1.ExperimentUndecided, "at least 1,000 samples of each arm are needed"},
		"NoRequests":   {"Nobody came.", conversion(), armCount{}, armCount{n: 50000, events: 5000}, nil, v1alpha1.ExperimentUndecided, "no sample of one of the arms yet"},
		"NoSeries":     {"Arm B does not tell it.", conversion(), armCount{unknown: noData(notFound)}, armCount{n: 50000, events: 5000}, nil, v1alpha1.ExperimentUndecided, ofArmB + notFound},
		"NoShare":      {"That is not a share.", conversion(), armCount{n: 1000, events: 1200}, armCount{n: 50000, events: 5000}, nil, v1alpha1.ExperimentUndecided, moreThanAll},
		"Found": {
			"The bounds hold at all looks together, so that the first result stays.", conversion(),
			armCount{n: 2000, events: 220},
			armCount{n: 2000, events: 200},
			&v1alpha1.ExperimentObservation{Result: v1alpha1.ExperimentCanaryBetter}, v1alpha1.ExperimentCanaryBetter, "",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := compared(tc.p, &arms{canary: tc.b, baseline: tc.a}, tc.told)

			if diff := cmp.Diff(tc.want, got.Result); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.message, got.Message); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestExperimentRates draws experiments at random that are looked at a hundred times each.
// The share of those that find what is not there is that of all looks together.
func TestExperimentRates(t *testing.T) {
	const looks, perLook = 100, 500

	n := 10 * trials()

	cases := map[string]struct {
		reason      string
		a, b        float64
		right       v1alpha1.ExperimentResult
		most, least float64
	}{
		"Equal":     {"At most 5 % of equal arms are found different.", 0.10, 0.10, v1alpha1.ExperimentNoDifference, 0.05, 0},
		"EqualRare": {"The same of rare events.", 0.01, 0.01, v1alpha1.ExperimentNoDifference, 0.05, 0.9},
		"Better":    {"Two points of a percent are found.", 0.10, 0.12, v1alpha1.ExperimentCanaryBetter, 0.05, 0.95},
		"Worse":     {"So are they the other way.", 0.12, 0.10, v1alpha1.ExperimentBaselineBetter, 0.05, 0.95},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, uint64(len(name))))
			wrong, right := 0, 0

			for range n {
				var told *v1alpha1.ExperimentObservation

				by := &arms{}
				for range looks {
					for _, arm := range []struct {
						count *armCount
						share float64
					}{{&by.canary, tc.b}, {&by.baseline, tc.a}} {
						arm.count.n += perLook
						arm.count.events += min(poisson(r, perLook*arm.share), perLook)
					}

					told = compared(conversion(), by, told)
				}

				switch told.Result {
				case tc.right:
					right++
				case v1alpha1.ExperimentUndecided:
				default:
					wrong++
				}
			}

			t.Logf("%d of %d are right, %d are wrong", right, n, wrong)

			// Three standard deviations of what chance alone gives.
			if limit := tc.most + 3*math.Sqrt(tc.most*(1-tc.most)/float64(n)); float64(wrong) > limit*float64(n) {
				t.Errorf("%s: got %d wrong of %d", tc.reason, wrong, n)
			}

			if float64(right) < tc.least*float64(n) {
				t.Errorf("%s: got %d right of %d", tc.reason, right, n)
			}
		})
	}
}

// TestExperimentEpoch counts the arms since the epoch settled, tells what was found, and
// begins anew with another epoch.
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

// TestExperimentKept has what was counted asked for again only after a part of the time.
func TestExperimentKept(t *testing.T) {
	kept := &arms{canary: armCount{n: 1}, at: now}
	a := &asker{
		metrics: v1alpha1.MetricsParameters{Canary: &v1alpha1.CanaryParameters{Slot: "b", Baseline: "a", Experiment: conversion()}},
		found:   discovery{arms: kept},
		now:     now.Add(time.Minute),
	}

	if got := a.compare(t.Context(), 6*time.Hour); got != kept {
		t.Errorf("After six hours a minute changes little, got %+v", got)
	}
}
