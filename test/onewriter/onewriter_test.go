// SPDX-License-Identifier: Apache-2.0

package onewriter

import (
	"testing"
	"time"
)

func TestDivided(t *testing.T) {
	// write of a member, in milliseconds.
	write := func(member string, from, to int) Write {
		at := func(ms int) time.Time {
			return time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond)
		}
		return Write{Member: member, From: at(from), To: at(to)}
	}
	cases := map[string]struct {
		reason string
		writes []Write
		want   int
	}{
		"None":    {"Nothing was acknowledged.", nil, 0},
		"One":     {"One member leads.", []Write{write("a", 0, 5), write("a", 100, 105), write("a", 200, 205)}, 0},
		"Handed":  {"Another one leads after it.", []Write{write("a", 0, 5), write("a", 100, 105), write("b", 200, 205), write("b", 300, 305)}, 0},
		"Back":    {"And it leads again, some time later.", []Write{write("a", 0, 5), write("b", 4000, 4005), write("a", 8000, 8005)}, 0},
		"Late":    {"An answer that comes late is of a commit before.", []Write{write("a", 0, 900), write("b", 500, 505), write("b", 600, 605)}, 0},
		"Overlap": {"Of writes that overlap either may have been first.", []Write{write("a", 0, 100), write("b", 90, 210), write("a", 200, 300)}, 0},
		"Between": {"Another one took a write within the term of the first.", []Write{write("a", 0, 5), write("b", 50, 55), write("a", 100, 105)}, 1},
		"Both":    {"Both take writes for a while.", []Write{write("b", 50, 55), write("a", 0, 5), write("a", 100, 105), write("b", 150, 155), write("a", 200, 205)}, 3},
		"Asked":   {"Requests that do not wait for each other leave no pause.", []Write{write("a", 0, 150), write("b", 60, 65), write("a", 100, 105)}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Divided(tc.writes); len(got) != tc.want {
				t.Errorf("%s Want %d proofs, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
