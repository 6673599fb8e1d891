// SPDX-License-Identifier: Apache-2.0

// Package importing is what the imports of all engines have in common: the loop on the leader, the Secret of the source, what became of
// requests to cut over, and the words of reports.
package importing

import (
	"fmt"
	"strings"
)

const (
	// MaxMessage of a report, in bytes.
	MaxMessage = 2000
	// MaxFinding of a report, in bytes.
	MaxFinding = 1000
	// MaxQuoted is how much text of the source a message repeats, in bytes.
	MaxQuoted = 200
	// MaxFindings that are reported.
	MaxFindings = 16
	// maxNames is how many names a finding has.
	maxNames = 5
)

// Some of the names, and how many more there are.
func Some(names []string) string {
	if len(names) > maxNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
	}
	return strings.Join(names, ", ")
}

// Size in words.
func Size(bytes int64) string {
	if bytes >= 10<<30 {
		return fmt.Sprintf("%d GiB", bytes>>30)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// Shortened text of at most some bytes.
func Shortened(s string, to int) string {
	const more = "…"
	if len(s) <= to {
		return s
	}
	return strings.ToValidUTF8(s[:to-len(more)], "") + more
}

// Stepped bytes: 0 below 1 MiB, else the next power of 2, so that they change seldom.
func Stepped(bytes int64) int64 {
	if bytes < 1<<20 {
		return 0
	}
	step := int64(1 << 20)
	for step < bytes && step < 1<<60 {
		step *= 2
	}
	return step
}

const (
	// slowest rate of changes that is expected before one was seen, in bytes a second.
	slowest = 4 << 20
	// around is what a cut-over takes beside the last changes, in seconds: until nothing writes for sure, what is set at the end, and logins.
	around = 12
	// Near is how many bytes may wait when a cut-over begins.
	Near = 64 << 20
)

// Gap is for how many seconds writes are expected to wait, in steps, by what waits and the rate at which it was applied.
func Gap(behind int64, rate float64) int64 {
	seconds := around + float64(Stepped(behind))/max(rate, slowest)
	for _, step := range []int64{15, 30, 60, 120, 300, 600, 1800, 3600} {
		if seconds <= float64(step) {
			return step
		}
	}
	return 3600
}
