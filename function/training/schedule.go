// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/training/runs"
)

// schedule of a spec that is valid.
func schedule(s *v1alpha1.TrainingSchedule) runs.Schedule {
	out, _ := runs.NewSchedule(s.Cron, s.TimeZone) // Validation reports it.
	out.Replace = s.Concurrency == v1alpha1.ConcurrencyReplace
	out.Continue = s.Begin == v1alpha1.BeginNewestCheckpoint
	out.Within = duration(s.StartingDeadline)
	return out
}

// nextAt is when the schedule begins the next run, or nil.
func (p *pass) nextAt() *time.Time {
	if p.schedule == nil || p.spec.Suspend {
		return nil
	}
	if next := p.schedule.Next(p.Now); !next.IsZero() {
		return &next
	}
	return nil
}

// scheduleStatus is which runs the schedule has begun and will begin.
func (p *pass) scheduleStatus() *v1alpha1.TrainingScheduleStatus {
	switch {
	case !p.accepted():
		return p.before().Schedule // The spec may have none that can be read.
	case p.schedule == nil:
		return nil
	}
	a := p.ledger.Agenda
	return &v1alpha1.TrainingScheduleStatus{
		NextAt: instant(p.nextAt()), LastAt: instant(a.Last), LastRun: a.Run,
		Missed: a.Missed, MissedAt: instant(a.MissedAt), MissedBecause: a.Why,
	}
}

// onSchedule is the condition of that type.
func (p *pass) onSchedule() *xpv2.Condition {
	if p.schedule == nil {
		return nil
	}
	const t = v1alpha1.TypeOnSchedule
	next := "no run begins while spec.suspend is set"
	if at := p.nextAt(); at != nil {
		next = "the next run begins at " + at.Format(time.RFC3339)
	}
	a := p.ledger.Agenda
	c := compose.True(t, v1alpha1.ReasonOnSchedule, next)
	if a.Missed == 0 || a.MissedAt == nil {
		return &c
	}
	times := "1 time"
	if a.Missed > 1 {
		times = fmt.Sprintf("%d times", a.Missed)
	}
	c = compose.False(t, v1alpha1.ReasonScheduleMissed, fmt.Sprintf("%s passed without a run, the last one at %s: %s. To train now, set another spec.rerun.id. Otherwise %s",
		times, a.MissedAt.Format(time.RFC3339), a.Why, next))
	return &c
}

// again is how a Training that has no run can train.
func (p *pass) again() string {
	if at := p.nextAt(); at != nil {
		return "The next run begins at " + at.Format(time.RFC3339) + ". To train before, set another spec.rerun.id"
	}
	return "To train again, set another spec.rerun.id"
}

// onceMore is when a Training that has failed is tried again by itself, or empty.
func (p *pass) onceMore() string {
	if at := p.nextAt(); at != nil {
		return ". The next run begins at " + at.Format(time.RFC3339)
	}
	return ""
}
