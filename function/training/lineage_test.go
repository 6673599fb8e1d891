// SPDX-License-Identifier: Apache-2.0

package training

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
	"github.com/capstan-dev/capstan/function/training/names"
)

const (
	reported = `{lineage: {inputs: [{namespace: "s3://lake", name: transactions}], outputs: [{namespace: "s3://reports", name: fraud}]}}`
	register = `{onSuccess: {register: {model: fraud, source: "s3://models/fraud/{run}"}}}`
)

// version that the registry gives a run.
func (w *world) version(run int32, version string) {
	resource := names.ModelVersion(run)
	w.Composed[resource] = composetest.With(w.Composed[resource], composetest.Parse(w.t,
		`{status: {conditions: [{type: Ready, status: "True", observedGeneration: 99}], atProvider: {version: "`+version+`"}}}`))
}

func TestLineage(t *testing.T) {
	type step = func(*world)
	pass := func(d time.Duration) step { return func(w *world) { w.now = w.now.Add(d) } }
	later := pass(10 * time.Minute)
	edit := func(text string) step { return func(w *world) { w.edit(text) } }
	give := func(run int32, version string) step { return func(w *world) { w.version(run, version) } }
	for name, tc := range map[string]struct {
		reason string
		steps  []step
		want   []string
	}{
		"Running":   {reason: "A run is reported once its Job exists.", want: []string{"fraud-r1 Running 12:00"}},
		"Succeeded": {reason: "And how it ended.", steps: []step{later, (*world).succeed}, want: []string{"fraud-r1 Succeeded 12:00-12:10"}},
		"Failed": {
			reason: "The program gave up.", want: []string{"fraud-r1 Failed 12:00-12:10"},
			steps: []step{later, func(w *world) { w.report(`{phase: Failed, message: "it ends"}`); w.kubernetes(gaveUp) }},
		},
		"Edited": {
			reason: "An edit ends a run, and another one begins.", want: []string{"fraud-r1 Ended 12:00-12:10", "fraud-r2 Running 12:20"},
			steps: []step{later, edit(`{args: [others]}`), later, func(w *world) { w.Gone() }},
		},
		"Suspended": {reason: "So does suspend.", steps: []step{later, edit(`{suspend: true}`)}, want: []string{"fraud-r1 Ended 12:00-12:10"}},
		"Removed":   {reason: "Nothing is reported without the field.", steps: []step{edit(`{lineage: null}`)}},
		"Registers": {
			reason: "The event about success waits for the version.", steps: []step{edit(register), later, (*world).succeed}, want: []string{"fraud-r1 Running 12:00"},
		},
		"Registered": {
			reason: "It has the version.", steps: []step{edit(register), later, (*world).succeed, later, give(1, "7")},
			want: []string{"fraud-r1 Succeeded 12:00-12:10 mlflow://mlflow fraud/7"},
		},
		"OwnRegistry": {
			reason: "Namespaces have registries of their own.", want: []string{"fraud-r1 Succeeded 12:00-12:10 mlflow://payments/mine fraud/7"},
			steps: []step{
				edit(`{onSuccess: {register: {model: fraud, source: "s3://models/{run}", config: ProviderConfig/mine}}}`), later, (*world).succeed, later, give(1, "7"),
			},
		},
		"NoVersion": {
			reason: "A registry that gives none for an hour holds up no event.", steps: []step{edit(register), later, (*world).succeed, pass(time.Hour)},
			want: []string{"fraud-r1 Succeeded 12:00-12:10"},
		},
		"LateVersion": {
			reason: "What was sent does not change.", steps: []step{edit(register), later, (*world).succeed, pass(time.Hour), give(1, "7")},
			want: []string{"fraud-r1 Succeeded 12:00-12:10"},
		},
		"NotRegistered": {
			reason: "Nothing waits for a version that is not wanted any more.", want: []string{"fraud-r1 Succeeded 12:00-12:10"},
			steps: []step{edit(register), later, (*world).succeed, edit(`{onSuccess: null}`)},
		},
		"RegisterLater": {
			reason: "What was sent does not change.", steps: []step{later, (*world).succeed, edit(register)}, want: []string{"fraud-r1 Succeeded 12:00-12:10"},
		},
		"Another": {
			reason: "The next run takes nothing from the one before.", want: []string{"fraud-r1 Succeeded 12:00-12:10 mlflow://mlflow fraud/7", "fraud-r2 Succeeded 12:20-12:30 mlflow://mlflow fraud/8"},
			steps: []step{
				edit(register), later, (*world).succeed, give(1, "7"), later, edit(`{rerun: {id: again}}`), func(w *world) { w.Gone() }, later, (*world).succeed, give(2, "8"),
			},
		},
		"AnotherMeanwhile": {
			reason: "The version of a run may come while the next one runs.", want: []string{"fraud-r1 Succeeded 12:00-12:10 mlflow://mlflow fraud/7", "fraud-r2 Running 12:20"},
			steps: []step{edit(register), later, (*world).succeed, later, edit(`{rerun: {id: again}}`), func(w *world) { w.Gone() }, give(1, "7")},
		},
		"Mistake": {
			reason: "A spec with a mistake changes nothing.", steps: []step{later, edit(`{schedule: {cron: never}}`)}, want: []string{"fraud-r1 Running 12:00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usualSpec)
			w.edit(reported)
			w.settle()
			for _, step := range tc.steps {
				step(w)
				w.settle()
			}
			if diff := cmp.Diff(append([]string{}, tc.want...), lineagetest.Runs(w.Composed[lineage.Resource])); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if tc.want == nil {
				return
			}
			p, _ := observed.Parameters[observev1alpha1.LineageParameters](w.Composed[lineage.Resource])
			want := observev1alpha1.LineageParameters{
				Job: "fraud", Runs: p.Runs,
				Inputs:  []observev1alpha1.LineageDataset{{Namespace: "s3://lake", Name: "transactions"}},
				Outputs: []observev1alpha1.LineageDataset{{Namespace: "s3://reports", Name: "fraud"}},
			}
			if diff := cmp.Diff(want, p); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestLineageNeverHoldsUp: whatever the server answers, a run and the readiness of its Training are the same.
func TestLineageNeverHoldsUp(t *testing.T) {
	for name, tc := range map[string]struct {
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
		"Missing": {reason: "No provider is there.", alone: true, want: "False/ProviderMissing"},
	} {
		t.Run(name, func(t *testing.T) {
			w, without := begun(t, usualSpec), begun(t, usualSpec)
			if tc.alone {
				w.lineages = compose.Unavailable
			}
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
			if w.plan.Ready != without.plan.Ready || w.phase() != without.phase() || w.ledger() != without.ledger() {
				t.Errorf("%s phase %s and ready %t, without lineage %s and %t", tc.reason, w.phase(), w.plan.Ready, without.phase(), without.plan.Ready)
			}
		})
	}
}

// TestLineageIsOnTime: a version that does not come is no reason to send an event later than by then.
func TestLineageIsOnTime(t *testing.T) {
	w := newWorld(t, usualSpec)
	w.edit(reported)
	w.edit(register)
	w.settle()
	w.succeed()
	w.settle()
	w.edit(`{rerun: {id: again}}`)
	w.settle()
	w.Gone()
	w.settle()
	w.kubernetes(started)
	w.report(running)
	w.now = w.now.Add(59*time.Minute + 30*time.Second)
	w.settle()
	if w.phase() != v1alpha1.TrainingRunning || w.plan.TTL > 30*time.Second {
		t.Errorf("want another pass once the hour is over, got %v in the phase %s", w.plan.TTL, w.phase())
	}
}
