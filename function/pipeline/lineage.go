// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"slices"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/lineage"
	"github.com/capstan-dev/capstan/function/pipeline/runs"
)

// lineage of the runs.
func (p *pass) lineage() lineage.Job {
	return lineage.Job{Request: p.Request, Name: p.Name, Metadata: p.Metadata(p.Shared()), Spec: p.spec.Lineage, Streaming: p.isStream()}
}

// lineageRuns are the runs whose Job was seen: those that are remembered, and scheduled ones that are active.
func (p *pass) lineageRuns() []observev1alpha1.LineageRun {
	var all []observev1alpha1.LineageRun
	known := map[string]bool{}
	for _, r := range slices.Concat(p.ledger.Runs, p.ledger.History) {
		known[r.Job] = true
		if r.Started == nil {
			continue
		}
		one := observev1alpha1.LineageRun{Name: r.Job, StartedAt: *instant(r.Started), State: observev1alpha1.LineageRunning}
		if slices.Contains([]runs.State{runs.Succeeded, runs.Failed, runs.Ended}, r.State) {
			one.State, one.EndedAt = observev1alpha1.LineageRunState(r.State), instant(r.Ended)
		}
		all = append(all, one)
	}
	if p.report == nil {
		return all
	}
	for _, o := range p.report.Jobs {
		if !known[o.Name] && o.Phase != runs.PhaseSucceeded && o.Phase != runs.PhaseFailed {
			all = append(all, observev1alpha1.LineageRun{Name: o.Name, StartedAt: o.Created, State: observev1alpha1.LineageRunning})
		}
	}
	return all
}
