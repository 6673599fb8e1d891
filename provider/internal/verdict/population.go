// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"
)

const (
	// offByChance is how many standard deviations the share of the canary may be off by chance.
	offByChance = 3
	// offAnyway is the part of its share that it may be off besides: scrapes of the two slots are not of the same moment, and
	// Gateways do not draw perfectly.
	offAnyway = 0.1
)

// incomparable is why the requests of canary and baseline are not drawn from the same population, or empty. Each request that is
// drawn reaches the canary with the same probability, so that their numbers show whether others reach one of the two.
func (j judge) incomparable() string {
	if !j.relative() || j.Percent == nil {
		return ""
	}
	canary, baseline := j.Whole.Of(j.Slot).Requests, j.Whole.Of(j.Baseline).Requests
	if !canary.Known() || !baseline.Known() {
		return ""
	}
	n, share := canary.Value+baseline.Value, float64(*j.Percent)/100
	expected := n * share
	off, chance := math.Abs(canary.Value-expected), offByChance*math.Sqrt(n*share*(1-share))
	if off <= chance+offAnyway*expected {
		return ""
	}
	whose := "the baseline gets requests that the candidate cannot get, for instance from clients of the Service"
	if canary.Value > expected {
		whose = "the candidate gets requests that the baseline does not get"
	}
	return fmt.Sprintf("%s of %s requests reached the candidate, where %s of them should at %d %%: %s, so that the two are not comparable",
		grouped(canary.Value), grouped(n), grouped(expected), *j.Percent, whose)
}
