// SPDX-License-Identifier: Apache-2.0

//go:build comparison && linux

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFill(t *testing.T) {
	fault := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return fault.Add(time.Duration(seconds * float64(time.Second))) }
	rank := func(started, ended float64) *process {
		p := &process{started: at(started)}
		if ended != 0 {
			p.ended = at(ended)
		}
		return p
	}
	cases := map[string]struct {
		reason string
		seen   seen
		want   result
	}{
		"Recovered": {
			reason: "The last rank to stop and the last one to start count.",
			seen: seen{
				fault: fault, furthest: 30, step: at(3), resumed: 20,
				processes: []*process{rank(-9, 0.1), rank(-8, 0.2), rank(1, 0), rank(1.5, 0)},
			},
			want: result{Stopped: 0.2, Started: 1.5, Step: 3, Twice: 10, Starts: 2},
		},
		"InVain": {
			reason: "Ranks that started and ended before the first step are counted, and their time is not the one of the start.",
			seen: seen{
				fault: fault, furthest: 30, step: at(30), resumed: 20,
				processes: []*process{rank(-9, 0.1), rank(-8, 0.2), rank(1, 2), rank(20, 40), rank(21, 40)},
			},
			want: result{Stopped: 0.2, Started: 21, Step: 30, Twice: 10, Starts: 3},
		},
		"Never": {
			reason: "A rank that never stopped is no rank that stopped early.",
			seen:   seen{fault: fault, furthest: 30, processes: []*process{rank(-9, 0), rank(-8, 0.2)}},
			want:   result{Stopped: -1, Started: -1, Step: -1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := &events{seen: tc.seen}
			var got result
			e.fill(&got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
