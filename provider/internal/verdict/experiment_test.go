// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
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

// TestExperiment decides between arms by what was counted.
func TestExperiment(t *testing.T) {
	lower := func(p *v1alpha1.ExperimentParameters) { p.LowerIsBetter = true }
	cases := map[string]struct {
		reason  string
		p       *v1alpha1.ExperimentParameters
		b, a    promq.ArmCount
		told    *v1alpha1.ExperimentObservation
		want    v1alpha1.ExperimentResult
		message string
	}{
		"Better":       {"Two points of a percent of so many are no chance.", conversion(), promq.ArmCount{N: 50000, Events: 6000}, promq.ArmCount{N: 50000, Events: 5000}, nil, v1alpha1.ExperimentCanaryBetter, ""},
		"Worse":        {"The same the other way.", conversion(), promq.ArmCount{N: 50000, Events: 5000}, promq.ArmCount{N: 50000, Events: 6000}, nil, v1alpha1.ExperimentBaselineBetter, ""},
		"LowerBetter":  {"More of what is bad is worse.", conversion(lower), promq.ArmCount{N: 50000, Events: 6000}, promq.ArmCount{N: 50000, Events: 5000}, nil, v1alpha1.ExperimentBaselineBetter, ""},
		"NoDifference": {"They are closer than what matters.", conversion(), promq.ArmCount{N: 100000, Events: 10010}, promq.ArmCount{N: 100000, Events: 10000}, nil, v1alpha1.ExperimentNoDifference, ""},
		"Small":        {"A difference that does not matter is none, however sure.", conversion(), promq.ArmCount{N: 1e8, Events: 1.001e7}, promq.ArmCount{N: 1e8, Events: 1e7}, nil, v1alpha1.ExperimentNoDifference, ""},
		"TooFew":       {"They may be apart, or not.", conversion(), promq.ArmCount{N: 2000, Events: 220}, promq.ArmCount{N: 2000, Events: 200}, nil, v1alpha1.ExperimentUndecided, "too few samples to tell the arms apart"},
		"OneArmTooFew": {"Each arm needs its samples.", conversion(), promq.ArmCount{N: 900, Events: 900}, promq.ArmCount{N: 50000, Events: 0}, nil, v1alpha1.ExperimentUndecided, "at least 1,000 samples of each arm are needed"},
		"NoRequests":   {"Nobody came.", conversion(), promq.ArmCount{}, promq.ArmCount{N: 50000, Events: 5000}, nil, v1alpha1.ExperimentUndecided, "no sample of one of the arms yet"},
		"NoSeries":     {"Arm B does not tell it.", conversion(), promq.ArmCount{Unknown: promq.NoData(promq.NotFound)}, promq.ArmCount{N: 50000, Events: 5000}, nil, v1alpha1.ExperimentUndecided, ofArmB + promq.NotFound},
		"NoShare":      {"That is not a share.", conversion(), promq.ArmCount{N: 1000, Events: 1200}, promq.ArmCount{N: 50000, Events: 5000}, nil, v1alpha1.ExperimentUndecided, moreThanAll},
		"Found": {
			"The bounds hold at all looks together, so that the first result stays.", conversion(),
			promq.ArmCount{N: 2000, Events: 220},
			promq.ArmCount{N: 2000, Events: 200},
			&v1alpha1.ExperimentObservation{Result: v1alpha1.ExperimentCanaryBetter}, v1alpha1.ExperimentCanaryBetter, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Experiment(tc.p, &promq.Arms{Canary: tc.b, Baseline: tc.a}, tc.told)
			if diff := cmp.Diff(tc.want, got.Result); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.message, got.Message); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestExperimentRates draws experiments at random that are looked at a hundred times each. The share of those that find what is
// not there is that of all looks together.
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
				by := &promq.Arms{}
				for range looks {
					for _, arm := range []struct {
						count *promq.ArmCount
						share float64
					}{{&by.Canary, tc.b}, {&by.Baseline, tc.a}} {
						arm.count.N += perLook
						arm.count.Events += min(poisson(r, perLook*arm.share), perLook)
					}
					told = Experiment(conversion(), by, told)
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
