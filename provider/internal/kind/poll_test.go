// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

func TestPoll(t *testing.T) {
	cases := map[string]struct {
		reason   string
		ready    xpv2.Condition
		every    time.Duration
		min, max time.Duration
	}{
		"Ready": {
			reason: "What is ready waits for the poll interval, give or take a tenth.",
			ready:  xpv2.Available(),
			every:  10 * time.Minute,
			min:    9 * time.Minute,
			max:    11 * time.Minute,
		},
		"NotReady": {
			reason: "What is not ready is looked at after half a minute.",
			ready:  xpv2.Creating(),
			every:  10 * time.Minute,
			min:    30 * time.Second,
			max:    30 * time.Second,
		},
		"NotReadyAndShort": {
			reason: "An interval that is shorter anyway stays.",
			ready:  xpv2.Creating(),
			every:  5 * time.Second,
			min:    5 * time.Second,
			max:    5 * time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cr := &v1alpha1.Credential{}
			cr.SetConditions(tc.ready)
			for range 100 {
				if got := Poll(cr, tc.every); got < tc.min || got > tc.max {
					t.Fatalf("\n%s\nPoll(...): want %s to %s, got %s", tc.reason, tc.min, tc.max, got)
				}
			}
		})
	}
}
