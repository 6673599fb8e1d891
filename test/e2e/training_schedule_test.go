// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestTrainingSchedule: each minute begins a run of its own, without the checkpoints of the one before, until the Training is suspended.
func TestTrainingSchedule(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	minutely := func(modify ...func(*v1alpha1.TrainingSpec)) *v1alpha1.Training {
		tr := training(ns, "minutely", 2, "--steps=40", "--step=50ms", "--every=10")
		tr.Spec.Schedule = &v1alpha1.TrainingSchedule{Cron: "* * * * *", TimeZone: "Asia/Kolkata"}
		for _, m := range modify {
			m(&tr.Spec)
		}
		return tr
	}
	if err := apply(t.Context(), minutely()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it waits for its first time, and says so", trained(ns, "minutely", func(st v1alpha1.TrainingStatus) bool {
		return st.Phase == v1alpha1.TrainingScheduled && st.Run == 0 && st.Schedule != nil && st.Schedule.NextAt != nil || st.Run > 0
	}))
	within(t, 4*timeout, "two runs succeed", trained(ns, "minutely", func(st v1alpha1.TrainingStatus) bool {
		succeeded := 0
		for _, r := range st.History {
			if r.Outcome == "Succeeded" && r.Step == 40 && r.ScheduledAt != nil {
				succeeded++
			}
		}
		return succeeded >= 2
	}))
	tr, err := get(t.Context(), &v1alpha1.Training{}, ns, "minutely")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tr.Status.History {
		if r.ScheduledAt == nil || r.StartedAt == nil {
			t.Errorf("each run should have its time: %+v", r)
			continue
		}
		late := r.StartedAt.Sub(r.ScheduledAt.Time)
		t.Logf("run %d began %s after its time", r.Run, late)
		if r.ScheduledAt.Second() != 0 || late < 0 || late > 30*time.Second {
			t.Errorf("run %d should begin at a minute, soon after it: %+v", r.Run, r)
		}
	}
	if c := tr.Status.Checkpoint; c == nil || !strings.Contains(c.URI, "/checkpoints/minutely-cycle-") {
		t.Errorf("checkpoints should be in a folder of their own, got %+v", c)
	}

	if err := apply(t.Context(), minutely(func(s *v1alpha1.TrainingSpec) { s.Suspend = true })); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "times that pass while it is suspended are reported", trained(ns, "minutely", func(st v1alpha1.TrainingStatus) bool {
		c := st.GetCondition(v1alpha1.TypeOnSchedule)
		return c.Status == corev1.ConditionFalse && c.Reason == v1alpha1.ReasonScheduleMissed && strings.Contains(c.Message, "spec.suspend") && st.Schedule.NextAt == nil
	}))
	eventually(t, "nothing runs", podless(ns, "minutely"))
}
