// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
)

// TestSettled: what has begun, and was not cut over, is not taken for an import that has ended.
func TestSettled(t *testing.T) {
	ended := members.Import{Ended: true}
	for name, tc := range map[string]struct {
		reason string
		cuts   Cuts
		i      members.Import
		begun  bool
		want   string
	}{
		"Nothing":  {reason: "nothing has begun"},
		"Skipped":  {reason: "the Database was created with an id", cuts: Cuts{{ID: "copied", Phase: CutSkipped}}, begun: true},
		"Drained":  {reason: "everything is here, and the source is not left", cuts: Cuts{{ID: "go", Phase: CutDrained}}, begun: true, i: ended},
		"Ended":    {reason: "it has ended", cuts: Cuts{{ID: "go", Phase: CutDone}}, begun: true, want: members.ImportCutOver},
		"Record":   {reason: "the record outlives the data", i: ended, want: members.ImportCutOver},
		"Half":     {reason: "consumers have logins over half of the rows", i: ended, begun: true, want: members.ImportFailing},
		"HalfSkip": {reason: "an id that was skipped ended nothing", i: ended, begun: true, cuts: Cuts{{ID: "copied", Phase: CutSkipped}}, want: members.ImportFailing},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if r := tc.cuts.Settled(tc.i, tc.begun); r != nil {
				got = r.State
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBounded: what is reported has an end, and is text.
func TestBounded(t *testing.T) {
	if got := Shortened("short", 10); got != "short" {
		t.Errorf("got %q", got)
	}
	if got := Shortened(strings.Repeat("ä", 100), 11); got != "ääää…" {
		t.Errorf("got %q", got)
	}
	r := Bounded(members.ImportReport{Message: strings.Repeat("m", 3000), Findings: []string{strings.Repeat("f", 3000), 40: ""}})
	if len(r.Message) > MaxMessage || len(r.Findings) != MaxFindings || len(r.Findings[0]) > MaxFinding {
		t.Errorf("a report has %d bytes, and %d findings of %d", len(r.Message), len(r.Findings), len(r.Findings[0]))
	}
}
