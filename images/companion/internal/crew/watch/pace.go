// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"time"
)

// Bounds of what is learned.
const (
	paceSamples = 1000
	paceKnown   = 20
	paceFactor  = 10
	// saveFactor is how much longer than the longest one a checkpoint may take.
	saveFactor = 2

	minStep = time.Minute
	maxStep = 30 * time.Minute
)

// A Pace learns how long the steps of an attempt take.
type Pace struct {
	samples []time.Duration
	next    int
	steps   int64
	save    time.Duration
}

// Steps that took some time together.
func (p *Pace) Steps(n int64, took time.Duration) {
	if n < 1 || took < 0 {
		return
	}
	p.steps += n
	each := took / time.Duration(n)
	// Many steps at once are fast ones: a few samples of them are enough.
	for range min(n, paceKnown) {
		if len(p.samples) < paceSamples {
			p.samples = append(p.samples, each)
			continue
		}
		p.samples[p.next] = each
		p.next = (p.next + 1) % paceSamples
	}
}

// Saved is how long the ranks made no step before a checkpoint was reported.
func (p *Pace) Saved(took time.Duration) { p.save = max(p.save, took) }

// Budget for a step, and whether enough is known: ten times the 99th percentile or twice the longest checkpoint, doubled for each stall
// so that a pause that is taken for one is not taken for one for ever, from a minute to half an hour.
func (p *Pace) Budget(stalls int) (time.Duration, bool) {
	if p.steps < paceKnown {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(p.samples))
	slow := sorted[min(len(sorted)-1, len(sorted)*99/100)]
	budget := min(max(paceFactor*slow, saveFactor*p.save, minStep), maxStep)
	for range stalls {
		budget = min(2*budget, maxStep)
	}
	return budget, true
}
