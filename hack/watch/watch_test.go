// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
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
		{"name": "success", "verdicts": "IPF", "value": 0.95123, "lower": 0.93, "upper": 0.96, "samples": 240, "asked": "at least 0.99"},
		{"name": "success-against-baseline", "verdicts": "N", "asked": "not less than the baseline beyond doubt"}
	],
	"lastDecision": {"from": "Preparing", "to": "Stepping", "reason": "Passed", "message": "replicas of revision 7c9f7c9f7c serve", "at": "2026-01-01T11:59:18Z"},
	"failed": [{"revision": "0badc0de00", "reason": "MetricFailed", "message": "success 0.9 (0.88 to 0.92) of 300 requests, required at least 0.99", "attempts": 1, "retryAfter": "2026-01-01T12:08:00Z"}]
}`

func viewOf(t *testing.T, rollout, deployments string) view {
	t.Helper()
	v := view{now: now}
	if err := errors.Join(json.Unmarshal(fmt.Appendf(nil, seen, rollout), &v.algorithm), json.Unmarshal([]byte(deployments), &v.deployments)); err != nil {
		t.Fatal(err)
	}

	return v
}

var colours = regexp.MustCompile("\x1b\\[[0-9]+m")

func TestDraw(t *testing.T) {
	cases := map[string]struct {
		reason  string
		view    view
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
		"Trouble": {reason: "Why nothing is seen is told.", view: view{trouble: "cannot read"}, columns: 130, want: []string{"cannot read"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := draw(tc.view, tc.columns)
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
	got := strings.Join(draw(viewOf(t, stepping, both), 130), "\n")
	for _, want := range []string{yellow + "I" + plain + green + "P" + plain + red + bold + "F" + plain, green + bold + "Stepping, Soaking" + plain} {
		if !strings.Contains(got, want) {
			t.Errorf("draw lacks %q:\n%q", want, got)
		}
	}
}

// TestFollow has a rollout go through phases, and looks how it ends and what is written.
func TestFollow(t *testing.T) {
	stale := viewOf(t, `{"phase": "Stable", "reason": "Drained"}`, `[]`)
	stale.algorithm.Metadata.Generation++
	early := viewOf(t, `{"phase": "Stable", "reason": "Drained"}`, `[]`)
	early.algorithm.Status.Conditions[1] = condition{Type: "Updated", Status: "False", Reason: "RollingOut"}
	tried := viewOf(t, `{"phase": "Stepping", "reason": "Soaking", "weight": 20, "candidate": "7c9f7c9f7c", "evidence": [{"name": "success", "verdicts": "P", "value": 1, "samples": 60}], "message": "20 % of callers"}`, both)
	done := viewOf(t, `{"phase": "Stable", "reason": "Drained", "message": "clients reach revision 7c9f7c9f7c"}`, `[]`)
	const (
		first  = "   0.0 s  Stable          0 %  Drained  \n"
		second = "   2.0 s  Stepping       20 %  Soaking  slot a: 51aa51aa51 2/2  slot b: 7c9f7c9f7c 1/1  success: P 1 of 60  20 % of callers\n"
		third  = "   4.0 s  cannot read\n   5.0 s  Stable          0 %  Drained  clients reach revision 7c9f7c9f7c\n"
	)
	cases := map[string]struct {
		reason string
		c      command
		looks  []view
		want   string
		err    string
	}{
		"After": {
			reason: "A pass that knew of the edit before it acted on it does not count either.",
			c:      command{Until: []string{"Stable"}, After: "Stable", For: time.Minute},
			looks:  []view{done, tried, done},
			want: "   0.0 s  Stable          0 %  Drained  clients reach revision 7c9f7c9f7c\n" +
				"   1.0 s  Stepping       20 %  Soaking  slot a: 51aa51aa51 2/2  slot b: 7c9f7c9f7c 1/1  success: P 1 of 60  20 % of callers\n" +
				"   2.0 s  Stable          0 %  Drained  clients reach revision 7c9f7c9f7c\n",
		},
		"Until": {
			reason: "A phase from before the edit does not count, and what does not change is written once.",
			c:      command{Until: []string{"RolledBack", "Stable"}, For: time.Minute},
			want:   first + second + third,
		},
		"TooLate": {
			reason: "Who waits for a phase learns that it did not come.",
			c:      command{Until: []string{"RolledBack", "Stable"}, For: 3500 * time.Millisecond},
			want:   first + second,
			err:    "not RolledBack or Stable after 3.5s: the rollout is Stepping",
		},
		"For": {
			reason: "Who only watches has seen enough after a time.",
			c:      command{For: 3500 * time.Millisecond},
			want:   first + second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				looks := tc.looks
				if looks == nil {
					looks = []view{stale, early, tried, tried, {}, done}
				}
				err := tc.c.follow(t.Context(), &out, 0, func(context.Context) (view, error) {
					v := looks[0]
					looks = looks[1:]
					if v.now.IsZero() {
						return v, errors.New("cannot read")
					}

					return v, nil
				})
				if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
					t.Errorf("%s\nfollow: want error %q, got %v", tc.reason, tc.err, err)
				}
				if diff := cmp.Diff(tc.want, out.String()); diff != "" {
					t.Errorf("%s\nfollow: -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestScreen expects that a picture is drawn over the one before, and that nothing of a longer one is left.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	show := screen(&out, 20)
	show(view{trouble: "one"}, 0)
	show(view{trouble: "two"}, 0)
	want := "\r" + red + "one" + plain + "\x1b[K\n\x1b[J" + "\x1b[1A\r" + red + "two" + plain + "\x1b[K\n\x1b[J"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("screen: -want, +got:\n%s", diff)
	}
}

// TestLook reads what an API server answers.
func TestLook(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RequestURI() {
		case "/apis/capstan.dev/v1alpha1/namespaces/demo/algorithms/reco":
			_, _ = fmt.Fprintf(w, seen, stepping)
		case "/apis/apps/v1/namespaces/demo/deployments?labelSelector=capstan.dev%2Falgorithm%3Dreco":
			_, _ = fmt.Fprintf(w, `{"items": %s}`, both)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"kind": "Status", "message": "algorithms \"none\" not found"}`)
		}
	}))
	defer srv.Close()
	to, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	a := &api{client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(to)}}}
	v, err := a.look(t.Context(), "demo", "reco")
	if err != nil {
		t.Fatal(err)
	}
	want := viewOf(t, stepping, both)
	want.now = v.now
	if diff := cmp.Diff(want, v, cmp.AllowUnexported(view{}, algorithm{}, deployment{})); diff != "" {
		t.Errorf("look: -want, +got:\n%s", diff)
	}
	if _, err := a.look(t.Context(), "demo", "none"); err == nil || !strings.Contains(err.Error(), `algorithms "none" not found`) {
		t.Errorf("look at what is not there: got %v", err)
	}
}
