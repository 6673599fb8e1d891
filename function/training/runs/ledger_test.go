// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// TestParse shows which texts are ledgers: the annotation of a Service can be written by others.
func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		ok           bool
	}{
		"Usual":       {"as it is written", `{"seq":3,"run":2,"state":"Active"}`, true},
		"Unbegun":     {"before the first run", `{"seq":1,"run":0}`, true},
		"Empty":       {"nothing is remembered", "", false},
		"NoJSON":      {"a note of a person", "see the wiki", false},
		"LastSeq":     {"its next number would be negative, and never count", `{"seq":9223372036854775807,"run":2,"state":"Active"}`, false},
		"NegativeSeq": {"no number of a change", `{"seq":-1,"run":2,"state":"Active"}`, false},
		"NegativeRun": {"no Job has that name", `{"seq":3,"run":-1,"state":"Active"}`, false},
		"LastRun":     {"no run could follow", `{"seq":3,"run":2147483647,"state":"Ending"}`, false},
		"NoState":     {"nothing would ever follow from it", `{"seq":3,"run":2,"state":"Dancing"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, ok := Parse(tc.text); ok != tc.ok {
				t.Errorf("%s: want ok %v, got %v", tc.reason, tc.ok, ok)
			}
		})
	}
}

// TestRecall shows what is remembered when records are lost.
func TestRecall(t *testing.T) {
	older := Ledger{Seq: 7, Run: 1, State: Ending, Next: OutcomeLost, Lost: 2, Best: 90, Resume: "/checkpoints/step-90"}
	for name, tc := range map[string]struct {
		reason string
		m      Memory
		want   Ledger
	}{
		"Newest": {
			reason: "the one with the higher number counts",
			m:      Memory{Ledgers: []string{older.Text(), Ledger{Seq: 8, Run: 2, State: Active}.Text()}},
			want:   Ledger{Seq: 8, Run: 2, State: Active},
		},
		"NewestFirst": {
			reason: "their order says nothing",
			m:      Memory{Ledgers: []string{Ledger{Seq: 8, Run: 2, State: Active}.Text(), older.Text()}},
			want:   Ledger{Seq: 8, Run: 2, State: Active},
		},
		"RunOnly": {
			reason: "the budget and the checkpoint of earlier runs are not forgotten",
			m:      Memory{Ledgers: []string{older.Text()}, Number: 2, Revision: "r"},
			want:   Ledger{Seq: 7, Run: 2, State: Active, Seen: true, Revision: "r", Lost: 2, Best: 90, Resume: "/checkpoints/step-90"},
		},
		"JobOnly": {
			reason: "the same by its Job",
			m:      Memory{Ledgers: []string{older.Text()}, Jobs: map[int32]Job{2: {Revision: "r"}}},
			want:   Ledger{Seq: 7, Run: 2, State: Active, Seen: true, Revision: "r", Lost: 2, Best: 90, Resume: "/checkpoints/step-90"},
		},
		"OfAnotherRun": {
			reason: "a report of run 1 says nothing about run 2",
			m: Memory{
				Ledgers: []string{older.Text()}, Number: 2, Revision: "r",
				Report: observev1alpha1.RunObservation{Number: 1, Phase: phaseSucceeded},
			},
			want: Ledger{Seq: 7, Run: 2, State: Active, Seen: true, Revision: "r", Lost: 2, Best: 90, Resume: "/checkpoints/step-90"},
		},
		"Succeeded": {
			reason: "what has ended stays so without any ledger",
			m:      Memory{Number: 2, Report: observev1alpha1.RunObservation{Number: 2, Phase: phaseSucceeded}},
			want:   Ledger{Run: 2, State: Succeeded, Seen: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Recall(tc.m)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
