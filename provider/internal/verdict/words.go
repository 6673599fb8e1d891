// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

// hugeOdds are so great that their number does not matter.
const hugeOdds = 1_000_000

// grouped digits of a whole number: 1,043.
func grouped(n float64) string {
	s := strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// percent of a share: 98.2 %.
func percent(share float64) string {
	return strconv.FormatFloat(stats.Rounded(100*stats.RoundedShare(share), 12), 'f', -1, 64) + " %"
}

// figure of a value, to three digits.
func figure(v float64) string { return strconv.FormatFloat(stats.Rounded(v, digits), 'g', -1, 64) }

func inMilliseconds(v float64) string { return figure(v) + " ms" }

// timesBaseline is a ratio.
func timesBaseline(v float64) string {
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'g', -1, 64) + " times"
}

// oddsOf a test: 340:1.
func oddsOf(v float64) string {
	if v >= hugeOdds {
		return "more than " + grouped(hugeOdds) + ":1"
	}
	return grouped(v) + ":1"
}

// lasting about so long.
func lasting(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", math.Ceil(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", math.Ceil(d.Minutes()))
	case d < 200*time.Hour:
		return fmt.Sprintf("%.0f h", math.Ceil(d.Hours()))
	default:
		return "weeks"
	}
}

// demand of a check, in words.
func demand(c v1alpha1.Check, in func(float64) string) string {
	switch {
	case c.Min != nil && c.Max != nil:
		return fmt.Sprintf("from %s to %s asked", in(*c.Min), in(*c.Max))
	case c.Min != nil:
		return fmt.Sprintf("at least %s asked", in(*c.Min))
	case c.Max != nil:
		return fmt.Sprintf("at most %s asked", in(*c.Max))
	default:
		return "nothing asked"
	}
}
