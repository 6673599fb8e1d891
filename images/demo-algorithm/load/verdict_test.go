// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A call at a second since the start, which a version answered, or which failed.
type call struct {
	second  float64
	version string
	err     error
}

// answers of a version, each tenth of a second.
func answers(version string, from, to float64) []call {
	var calls []call
	for i := int(from * 10); i < int(to*10); i++ {
		calls = append(calls, call{second: float64(i) / 10, version: version})
	}
	return calls
}

// failures at the given seconds.
func failures(err error, seconds ...float64) []call {
	calls := make([]call, 0, len(seconds))
	for _, s := range seconds {
		calls = append(calls, call{second: s, err: err})
	}
	return calls
}

func reported(lists ...[]call) *Report {
	r := newReport()
	for _, list := range lists {
		for _, c := range list {
			r.count(outcome{version: c.version, err: c.err, took: time.Millisecond, at: r.Started.Add(time.Duration(c.second * float64(time.Second)))})
		}
	}
	r.finish()
	return r
}

func TestBroken(t *testing.T) {
	refused := syscall.ECONNREFUSED
	cases := map[string]struct {
		reason   string
		calls    [][]call
		expected []string
		want     string
	}{
		"Nothing":  {reason: "Every call was answered.", calls: [][]call{answers("v1", 0, 15), answers("v2", 15, 30)}},
		"NoAnswer": {reason: "Nobody answered.", calls: [][]call{failures(refused, 0, 1)}, want: "none of 2 calls was answered"},
		"NoCall":   {reason: "Nobody called.", want: "none of 0 calls was answered"},
		"Before": {
			reason: "Few failed before anything changed, for reasons of the machine.",
			calls:  [][]call{failures(refused, 0.01, 0.02), answers("v1", 0, 15), answers("v2", 15, 30)},
		},
		"Switch": {
			reason: "One call failed when the new version took over.",
			calls:  [][]call{answers("v1", 0, 15), failures(refused, 15), answers("v2", 15, 30)},
			want:   "1 of 301 calls failed while versions changed",
		},
		"Drain": {
			reason: "One call failed when the last replica of the old version ended.",
			calls:  [][]call{answers("v1", 0, 20), answers("v2", 15, 60), failures(refused, 29)},
			want:   "1 of 651 calls failed while versions changed",
		},
		"Gap": {
			reason: "Nothing answered between the versions.",
			calls:  [][]call{answers("v1", 0, 15), failures(refused, 15.5, 20, 25, 29), answers("v2", 30, 60)},
			want:   "4 of 454 calls failed while versions changed",
		},
		"Trial": {
			reason: "A call failed while a canary answered, whose version did not stay.",
			calls:  [][]call{answers("v1", 0, 90), answers("v2", 30, 60), failures(refused, 45)},
			want:   "1 of 1201 calls failed while versions changed",
		},
		"AfterTrial": {
			reason: "The canary was long gone.",
			calls:  [][]call{answers("v1", 0, 90), answers("v2", 30, 60), failures(refused, 80)},
		},
		"Expected": {
			reason:   "The canary is there to fail.",
			calls:    [][]call{answers("v1", 0, 90), answers("v2", 30, 60), failures(statusError(500), 31, 35, 40, 45)},
			expected: []string{"status 500"},
		},
		"OneNotExpected": {
			reason:   "The canary is there to fail in one way, and this is another.",
			calls:    [][]call{answers("v1", 0, 90), answers("v2", 30, 60), failures(statusError(500), 31, 35), failures(refused, 40)},
			expected: []string{"status 500"},
			want:     "1 of 1203 calls failed while versions changed",
		},
		"Outage": {
			reason: "Too many failed, though nothing changed.",
			calls:  [][]call{answers("v1", 0, 20), failures(errors.New("x"), 5, 5.1, 5.2)},
			want:   "3 of 203 calls failed, more than 1%",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, reported(tc.calls...).Broken(tc.expected...)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBursts(t *testing.T) {
	r := reported(answers("v1", 0, 15), answers("v2", 15, 30),
		failures(syscall.ECONNREFUSED, 0.5, 0, 1.4, 12), failures(statusError(503), 1))
	want := []*Burst{
		{Kind: "refused", Count: 3, From: 0, To: 1.4},
		{Kind: "status 503", Count: 1, From: 1, To: 1},
		{Kind: "refused", Count: 1, From: 12, To: 12, NearChange: true},
	}
	if diff := cmp.Diff(want, r.Bursts); diff != "" {
		t.Errorf("failures that are a second apart are one burst: -want, +got:\n%s", diff)
	}
	said := "5 of 305 calls failed: 3 refused from 0.0 s to 1.4 s after the start, not near a change of versions; " +
		"1 status 503 from 1.0 s to 1.0 s after the start, not near a change of versions; " +
		"1 refused from 12.0 s to 12.0 s after the start, while versions changed"
	if diff := cmp.Diff(said, r.Summary()); diff != "" {
		t.Errorf("summary: -want, +got:\n%s", diff)
	}
	if got := reported(answers("v1", 0, 1)).Summary(); got != "no call of 10 failed" {
		t.Errorf("summary of no failure: got %q", got)
	}
}
