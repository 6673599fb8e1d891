// SPDX-License-Identifier: Apache-2.0

package promq

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

// TestSample reads what is in a sample, what is not, and everything of one that failed.
func TestSample(t *testing.T) {
	at := Place{Slot: "a", Check: "queue"}
	full := NewSample()
	full.Slots["a"] = &Measures{Requests: Reading{Value: 7}}
	full.Checks[at], full.References["queue"] = Reading{Value: 3}, Distribution{Histogram: stats.Histogram{{End: 1, Count: 2}}}
	away := Failed(&outside.Failure{Message: "nothing answers"})
	cases := map[string]struct {
		reason                    string
		sample                    Sample
		requests, check, distance Reading
		reference                 Distribution
	}{
		"Full": {
			reason: "What was asked is there, and a distribution that nothing gave is not.", sample: full,
			requests: Reading{Value: 7}, check: Reading{Value: 3}, distance: NoData(NotFound),
			reference: Distribution{Histogram: stats.Histogram{{End: 1, Count: 2}}},
		},
		"Empty": {
			reason: "A slot without measures is one whose pods are not scraped.", sample: NewSample(),
			requests: NoData(NotScraped), distance: NoData(NotFound), reference: Distribution{Reading: NoData(NotFound)},
		},
		"Failed": {
			reason: "When Prometheus does not answer, every reading is that error.", sample: Unanswered(&outside.Failure{Message: "nothing answers"}),
			requests: away, check: away, distance: away, reference: Distribution{Reading: away},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := []any{tc.sample.Of("a").Requests, tc.sample.Check(at), tc.sample.Distribution(at).Reading, tc.sample.Reference("queue")}
			if diff := cmp.Diff([]any{tc.requests, tc.check, tc.distance, tc.reference}, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestQuestion(t *testing.T) {
	cases := map[string]struct {
		reason string
		q      Question
		want   bool
	}{
		"Nothing": {reason: "Where nothing is asked no server must be known."},
		"Canary":  {reason: "A canary takes requests.", q: Question{Canary: "b"}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.q.BuiltIn()); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
