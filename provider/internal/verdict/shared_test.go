// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
)

// TestSharedFault: a fault that both revisions have excuses relative checks as well, and what was counted of it does not count.
func TestSharedFault(t *testing.T) {
	checks := []v1alpha1.Check{
		{Name: "success", Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)},
		{Name: "against", Kind: v1alpha1.CheckSuccessRatio, RelativeTo: v1alpha1.RelativeToBaseline},
		{Name: "latency", Kind: v1alpha1.CheckLatency, Percentile: 95, Max: new(50.0)},
	}
	began := metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	cases := map[string]struct {
		reason           string
		canary, baseline slotSeen
		want             string
		again            bool
	}{
		"Both":       {reason: "A scrape more of the canary is no difference.", canary: slotSeen{requests: 1000, failures: 200, upTo: 40}, baseline: slotSeen{requests: 4000, failures: 400, upTo: 40}, want: "SSP", again: true},
		"MuchWorse":  {reason: "Ten times as many failures are one.", canary: slotSeen{requests: 1000, failures: 500, upTo: 40}, baseline: slotSeen{requests: 4000, failures: 200, upTo: 40}, want: "FFP"},
		"CanaryOnly": {reason: "A baseline that is well excuses nothing.", canary: slotSeen{requests: 1000, failures: 50, upTo: 40}, baseline: slotSeen{requests: 4000, upTo: 40}, want: "FFP"},
		"Neither":    {reason: "Both are well.", canary: slotSeen{requests: 1000, upTo: 40}, baseline: slotSeen{requests: 4000, upTo: 40}, want: "PPP"},
		"OtherCheck": {reason: "What both fail does not excuse what only the canary does.", canary: slotSeen{requests: 1000, failures: 200, upTo: 400}, baseline: slotSeen{requests: 4000, failures: 800, upTo: 40}, want: "SIF", again: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := seenAs(map[string]slotSeen{"b": tc.canary, "a": tc.baseline})
			p := &v1alpha1.CanaryParameters{Epoch: 4, Slot: "b", Baseline: "a", MinSamples: 100, Checks: checks}
			e := &promq.Evidence{Window: 2 * time.Minute, Period: 10 * time.Minute, Recent: seen, Whole: seen}
			lookedAt := began.Add(10 * time.Minute)
			o := Canary(&v1alpha1.CanaryObservation{Epoch: 4, StartedAt: began}, p, e, func(string) int { return 1 }, lookedAt)
			var got strings.Builder
			for _, c := range o.Checks {
				got.WriteString(c.Verdicts)
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s\n%+v", tc.reason, diff, o.Checks)
			}
			if again := o.CountedFrom != nil; again != tc.again || again && !o.CountedFrom.Time.Equal(lookedAt) {
				t.Errorf("%s: counted from %v", tc.reason, o.CountedFrom)
			}
			if !o.StartedAt.Equal(&began) {
				t.Errorf("%s: an experiment counts from the beginning, got %s", tc.reason, o.StartedAt)
			}
		})
	}
}
