// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"math"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

// A fault that canary and baseline share, as when something that both need is down, shows nothing about the canary. It is no
// verdict of a slot that serves, which has no baseline.
const shared v1alpha1.Verdict = "Shared"

// tolerated is how many times as often as a baseline that fails a check a canary may fail, too. Prometheus scrapes the pods of
// the two at different moments: of a fault that has just begun it has seen a scrape more of the one than of the other.
const tolerated = 3

// muchWorse than a baseline that fails as well: by more than chance and moments explain.
func muchWorse(canary, baseline stats.Outcomes) bool {
	return 1-canary.Share() > tolerated*(1-baseline.Share()) && stats.OddsWorse(canary, baseline, 0) >= stats.EnoughOddsShared
}

// within are the requests of a slot that take no longer than a time, as outcomes.
func within(h stats.Histogram, most float64) stats.Outcomes {
	if h == nil {
		return stats.Outcomes{}
	}
	n := math.Round(h.Samples())
	return stats.Outcomes{N: n, Failures: min(max(n-math.Round(h.Within(most)), 0), n)}
}

// excused reports whether the relative verdict on a canary is explained by a fault that another check shows both to share.
func (v Verdict) excused(c v1alpha1.Check) bool {
	switch {
	case v.Is != v1alpha1.VerdictFail || c.RelativeTo == "":
		return false
	case v.Value == nil || v.Baseline == nil:
		return true
	case c.Kind == v1alpha1.CheckSuccessRatio:
		return 1-*v.Value <= tolerated*(1-*v.Baseline)
	case c.Kind == v1alpha1.CheckLatency:
		return *v.Value <= tolerated
	default:
		return true
	}
}
