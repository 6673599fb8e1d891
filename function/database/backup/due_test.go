// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"
	"time"
)

func TestLongestPause(t *testing.T) {
	for schedule, want := range map[string]time.Duration{
		"0 */6 * * *": 6 * time.Hour, "30 2 * * *": 24 * time.Hour, "0 1 * * 1-5": 72 * time.Hour, "0 0 1 * *": 31 * 24 * time.Hour,
	} {
		if got := LongestPause(schedule); got != want {
			t.Errorf("the longest pause of %q is %s, want %s", schedule, got, want)
		}
	}
}
