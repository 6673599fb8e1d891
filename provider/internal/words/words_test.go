// SPDX-License-Identifier: Apache-2.0

package words

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestSteady(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		said   string
		want   string
	}{
		"PostgreSQL": {
			reason: "Time, zone and process number of a server change with each attempt.",
			said:   "2026-11-22 12:00:00.123 UTC [42] FATAL:  could not write to file",
			want:   "FATAL: could not write to file",
		},
		"PostgreSQLOffset": {
			reason: "A zone without a name is an offset.",
			said:   "2026-11-22 12:00:00.123 +03 [42] FATAL:  could not write to file",
			want:   "FATAL: could not write to file",
		},
		"Patroni": {
			reason: "The level of a message is no time zone.",
			said:   "2026-11-22 12:00:00,123 WARNING: no leader",
			want:   "WARNING: no leader",
		},
		"Klog": {
			reason: "A line of klog begins with level, time and thread.",
			said:   "E1122 12:00:00.123456       1 main.go:7] cannot open the model",
			want:   "main.go:7] cannot open the model",
		},
		"Syslog": {
			reason: "Months may have names.",
			said:   "Sun Nov 22 12:00:00 UTC 2026 cannot open the model",
			want:   "cannot open the model",
		},
		"Pod": {
			reason: "The name of the pod differs from pod to pod.",
			said:   "reco-a-x7k2p: pid 7 waited 1.5s",
			want:   "the pod: pid … waited …",
		},
		"Lines": {
			reason: "All is told on one line, without what cannot be printed.",
			said:   "one\n\ttwo\x00\xff three.\n",
			want:   "one two three",
		},
		"Nothing": {
			reason: "Nothing stays nothing.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Steady(tc.said, "reco-a-x7k2p")); diff != "" {
				t.Errorf("%s\nSteady(%q): -want, +got:\n%s", tc.reason, tc.said, diff)
			}
		})
	}
}

func TestBounded(t *testing.T) {
	long := strings.Repeat("ä", MaxHeard)
	for n := 3; n < 20; n++ {
		got := Bounded(long, n)
		if len(got) > n || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("Bounded(…, %d) = %q: must hold whole characters, at most %d bytes, and show that it was cut", n, got, n)
		}
	}
	if got := Bounded("short", 5); got != "short" {
		t.Errorf("Bounded: what fits must stay: got %q", got)
	}
}
