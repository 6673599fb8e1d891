// SPDX-License-Identifier: Apache-2.0

// Package pipeline plans one Pipeline: from its spec and the objects that exist, what should exist and what to report. It is pure, and knows
// nothing of gRPC or protobuf. Values go in one direction: facts (facts.go), the decision about runs (package runs), objects, and the
// report. Start reading in this file.
package pipeline

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/definition"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/pipeline/flink"
	"github.com/capstan-dev/capstan/function/pipeline/names"
	"github.com/capstan-dev/capstan/function/pipeline/runs"
)

// A pass is the facts with what is decided by them.
type pass struct {
	*facts

	// ledger from now on, and the times of further decisions.
	ledger    runs.Ledger
	deadlines []time.Time

	// all runs for the status, the newest first, and the phase in one word.
	all   []v1alpha1.PipelineRun
	phase v1alpha1.PipelinePhase
}

// Plan one Pipeline. It errs only for a composite resource that has no name or namespace; every mistake that a user can make becomes a
// condition.
func Plan(r compose.Request) (*compose.Plan, error) {
	if compose.Text(r.Composite.Map(), "spec", "engine") == string(v1alpha1.PipelineFlink) {
		return planFlink(r)
	}
	f, err := gather(r)
	if err != nil {
		return nil, err
	}
	dec := f.decide()
	p := &pass{facts: f, ledger: dec.Ledger, deadlines: dec.Deadlines}
	p.all = p.allRuns()
	p.phase = p.phaseNow()
	// As for Algorithms: the plan says whether the Pipeline is ready, and no object is reported as unready.
	d := compose.NewDraft(f.Request, nil)
	if p.accepted() {
		if err := objects(d, p); err != nil {
			return nil, fmt.Errorf("cannot compose the runs: %w", err)
		}
	} else {
		if f.SettingsErr == nil {
			service(d, p) // It depends on no spec, and what is remembered must not be lost meanwhile.
		}
		d.KeepRest()
	}
	for job, seen := range p.jobs {
		if resource := jobResource(job); seen.Suspended {
			jobpod.UnlessChanged(d, resource, p.Observed[resource])
		}
	}
	plan := &compose.Plan{
		Objects:    d.Objects(),
		Ready:      p.ready(d),
		Status:     p.status(d),
		Conditions: p.conditions(d),
		Requires:   p.requires(),
		TTL:        p.ttl(d),
	}
	d.Settle(plan, false)
	return plan, nil
}

// planFlink plans a stream with Flink, which has no runs.
func planFlink(r compose.Request) (*compose.Plan, error) {
	written, _, _ := definition.Decode[v1alpha1.PipelineSpec](theDefinition(), compose.Text(r.Composite.Map(), "metadata", "name"), compose.Map(r.Composite.Map(), "spec"))
	_, _, problems := read(r)
	return flink.Plan(r, written, problems) //nolint:wrapcheck // It says what it was for.
}

// requires the Jobs of runs that are not observed: those that end do so with their pods, and Crossplane may have lost its reference. That
// depends on what is remembered only, because Crossplane asks until the same is required twice.
func (p *pass) requires() map[string]compose.Requirement {
	all := map[string]compose.Requirement{}
	for _, r := range p.remembered.Runs {
		if r.Seen && !p.referenced(r.Job) {
			all[requiredJob+r.Job] = compose.Requirement{Kind: jobGVK, Namespace: p.Namespace, Name: r.Job}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

var jobGVK = batchv1.SchemeGroupVersion.WithKind("Job")

// ready while nothing that should run has failed.
func (p *pass) ready(d *compose.Draft) bool {
	switch p.phase {
	case v1alpha1.PipelineFailed, v1alpha1.PipelinePending, v1alpha1.PipelineSuspended:
		return false
	case v1alpha1.PipelineStarting, v1alpha1.PipelineQueued, v1alpha1.PipelineRecovering, v1alpha1.PipelineUpgrading:
		return !p.isStream() && p.spec.Schedule != nil && p.blocked() == nil && d.Complete()
	default:
		return d.Complete()
	}
}

// blocked is what blocks pods of active runs, or nil.
func (p *pass) blocked() *observev1alpha1.RunPods {
	if p.report == nil {
		return nil
	}
	return p.report.Pods
}

// ttl by what the Pipeline waits for.
func (p *pass) ttl(d *compose.Draft) time.Duration {
	pace := compose.Settled
	if len(p.ledger.Runs) > 0 {
		pace = compose.Waiting
	}
	if compose.Unheard(p.Request) {
		pace = compose.Following
	}
	if d.Waits() {
		pace = compose.Asking
	}
	for _, r := range p.ledger.Runs {
		if r.State == runs.Ending {
			pace = compose.Expecting
		}
	}
	deadlines := append(d.Deadlines(), p.deadlines...)
	if p.nextRun != nil {
		deadlines = append(deadlines, *p.nextRun)
	}
	for _, until := range p.keepUntil() {
		deadlines = append(deadlines, until)
	}
	var ahead []time.Time
	for _, at := range deadlines {
		if at.After(p.Now) {
			ahead = append(ahead, at)
		}
	}
	return pace.TTL(p.Now, ahead...)
}

// keepUntil is until when Jobs of runs that have ended by themselves stay, by their names. A spec that does not decode gives no end: all
// objects stay then.
func (p *pass) keepUntil() map[string]time.Time {
	out := map[string]time.Time{}
	if p.spec.KeepFinishedFor == nil {
		return out
	}
	for _, r := range p.ledger.History {
		j, exists := p.jobs[r.Job]
		if !exists || r.Ended == nil || !j.Complete && !j.Failed {
			continue
		}
		if until := r.Ended.Add(p.spec.KeepFinishedFor.Duration); until.After(p.Now) {
			out[r.Job] = until
		}
	}
	return out
}

// jobResource is the name of a Job within the composition.
func jobResource(job string) string { return names.JobPrefix + job }
