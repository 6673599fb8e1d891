// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// deployments of a live slot a and of slot b beside it.
const both = `[
	{"metadata": {"name": "reco-a", "annotations": {"capstan.dev/revision": "51aa51aa51"}}, "spec": {"replicas": 2}, "status": {"availableReplicas": 2}},
	{"metadata": {"name": "reco-b", "annotations": {"capstan.dev/revision": "7c9f7c9f7c"}}, "spec": {"replicas": 1}, "status": {"availableReplicas": 1}}
]`

const seen = `{"metadata": {"name": "reco", "namespace": "demo", "generation": 4}, "status": {
	"phase": "Progressing", "revision": {"live": "51aa51aa51", "slot": "a"},
	"conditions": [{"type": "Synced", "status": "True", "observedGeneration": 4}, {"type": "Updated", "status": "True", "reason": "Live"}],
	"rollout": %s
}}`

const stepping = `{
	"phase": "Stepping", "reason": "Soaking", "message": "20 % of requests may reach revision 7c9f7c9f7c, and evidence is being gathered",
	"epoch": 7, "weight": 20, "stable": "51aa51aa51", "candidate": "7c9f7c9f7c", "since": "2026-01-01T11:59:18Z", "until": "2026-01-01T12:00:30Z",
	"evidence": [
		{"name": "success", "verdicts": "IPF", "samples": 240, "asked": "at least 0.99"},
		{"name": "success-against-baseline", "verdicts": "N", "asked": "not less than the baseline beyond doubt"}
	],
	"lastDecision": {"from": "Preparing", "to": "Stepping", "reason": "Passed", "message": "replicas of revision 7c9f7c9f7c serve", "at": "2026-01-01T11:59:18Z"},
	"failed": [{"revision": "0badc0de00", "reason": "MetricFailed", "message": "success 0.9 (0.88 to 0.92) of 300 requests, required at least 0.99", "attempts": 1, "retryAfter": "2026-01-01T12:08:00Z"}]
}`

// measured are the numbers of the Analysis, which the status of the Algorithm has not.
const measured = `{"epoch": 7, "checks": [{"name": "success", "value": 0.95123, "lower": 0.93, "upper": 0.96}]}`

func viewOf(t *testing.T, rollout, deployments string) Algorithm {
	t.Helper()
	v := Algorithm{Now: now, Canary: &observev1alpha1.CanaryObservation{}}
	if err := errors.Join(json.Unmarshal(fmt.Appendf(nil, seen, rollout), &v.Object), json.Unmarshal([]byte(deployments), &v.Deployments), json.Unmarshal([]byte(measured), v.Canary)); err != nil {
		t.Fatal(err)
	}

	return v
}

var colours = regexp.MustCompile("\x1b\\[[0-9]+m")

func TestDraw(t *testing.T) {
	cases := map[string]struct {
		reason  string
		view    View
		columns int
		want    []string
	}{
		"Stepping": {
			reason: "All that decides is on the screen.", view: viewOf(t, stepping, both), columns: 130,
			want: []string{
				"Algorithm demo/reco is Progressing",
				"Stepping, Soaking  for 42s, 30s to go  epoch 7",
				"20 % of requests may reach revision 7c9f7c9f7c, and evidence is being gathered",
				"",
				"slot a  live       51aa51aa51   2 of  2 replicas  " + strings.Repeat("█", 32) + strings.Repeat("░", 8) + "    80 %",
				"slot b  candidate  7c9f7c9f7c   1 of  1 replicas  " + strings.Repeat("█", 8) + strings.Repeat("░", 32) + "    20 %",
				"",
				"check                     verdicts       value             between  baseline       of  asked",
				"success                   IPF           0.9512       0.93 and 0.96                240  at least 0.99",
				"success-against-baseline  N                                                            not less than the baseline beyond doubt",
				"",
				"last decision  Preparing → Stepping, Passed: replicas of revision 7c9f7c9f7c serve",
				"failed         0badc0de00, attempt 1, MetricFailed: success 0.9 (0.88 to 0.92) of 300 requests, required at least 0.99",
			},
		},
		"Held": {
			reason:  "What is held is told, and a narrow screen has more lines.",
			view:    viewOf(t, `{"phase": "Holding", "held": "Stepping", "reason": "AwaitingApproval", "message": "somebody has to agree that all callers go over", "epoch": 9, "since": "2026-01-01T12:00:00Z"}`, `[]`),
			columns: 30,
			want: []string{
				"Algorithm demo/reco is Progres",
				"Holding Stepping, AwaitingAppr",
				"somebody has to agree that all",
				"callers go over",
				"",
				"",
			},
		},
		"ByReplicas": {
			reason:  "Without a Gateway the true share is shown.",
			view:    viewOf(t, `{"phase": "Stepping", "weight": 20, "share": 16.7, "candidate": "7c9f7c9f7c", "since": "2026-01-01T12:00:00Z"}`, both),
			columns: 130,
			want: []string{
				"Algorithm demo/reco is Progressing",
				"Stepping  for 0s  epoch 0",
				"",
				"slot a  live       51aa51aa51   2 of  2 replicas  " + strings.Repeat("█", 33) + strings.Repeat("░", 7) + "  83.3 %",
				"slot b  candidate  7c9f7c9f7c   1 of  1 replicas  " + strings.Repeat("█", 7) + strings.Repeat("░", 33) + "  16.7 %",
				"",
			},
		},
		"Stable": {
			reason:  "Where nothing is tried, all callers reach the live slot.",
			view:    viewOf(t, `{"phase": "Stable", "reason": "Drained", "since": "2026-01-01T11:00:00Z"}`, both),
			columns: 130,
			want: []string{
				"Algorithm demo/reco is Progressing",
				"Stable, Drained  for 1h0m0s  epoch 0",
				"",
				"slot a  live       51aa51aa51   2 of  2 replicas  " + strings.Repeat("█", 40) + "   100 %",
				"slot b  idle       7c9f7c9f7c   1 of  1 replicas  " + strings.Repeat("░", 40) + "     0 %",
				"",
			},
		},
		"NoLifecycle": {
			reason: "It is told why there is nothing to watch.", view: viewOf(t, `null`, `[]`), columns: 130,
			want: []string{"Algorithm demo/reco is Progressing", "the rollout is unknown: spec.lifecycle is not set"},
		},
		"Trouble": {reason: "Why nothing is seen is told.", view: Trouble{Err: errors.New("cannot read")}, columns: 130, want: []string{"cannot read"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.view.Draw(tc.columns)
			for i, l := range got {
				got[i] = colours.ReplaceAllString(l, "")
				if n := utf8.RuneCountInString(got[i]); n > tc.columns {
					t.Errorf("%s\nline %d has %d columns of %d", tc.reason, i, n, tc.columns)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\ndraw: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestColours expects that a failure can be told from a pass at a glance.
func TestColours(t *testing.T) {
	got := strings.Join(viewOf(t, stepping, both).Draw(130), "\n")
	for _, want := range []string{yellow + "I" + plain + green + "P" + plain + red + bold + "F" + plain, green + bold + "Stepping, Soaking" + plain} {
		if !strings.Contains(got, want) {
			t.Errorf("draw lacks %q:\n%q", want, got)
		}
	}
}

// TestOver expects that a picture is drawn over the one before, and that nothing of a longer one is left.
func TestOver(t *testing.T) {
	var out bytes.Buffer
	show := Over(&out, 20)
	show(Trouble{Err: errors.New("one")}, 0)
	show(Trouble{Err: errors.New("two")}, 0)
	want := "\r" + red + "one" + plain + "\x1b[K\n\x1b[J" + "\x1b[1A\r" + red + "two" + plain + "\x1b[K\n\x1b[J"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("Over: -want, +got:\n%s", diff)
	}
}
