// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
)

// promise evidence that every check has passed, last reported before a while, until some time from now.
func (w *world) promise(before, until time.Duration) {
	w.t.Helper()
	asked := compose.Map(w.request.Observed[names.Analysis].Map(), "spec", "forProvider", "metrics", "canary")
	seen := observev1alpha1.CanaryObservation{
		Epoch: compose.Number(asked, 0, "epoch"), LookedAt: metav1.NewTime(w.request.Now.Add(-before)),
	}
	if until != 0 {
		seen.LooksUntil = &metav1.Time{Time: w.request.Now.Add(until)}
	}
	for _, v := range compose.List(asked, "checks") {
		seen.Checks = append(seen.Checks, observev1alpha1.CanaryCheck{Name: compose.Text(v.(map[string]any), "name"), Verdicts: "PPP"})
	}
	w.measure(observev1alpha1.AnalysisObservation{Canary: &seen})
}

// TestPromise shows for how long evidence counts: as long as the provider promises to look, and no decision to go on is made of what
// is older.
func TestPromise(t *testing.T) {
	const spec = "{image: %s, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {canaryWeight: 20, soak: 1m, bake: 10m}}"
	holds := string(v1alpha1.ReasonMetricsUnavailable)
	cases := map[string]struct {
		reason        string
		before, until time.Duration
		want          string
	}{
		"Kept":      {"What was reported minutes ago counts while the provider looks.", 5 * time.Minute, time.Second, string(v1alpha1.ReasonSizing)},
		"Over":      {"A provider that broke its promise is away.", 5 * time.Minute, -time.Second, holds},
		"None":      {"One that promises nothing has to look every half a minute.", 5 * time.Minute, 0, holds},
		"NoneFresh": {"Which it does.", 20 * time.Second, 0, string(v1alpha1.ReasonSizing)},
		"FarAhead":  {"A clock that is hours ahead promises nothing.", 5 * time.Minute, 3 * time.Hour, holds},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, fmt.Sprintf(spec, "x"))
			w.settle()
			w.settle()
			w.edit(fmt.Sprintf(spec, "z"))
			for range 4 {
				w.settle()
			}
			if got := rolloutOf(t, w.plan()).Reason; got != string(v1alpha1.ReasonSoaking) {
				t.Fatalf("It should soak, got %s", got)
			}
			w.later(10 * time.Minute)
			w.promise(tc.before, tc.until)
			p := w.plan()
			if got := rolloutOf(t, p).Reason; got != tc.want {
				t.Errorf("\n%s\nwant %s, got %s: %s", tc.reason, tc.want, got, rolloutOf(t, p).Message)
			}
			if e := rolloutOf(t, p).Evidence; tc.want != holds && len(e) > 0 && e[0].Verdicts != "PPP" {
				t.Errorf("\n%s\nwant the evidence, got %+v", tc.reason, e)
			}
		})
	}
}

// TestEvidenceIsCalm shows that what is reported of evidence changes with decisions and not with numbers.
func TestEvidenceIsCalm(t *testing.T) {
	const spec = "{image: %s, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {canaryWeight: 20, soak: 1h}}"
	w := serving(t, fmt.Sprintf(spec, "x"))
	w.settle()
	w.settle()
	w.edit(fmt.Sprintf(spec, "z"))
	for range 4 {
		w.settle()
	}
	look := func(verdicts string, n int64, value float64) string {
		t.Helper()
		w.promise(0, time.Minute)
		asked := compose.Map(w.request.Observed[names.Analysis].Map(), "status", "atProvider", "canary")
		seen := observev1alpha1.CanaryObservation{Epoch: compose.Number(asked, 0, "epoch"), LookedAt: metav1.NewTime(w.request.Now)}
		for _, v := range compose.List(asked, "checks") {
			seen.Checks = append(seen.Checks, observev1alpha1.CanaryCheck{
				Name: compose.Text(v.(map[string]any), "name"), Verdicts: verdicts, Value: &value, Lower: &value, Upper: &value, Samples: &n,
			})
		}
		w.measure(observev1alpha1.AnalysisObservation{Canary: &seen})
		words := ""
		for _, e := range rolloutOf(t, w.plan()).Evidence {
			if e.Name == "success" {
				words = fmt.Sprintf("%s of %d, required %s", e.Verdicts, *e.Samples, e.Asked)
			}
		}
		return words
	}
	cases := []struct {
		reason   string
		verdicts string
		n        int64
		value    float64
		want     string
	}{
		{"Nothing is known yet.", "", 0, 0, ""},
		{"The first verdict.", "I", 41, 0.9, "I of 10, required at least 0.99"},
		{"More requests.", "I", 99, 0.99, "I of 10, required at least 0.99"},
		{"Many more.", "II", 100, 0.99, "II of 100, required at least 0.99"},
		{"It passes, and nothing else was shown: only time is waited for.", "IIPPP", 3000, 0.99, ""},
		{"It still does.", "IIPPPPPPPP", 9999, 0.999, ""},
		{"One failure.", "PPPPPPPPPF", 9999, 0.999, "PPPPF of 1000, required at least 0.99"},
	}
	for _, tc := range cases {
		if got := look(tc.verdicts, tc.n, tc.value); got != tc.want {
			t.Errorf("%s want %q, got %q", tc.reason, tc.want, got)
		}
	}
}
