// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
)

func TestDrift(t *testing.T) {
	const pass, fail, insufficient, none = v1alpha1.VerdictPass, v1alpha1.VerdictFail, v1alpha1.VerdictInsufficient, v1alpha1.VerdictNoData
	check := v1alpha1.Check{Name: "data", Kind: v1alpha1.CheckDrift, Query: "scores", Max: new(0.2), Reference: &metav1.Duration{Duration: 24 * time.Hour}}
	even := []float64{2500, 2500, 2500, 2500}
	by := func(off float64) []float64 { return []float64{2500 - off, 2500 - off, 2500 + off, 2500 + off} }
	cases := map[string]struct {
		reason     string
		now, then  []float64
		why        promq.Reading
		relative   bool
		told, want v1alpha1.Verdict
		message    string
		value      float64
	}{
		"None":      {reason: "As it was.", now: even, then: even, want: pass},
		"Some":      {reason: "Less than matters.", now: by(900), then: even, want: pass, value: 0.135},
		"Much":      {reason: "More than matters.", now: by(1250), then: even, want: fail, value: 0.274},
		"Still":     {reason: "What drifted has not come back before it is at half of what matters.", now: by(900), then: even, told: fail, want: fail, value: 0.135},
		"Back":      {reason: "There it has.", now: by(700), then: even, told: fail, want: pass, value: 0.0811},
		"Entering":  {reason: "At the bound nobody knows.", now: by(1085), then: even, told: insufficient, want: insufficient, message: "too few samples in 2m to decide", value: 0.201},
		"Staying":   {reason: "And what was well stays so.", now: by(1085), then: even, told: pass, want: pass, value: 0.201},
		"Few":       {reason: "Too few now.", now: []float64{9, 9}, then: even, want: insufficient, message: "too few samples in 2m to compare, now or 24h0m0s ago: at least 200 are needed"},
		"FewThen":   {reason: "Too few then.", now: even, then: []float64{9, 9}, want: insufficient, message: "too few samples in 2m to compare, now or 24h0m0s ago: at least 200 are needed"},
		"NotNow":    {reason: "None now.", then: even, want: none, message: promq.NotFound},
		"NotThen":   {reason: "None then.", now: even, want: none, message: ofTheReference + promq.NotFound},
		"Buckets":   {reason: "No buckets in common.", now: []float64{500, 500, 500}, then: []float64{500, 500}, want: none, message: noCommonBucket},
		"Reference": {reason: "Nothing to compare with.", now: even, relative: true, want: none, message: noReference},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := promq.NewSample()
			if tc.now != nil {
				s.Distributions[promq.Place{Slot: "a", Check: "data"}] = promq.Distribution{Histogram: summed(tc.now, scoreEnds(len(tc.now)))}
			}
			if tc.then != nil {
				s.References["data"] = promq.Distribution{Histogram: summed(tc.then, scoreEnds(len(tc.then)))}
			}
			c := check
			if tc.relative {
				c.Reference = nil
			}
			o := Judge(c, Evidence{Slot: "a", Recent: s, Window: 2 * time.Minute, Previous: tc.told})
			if o.Is != tc.want || o.Message != tc.message {
				t.Errorf("\n%s\nwant %s %q, got %s %q", tc.reason, tc.want, tc.message, o.Is, o.Message)
			}
			if (o.Value == nil && tc.value != 0) || (o.Value != nil && math.Abs(*o.Value-tc.value) > 0.01*tc.value+0.001) {
				t.Errorf("\n%s\nwant %g, got %+v", tc.reason, tc.value, o)
			}
			if again := Judge(c, Evidence{Slot: "a", Recent: s, Window: 2 * time.Minute, Previous: o.Is}); o.Is != insufficient && again.Is != o.Is {
				t.Errorf("\n%s\nA verdict should stay when nothing changes, got %s and then %s", tc.reason, o.Is, again.Is)
			}
		})
	}
}
