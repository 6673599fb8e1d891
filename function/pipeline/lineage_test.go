// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/lineage"
	"github.com/capstan-dev/capstan/function/lineage/lineagetest"
	"github.com/capstan-dev/capstan/function/observed"
)

const (
	reported   = `{lineage: {inputs: [{namespace: "s3://lake", name: raw/clicks}], outputs: [{namespace: "s3://lake", name: features}]}}`
	unreported = `{lineage: null}`
)

func TestLineage(t *testing.T) {
	later := func(w *world) { w.now = w.now.Add(10 * time.Minute) }
	cases := map[string]struct {
		reason string
		spec   string
		steps  []func(*world)
		want   []string
	}{
		"Running": {reason: "A run is reported once its Job exists.", spec: byIDSpec, want: []string{"daily-run-a Running 12:00"}},
		"Succeeded": {
			reason: "And how it ended.", spec: byIDSpec,
			steps: []func(*world){later, func(w *world) { w.kubernetes("daily-run-a", complete) }}, want: []string{"daily-run-a Succeeded 12:00-12:10"},
		},
		"Failed": {
			reason: "The program gave up.", spec: byIDSpec,
			steps: []func(*world){later, func(w *world) { w.kubernetes("daily-run-a", late) }}, want: []string{"daily-run-a Failed 12:00-12:10"},
		},
		"Another": {
			reason: "Runs are in the order in which they began.", spec: byIDSpec,
			steps: []func(*world){later, func(w *world) { w.kubernetes("daily-run-a", complete) }, func(w *world) { w.edit(`{run: {id: b}}`) }},
			want:  []string{"daily-run-a Succeeded 12:00-12:10", "daily-run-b Running 12:10"},
		},
		"ScheduledRuns": {
			reason: "Kubernetes made its Job, and the provider reports it.", spec: cronSpec,
			steps: []func(*world){func(w *world) { w.report("daily-29400000", `{phase: Running}`) }}, want: []string{"daily-29400000 Running 12:00"},
		},
		"ScheduledEnds": {
			reason: "Its end is remembered.", spec: cronSpec,
			steps: []func(*world){func(w *world) { w.report("daily-29400000", `{phase: Running}`) }, later, func(w *world) { w.report("daily-29400000", failedUser) }},
			want:  []string{"daily-29400000 Failed 12:00-12:10"},
		},
		"Stream": {reason: "A stream has begun.", spec: streamSpec, want: []string{"daily-s1 Running 12:00"}},
		"Edited": {
			reason: "An edit ends it, and it starts again.", spec: streamSpec,
			steps: []func(*world){later, func(w *world) { w.edit(`{args: [others]}`) }, later, (*world).gone},
			want:  []string{"daily-s1 Ended 12:00-12:20", "daily-s2 Running 12:20"},
		},
		"Suspended": {
			reason: "So does suspend.", spec: streamSpec,
			steps: []func(*world){later, func(w *world) { w.edit(`{suspend: true}`) }, (*world).gone}, want: []string{"daily-s1 Ended 12:00-12:10"},
		},
		"Removed":  {reason: "Nothing is reported without the field.", spec: byIDSpec, steps: []func(*world){func(w *world) { w.edit(unreported) }}},
		"Provider": {reason: "Without the provider the run goes on.", spec: byIDSpec, steps: []func(*world){func(w *world) { w.alone = true }}, want: []string{"daily-run-a Running 12:00"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			w.edit(reported)
			w.settle()
			for _, step := range tc.steps {
				step(w)
				w.settle()
			}
			if diff := cmp.Diff(append([]string{}, tc.want...), lineagetest.Runs(w.Composed[lineage.Resource])); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if tc.want != nil {
				p, _ := observed.Parameters[observev1alpha1.LineageParameters](w.Composed[lineage.Resource])
				want := observev1alpha1.LineageParameters{
					Job: "daily", Streaming: tc.spec == streamSpec, Runs: p.Runs,
					Inputs:  []observev1alpha1.LineageDataset{{Namespace: "s3://lake", Name: "raw/clicks"}},
					Outputs: []observev1alpha1.LineageDataset{{Namespace: "s3://lake", Name: "features"}},
				}
				if diff := cmp.Diff(want, p); diff != "" {
					t.Errorf("-want, +got:\n%s", diff)
				}
			}
		})
	}
}

// TestLineageNeverHoldsUp: whatever the server answers, a run and the readiness of its Pipeline are the same.
func TestLineageNeverHoldsUp(t *testing.T) {
	cases := map[string]struct {
		reason string
		status string
		alone  bool
		want   string
	}{
		"Nothing":   {reason: "The provider has not looked.", want: "Unknown/NothingSent"},
		"Connected": {reason: "The server takes the events.", status: `{conditions: [{type: Connected, status: "True", reason: Answered}]}`, want: "True/Answered"},
		"Down": {
			reason: "The reason is the one of the provider.", want: "False/ServerError",
			status: `{conditions: [{type: Connected, status: "False", reason: ServerError, message: "the server failed"}]}`,
		},
		"Refused": {
			reason: "An event that is refused is lost.", want: "False/Rejected",
			status: `{conditions: [{type: Connected, status: "True", reason: Answered}], atProvider: {sent: [{run: a, startedAt: "2026-11-20T12:00:00Z", event: START, refused: "it has no name"}]}}`,
		},
		"Missing": {reason: "No provider is there.", alone: true, want: "False/ProviderMissing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, without := newWorld(t, byIDSpec), newWorld(t, byIDSpec)
			w.alone = tc.alone
			w.edit(reported)
			w.settle()
			without.settle()
			if o := w.Composed[lineage.Resource]; o != nil && tc.status != "" {
				w.Composed[lineage.Resource] = composetest.With(o, composetest.Parse(t, `{status: `+tc.status+`}`))
			}
			w.settle()
			if got := w.condition(v1alpha1.TypeLineageSent); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.reason, tc.want, got)
			}
			if w.plan.Ready != without.plan.Ready || w.phase() != without.phase() || compose.Text(w.status, "ledger") != compose.Text(without.status, "ledger") {
				t.Errorf("%s phase %s and ready %t, without lineage %s and %t", tc.reason, w.phase(), w.plan.Ready, without.phase(), without.plan.Ready)
			}
		})
	}
}

// TestLineageIsBounded: a Lineage has no more runs than its schema allows, the newest ones.
func TestLineageIsBounded(t *testing.T) {
	w := newWorld(t, cronSpec)
	w.edit(reported)
	for range 70 {
		w.now = w.now.Add(time.Minute)
		w.report("daily-"+w.now.Format("1504"), `{phase: Running}`)
	}
	w.settle()
	got := lineagetest.Runs(w.Composed[lineage.Resource])
	if len(got) != 64 || got[63] != "daily-1310 Running 13:10" {
		t.Errorf("want the newest 64 of 70 runs, got %d: %v", len(got), got)
	}
}
