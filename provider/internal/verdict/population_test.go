// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
)

// counts of the requests of a slot, none of which failed.
func counts(n float64) *promq.Measures { return &promq.Measures{Requests: promq.Reading{Value: n}} }

func TestIncomparable(t *testing.T) {
	against := v1alpha1.Check{Name: "success-against-baseline", Kind: v1alpha1.CheckSuccessRatio, Max: new(0.0025), RelativeTo: v1alpha1.RelativeToBaseline}
	absolute := v1alpha1.Check{Name: "success", Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)}
	for name, tc := range map[string]struct {
		reason           string
		check            v1alpha1.Check
		canary, baseline float64
		percent          *int32
		want             string
	}{
		"AsDrawn":      {"a fifth of all", against, 2000, 8000, new(int32(20)), "P"},
		"ByChance":     {"three standard deviations are 120 requests", against, 2110, 7890, new(int32(20)), "P"},
		"Others":       {"other clients reach the baseline", against, 2000, 16000, new(int32(20)), "I: 2,000 of 18,000 requests reached the candidate, where 3,600 of them should at 20 %: the baseline gets requests that the candidate cannot get"},
		"Chosen":       {"or the candidate", against, 6000, 8000, new(int32(20)), "I: 6,000 of 14,000 requests reached the candidate, where 2,800 of them should at 20 %: the candidate gets requests that the baseline does not get"},
		"FewAreChance": {"a few of a few are chance", against, 10, 90, new(int32(20)), "I: 10 requests, at least 100 are needed"},
		"NotDrawn":     {"where nothing is drawn, nothing is known of the numbers", against, 2000, 16000, nil, "P"},
		"Absolute":     {"an absolute check is about the candidate alone", absolute, 2000, 16000, new(int32(20)), "P"},
	} {
		t.Run(name, func(t *testing.T) {
			s := promq.NewSample()
			s.Slots["b"], s.Slots["a"] = counts(tc.canary), counts(tc.baseline)
			v := Judge(tc.check, Evidence{
				Slot: "b", Baseline: "a", Percent: tc.percent, Canary: true, MinSamples: 100, Ready: func(string) int { return 1 },
				Recent: s, Whole: s, Window: time.Minute, Period: time.Minute,
			})
			got := string(v.Is[:1])
			if v.Message != "" {
				got += ": " + v.Message
			}
			if !strings.HasPrefix(got, tc.want) || v.Incomparable != strings.Contains(tc.want, "should at") {
				t.Errorf("%s: want %q, got %q (incomparable: %t)", tc.reason, tc.want, got, v.Incomparable)
			}
		})
	}
}

// TestTrial shows what is reported of checks that are tried on the live slot: only whether they can be measured.
func TestTrial(t *testing.T) {
	const why = "Prometheus scrapes no pod of this slot"
	m := &v1alpha1.MetricsParameters{Slots: []string{"a", "b"}, Trial: []v1alpha1.Check{
		{Name: "success", Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)},
		{Name: "success-against-baseline", Kind: v1alpha1.CheckSuccessRatio, Max: new(0.0025), RelativeTo: v1alpha1.RelativeToBaseline},
		{Name: "drift", Kind: v1alpha1.CheckDrift, Query: "q", Max: new(0.2), RelativeTo: v1alpha1.RelativeToBaseline},
		{Name: "mine", Kind: v1alpha1.CheckQuery, Query: "q", Max: new(1.0)},
	}}
	ready := func(string) int { return 1 }
	report := func(s promq.Sample) string {
		var words []string
		for _, o := range Trial(m, s, ready) {
			words = append(words, o.Name+" "+string(o.Verdict)+" "+o.Message)
		}
		return strings.Join(words, "\n")
	}
	failing := promq.NewSample()
	failing.Slots["a"] = &promq.Measures{Requests: promq.Reading{Value: 100}, Failures: promq.Reading{Value: 100}}
	failing.Checks[promq.Place{Slot: "a", Check: "mine"}] = promq.Reading{Value: 7}
	unscraped := promq.NewSample()
	unscraped.Slots["a"] = &promq.Measures{Requests: promq.NoData(why), Failures: promq.NoData(why)}
	unscraped.Checks[promq.Place{Slot: "a", Check: "mine"}] = promq.NoData(promq.NotFound)
	for _, tc := range []struct {
		reason string
		sample promq.Sample
		want   string
	}{
		{
			"what a check would decide of the live revision is another matter, but a histogram that is not there is not", failing,
			"success Pass \nsuccess-against-baseline Pass \ndrift NoData " + promq.NotFound + "\nmine Pass ",
		},
		{
			"what is not scraped cannot be measured", unscraped,
			"success NoData " + why + "\nsuccess-against-baseline NoData " + why + "\ndrift NoData " + promq.NotFound + "\nmine NoData " + promq.NotFound,
		},
	} {
		if got := report(tc.sample); got != tc.want {
			t.Errorf("%s:\nwant %s\ngot  %s", tc.reason, tc.want, got)
		}
	}
}
