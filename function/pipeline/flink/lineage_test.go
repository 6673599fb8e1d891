// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	contract "github.com/capstan-dev/capstan/apis/flink"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/lineage"
	"github.com/capstan-dev/capstan/function/lineage/lineagetest"
	"github.com/capstan-dev/capstan/function/observed"
)

// TestLineage: each revision is a run, which ends when another one is desired, or none.
func TestLineage(t *testing.T) {
	later := func(w *world) { w.run(10 * time.Minute) }
	edit := func(text string) func(*world) { return func(w *world) { w.edit(text) } }
	phase := func(p contract.Phase) func(*world) { return func(w *world) { w.report.Phase = string(p) } }
	cases := map[string]struct {
		reason string
		steps  []func(*world)
		want   []string
	}{
		"Starts": {reason: "It has begun.", want: []string{"clicks-r1 Running 12:00"}},
		"Edited": {
			reason: "An edit ends a revision.", steps: []func(*world){later, edit(`{image: good-2}`), later},
			want: []string{"clicks-r1 Ended 12:00-12:10", "clicks-r2 Running 12:10"},
		},
		"Broken": {
			reason: "One that is rolled back ends, too.", steps: []func(*world){later, func(w *world) { w.broken["bad"] = true }, edit(`{image: bad}`), later, later},
			want: []string{"clicks-r1 Ended 12:00-12:10", "clicks-r2 Ended 12:10-12:20", "clicks-r3 Running 12:20"},
		},
		"Suspended": {reason: "Suspend ends it.", steps: []func(*world){later, edit(`{suspend: true}`), later}, want: []string{"clicks-r1 Ended 12:00-12:10"}},
		"Resumed": {
			reason: "It begins again.", steps: []func(*world){later, edit(`{suspend: true}`), later, edit(`{suspend: false}`)},
			want: []string{"clicks-r1 Ended 12:00-12:10", "clicks-r1 Running 12:20"},
		},
		"Finished": {reason: "Its input has ended, and the end stays as it was.", steps: []func(*world){later, phase(contract.PhaseFinished), func(w *world) { w.now = w.now.Add(time.Hour) }}, want: []string{"clicks-r1 Succeeded 12:00-12:10"}},
		"Canceled": {reason: "A person ended it.", steps: []func(*world){later, phase(contract.PhaseCanceled)}, want: []string{"clicks-r1 Ended 12:00-12:10"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usualSpec)
			w.edit(`{lineage: {outputs: [{namespace: "s3://lake", name: clicks}]}}`)
			w.settle()
			for _, step := range tc.steps {
				step(w)
				w.settle()
			}
			p, _ := observed.Parameters[observev1alpha1.LineageParameters](w.composed[lineage.Resource])
			got := lineagetest.Runs(w.composed[lineage.Resource])
			if diff := cmp.Diff(tc.want, got); diff != "" || !p.Streaming || p.Job != "clicks" {
				t.Errorf("%s %+v -want, +got:\n%s", tc.reason, p, diff)
			}
		})
	}
}

// TestLineageIsBounded: the oldest revisions are forgotten.
func TestLineageIsBounded(t *testing.T) {
	w := newWorld(t, usualSpec)
	w.edit(`{lineage: {}}`)
	for i := range 20 {
		w.edit(`{image: good-` + string(rune('a'+i)) + `}`)
		w.settle()
		w.run(time.Minute)
	}
	p, _ := observed.Parameters[observev1alpha1.LineageParameters](w.composed[lineage.Resource])
	if n := len(p.Runs); n != mostRuns || p.Runs[n-1].Name != "clicks-r20" {
		t.Errorf("want the last %d revisions, got %d: %+v", mostRuns, n, p.Runs)
	}
}
