// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/pipeline/runs"
)

// allRuns that are active, and the last that have ended, the newest first.
func (p *pass) allRuns() []v1alpha1.PipelineRun {
	var all []v1alpha1.PipelineRun
	known := map[string]bool{}
	for _, r := range slices.Concat(p.ledger.Runs, p.ledger.History) {
		known[r.Job] = true
		all = append(all, p.run(r))
	}
	if p.report != nil {
		for _, o := range p.report.Jobs {
			if !known[o.Name] && o.Phase != runs.PhaseSucceeded && o.Phase != runs.PhaseFailed {
				all = append(all, scheduled(o))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b v1alpha1.PipelineRun) int {
		if a.StartedAt == nil || b.StartedAt == nil {
			return boolean(a.StartedAt != nil) - boolean(b.StartedAt != nil)
		}
		return cmp.Or(b.StartedAt.Compare(a.StartedAt.Time), strings.Compare(b.Job, a.Job))
	})
	return all
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// run of the ledger. What the provider says of it at the moment says more.
func (p *pass) run(r runs.Run) v1alpha1.PipelineRun {
	out := v1alpha1.PipelineRun{
		ID: r.ID, Job: r.Job, State: string(r.State), StartedAt: instant(r.Started), Attempts: r.Attempts, Class: r.Class, Message: r.Message,
	}
	if r.Memory > 0 {
		out.Memory = runs.Quantity(r.Memory)
	}
	switch o := p.reported(r.Job); {
	case r.State == runs.Active && p.jobs[r.Job].Suspended:
		out.State = runs.PhaseQueued
	case r.State == runs.Active && o != nil:
		out.State = o.Phase
	case r.State == runs.Active:
		out.State = runs.PhaseStarting
	case r.State == runs.Ending:
	case r.Ended != nil:
		out.EndedAt = instant(r.Ended)
		if r.Started != nil {
			out.Took = r.Ended.Sub(*r.Started).Truncate(time.Second).String()
		}
	}
	return out
}

// reported is what the provider says about a Job, or nil.
func (p *pass) reported(job string) *observev1alpha1.ObservedJob {
	if p.report == nil {
		return nil
	}
	i := slices.IndexFunc(p.report.Jobs, func(o observev1alpha1.ObservedJob) bool { return o.Name == job })
	if i < 0 {
		return nil
	}
	return &p.report.Jobs[i]
}

// scheduled run that is active.
func scheduled(o observev1alpha1.ObservedJob) v1alpha1.PipelineRun {
	out := v1alpha1.PipelineRun{
		ID: o.Name[strings.LastIndexByte(o.Name, '-')+1:], Job: o.Name, State: o.Phase, StartedAt: &o.Created, Attempts: o.Attempts,
	}
	if f := o.Failure; f != nil {
		out.Class, out.Message = f.Class, f.Message
	}
	return out
}

// over reports whether a run has ended.
func over(r v1alpha1.PipelineRun) bool {
	return slices.Contains([]string{runs.PhaseSucceeded, runs.PhaseFailed, string(runs.Ended)}, r.State)
}

// phaseNow in one word: the state of the newest run that is active, or how the last one ended.
func (p *pass) phaseNow() v1alpha1.PipelinePhase {
	for _, r := range p.all {
		switch {
		case over(r):
		case r.State == string(runs.Ending) && p.spec.Suspend:
			return v1alpha1.PipelineSuspended
		case r.State == string(runs.Ending):
			return v1alpha1.PipelineUpgrading
		default:
			return v1alpha1.PipelinePhase(r.State)
		}
	}
	switch last := p.last(); {
	case p.spec.Suspend:
		return v1alpha1.PipelineSuspended
	case last == nil && p.accepted() && p.spec.Schedule != nil:
		return v1alpha1.PipelineWaiting
	case last == nil, last.State == string(runs.Ended):
		return v1alpha1.PipelinePending
	default:
		return v1alpha1.PipelinePhase(last.State)
	}
}

// last run, or nil.
func (p *pass) last() *v1alpha1.PipelineRun {
	if len(p.all) == 0 {
		return nil
	}
	return &p.all[0]
}

// status is complete: Crossplane removes what is left out.
func (p *pass) status(d *compose.Draft) v1alpha1.PipelineStatus {
	st := v1alpha1.PipelineStatus{
		Phase: p.phase, LastRun: p.last(), Runs: p.all, NextRun: instant(p.nextRun), Ledger: p.ledger.Text(), Withheld: d.Withheld(),
	}
	if p.accepted() && p.isStream() {
		for _, r := range p.ledger.Runs {
			if r.Kind == runs.Stream {
				st.Stream = &v1alpha1.PipelineStream{StartedAt: instant(r.Started), Restarts: max(0, r.Attempts-1)}
			}
		}
	}
	return st
}

func instant(at *time.Time) *metav1.Time {
	if at == nil {
		return nil
	}
	return &metav1.Time{Time: *at}
}
