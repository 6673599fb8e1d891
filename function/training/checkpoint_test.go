// SPDX-License-Identifier: Apache-2.0

package training

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/training/names"
)

const (
	keepingSpec = `{image: registry.example.org/train:1, args: [train], checkpoint: {claimName: c, complete: step-*/DONE, every: 10m, keep: 5}}`
	overdue     = `{phase: Running, attempt: 0, progress: {step: 100}, overdueSince: "2026-11-20T11:00:00Z", unremoved: "permission denied; let the pods write there"}`
)

// TestCheckpointsReachThePlan shows that the crew learns of both fields.
func TestCheckpointsReachThePlan(t *testing.T) {
	w := begun(t, keepingSpec)
	for resource, o := range w.Composed {
		if !strings.HasPrefix(resource, names.PlansOf(1)) {
			continue
		}
		var plan crew.Plan
		if err := json.Unmarshal([]byte(compose.TextOf(o, "data", crew.PlanFile)), &plan); err != nil {
			t.Fatal(err)
		}
		want := &crew.Checkpoints{Dir: "/checkpoints", Complete: "step-*/DONE", EverySeconds: 600, Keep: 5}
		if diff := cmp.Diff(want, plan.Checkpoints); diff != "" {
			t.Errorf("plan: -want, +got:\n%s", diff)
		}
		return
	}
	t.Fatal("there is no plan")
}

// TestCheckpointsHealthy shows what is reported of checkpoints.
func TestCheckpointsHealthy(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		spec   string
		report string
		job    string
		want   string
		words  []string
	}{
		"Neither": {reason: "Without the fields there is no condition.", spec: usualSpec, report: overdue},
		"Well":    {reason: "Nothing is reported.", spec: keepingSpec, report: running, want: "True/CheckpointsInTime"},
		"Overdue": {
			reason: "A fault would repeat the steps, so that comes first.", spec: keepingSpec, report: overdue, want: "False/CheckpointOverdue",
			words: []string{"3 times spec.checkpoint.every (10m)", "since 2026-11-20T11:00:00Z", "$CAPSTAN_CHECKPOINT_EVERY", "spec.checkpoint.complete names (step-*/DONE)", "raise spec.checkpoint.every"},
		},
		"Reported only": {
			reason: "Without a pattern a rank has to report it.", report: overdue, want: "False/CheckpointOverdue", words: []string{"$CAPSTAN_PROGRESS"},
			spec: `{image: registry.example.org/train:1, args: [train], checkpoint: {claimName: c, every: 10m}}`,
		},
		"Not removed": {
			reason: "The volume may become full.", report: overdue, want: "False/CheckpointsNotRemoved", words: []string{"permission denied; let the pods write there"},
			spec: `{image: registry.example.org/train:1, args: [train], checkpoint: {claimName: c, keep: 5}}`,
		},
		"Ended": {
			reason: "Nothing is overdue after the end, but the volume is as full as before.", spec: keepingSpec, report: strings.Replace(overdue, "Running", "Succeeded", 1),
			job: complete, want: "False/CheckpointsNotRemoved",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begun(t, tc.spec)
			if tc.job != "" {
				w.kubernetes(tc.job)
			}
			w.report(tc.report)
			w.settle()
			if got := w.condition(v1alpha1.TypeCheckpointsHealthy); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			for _, c := range w.plan.Conditions {
				for _, word := range tc.words {
					if c.Type == v1alpha1.TypeCheckpointsHealthy && !strings.Contains(c.Message, word) {
						t.Errorf("%s\nwant %q in %q", tc.reason, word, c.Message)
					}
				}
			}
			if tc.job == "" && !w.plan.Ready {
				t.Errorf("%s\nranks run, and that is what Ready is about", tc.reason)
			}
		})
	}
}
