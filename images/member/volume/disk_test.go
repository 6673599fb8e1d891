// SPDX-License-Identifier: Apache-2.0

package volume

import "testing"

func TestStep(t *testing.T) {
	cases := map[string]struct {
		reason          string
		before, percent int
		want            int
	}{
		"First":  {"It is rounded down.", 0, 87, 85},
		"Up":     {"A step up is told at once.", 85, 90, 90},
		"Same":   {"Within a step nothing is told.", 85, 89, 85},
		"Border": {"A little less is not told, or it would go back and forth.", 85, 83, 85},
		"Down":   {"More is.", 85, 82, 80},
		"Grown":  {"A volume that has grown is.", 100, 52, 50},
		"Full":   {"The last step is that of a full volume.", 95, 100, 100},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Step(tc.before, tc.percent); got != tc.want {
				t.Errorf("\n%s\nStep(%d, %d): want %d, got %d", tc.reason, tc.before, tc.percent, tc.want, got)
			}
		})
	}
}
