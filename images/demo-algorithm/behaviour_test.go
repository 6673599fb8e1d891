// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBehaviourWith(t *testing.T) {
	base := Behaviour{LatencyMs: 40, JitterMs: 10, ErrorRate: 0.1}
	cases := map[string]struct {
		reason string
		query  string
		want   Behaviour
		err    string
	}{
		"Nothing": {reason: "What is not named stays.", want: base},
		"One": {
			reason: "One value can be changed alone.",
			query:  "errorRate=0.5",
			want:   Behaviour{LatencyMs: 40, JitterMs: 10, ErrorRate: 0.5},
		},
		"Together": {
			reason: "Values that only fit together are set together.",
			query:  "latencyMs=5&jitterMs=5",
			want:   Behaviour{LatencyMs: 5, JitterMs: 5, ErrorRate: 0.1},
		},
		"Typo": {
			reason: "A misspelt name would otherwise look as if it had worked.",
			query:  "latency=5", err: `cannot set "latency": there are latencyMs, jitterMs, errorRate, failAfterSeconds, scoreShift and workers`,
		},
		"NotANumber": {reason: "The value is quoted.", query: "latencyMs=fast", err: `cannot read latencyMs: "fast" is not a number`},
		"NaN":        {reason: "NaN compares false with every bound.", query: "errorRate=NaN", err: "errorRate must be from 0 to 1"},
		"TooWrong":   {reason: "A share is at most 1.", query: "errorRate=1.1", err: "errorRate must be from 0 to 1"},
		"TooSlow":    {reason: "An hour is a slip of the finger.", query: "latencyMs=3600000", err: "latencyMs must be from 0 to 60000"},
		"Workers": {
			reason: "A server can become smaller while it runs.",
			query:  "workers=2",
			want:   Behaviour{LatencyMs: 40, JitterMs: 10, ErrorRate: 0.1, Workers: 2},
		},
		"Shift": {
			reason: "What a server predicts can drift while it runs.",
			query:  "scoreShift=-0.25",
			want:   Behaviour{LatencyMs: 40, JitterMs: 10, ErrorRate: 0.1, ScoreShift: -0.25},
		},
		"FailLater": {
			reason: "A server can be good at first.",
			query:  "failAfterSeconds=90&errorRate=0.2",
			want:   Behaviour{LatencyMs: 40, JitterMs: 10, ErrorRate: 0.2, FailAfterSeconds: 90},
		},
		"ShiftTooFar":     {reason: "All scores are at one end by then.", query: "scoreShift=1.1", err: "scoreShift must be from -1 to 1"},
		"FailBeforeStart": {reason: "There is no time before the start.", query: "failAfterSeconds=-1", err: "failAfterSeconds must be from 0 to 604800"},
		"HalfAWorker":     {reason: "Nobody computes half a prediction.", query: "workers=0.5", err: `cannot read workers: "0.5" is not a whole number`},
		"FewerThanNone":   {reason: "0 has a meaning of its own.", query: "workers=-1", err: "workers must be from 0 to 10000"},
		"TooManyWorkers":  {reason: "No machine has them.", query: "workers=10001", err: "workers must be from 0 to 10000"},
		"JitterAboveMean": {
			reason: "A time cannot be negative.",
			query:  "jitterMs=41", err: "jitterMs must be from 0 to latencyMs",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			query, err := url.ParseQuery(tc.query)
			if err != nil {
				t.Fatal(err)
			}
			got, err := base.with(query)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Fatalf("%s\nwith(%q): want error %q, got %v", tc.reason, tc.query, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\nwith(%q): %v", tc.reason, tc.query, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nwith(%q): -want, +got:\n%s", tc.reason, tc.query, diff)
			}
		})
	}
}

func TestLatency(t *testing.T) {
	b := Behaviour{LatencyMs: 40, JitterMs: 10}
	for random, want := range map[float64]time.Duration{
		0:   30 * time.Millisecond,
		0.5: 40 * time.Millisecond,
		1:   50 * time.Millisecond,
	} {
		if got := b.latency(random); got != want {
			t.Errorf("latency(%v): want %s, got %s", random, want, got)
		}
	}
}

func TestFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		b      Behaviour
		random float64
		ran    time.Duration
		want   bool
	}{
		"Never":  {reason: "A rate of 0 fails nothing, not even for the least random number.", b: Behaviour{}},
		"Always": {reason: "A rate of 1 fails all.", b: Behaviour{ErrorRate: 1}, random: 0.999, want: true},
		"Below":  {reason: "A random number below the rate is a failure.", b: Behaviour{ErrorRate: 0.5}, random: 0.49, want: true},
		"At":     {reason: "A random number at the rate is not.", b: Behaviour{ErrorRate: 0.5}, random: 0.5},
		"NotYet": {reason: "Nothing fails before its time.", b: Behaviour{ErrorRate: 1, FailAfterSeconds: 90}, ran: 90*time.Second - 1},
		"Now":    {reason: "And then it does.", b: Behaviour{ErrorRate: 1, FailAfterSeconds: 90}, ran: 90 * time.Second, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.b.fails(tc.random, tc.ran); got != tc.want {
				t.Errorf("%s\n%+v.fails(%v, %s): want %t, got %t", tc.reason, tc.b, tc.random, tc.ran, tc.want, got)
			}
		})
	}
}

func TestShifted(t *testing.T) {
	for _, tc := range []struct{ score, shift, want float64 }{
		{0.5, 0, 0.5}, {0.5, 0.25, 0.75}, {0.5, -0.25, 0.25}, {0.9, 0.25, 1}, {0.1, -0.25, 0},
	} {
		if got := (Behaviour{ScoreShift: tc.shift}).shifted(tc.score); got != tc.want {
			t.Errorf("a score of %v shifted by %v: want %v, got %v", tc.score, tc.shift, tc.want, got)
		}
	}
}
