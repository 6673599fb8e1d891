// SPDX-License-Identifier: Apache-2.0

// Package training plans one Training: from its spec and the objects that exist, what should exist and what to report. It is pure, and knows
// nothing of gRPC or protobuf. Values go in one direction: facts (facts.go), the decision about runs (package runs), objects, and the
// report. Start reading in this file.
package training

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/training/names"
	"github.com/capstan-dev/capstan/function/training/runs"
)

// A pass is the facts with what is decided by them.
type pass struct {
	*facts

	// ledger from now on, and the times of further decisions.
	ledger    runs.Ledger
	deadlines []time.Time

	// phase in one word, and what is registered.
	phase    v1alpha1.TrainingPhase
	register registration
}

// Plan one Training. It errs only for a composite resource that has no name or namespace; every mistake that a user can make becomes a
// condition.
func Plan(r compose.Request) (*compose.Plan, error) {
	f, err := gather(r)
	if err != nil {
		return nil, err
	}
	dec := f.decide()
	p := &pass{facts: f, ledger: dec.Ledger, deadlines: dec.Deadlines}
	p.phase, p.register = p.phaseNow(), p.registered()
	// As for Algorithms: the plan says whether the Training is ready, and no object is reported as unready.
	d := compose.NewDraft(f.Request, nil)
	if p.accepted() {
		if err := objects(d, p); err != nil {
			return nil, fmt.Errorf("cannot compose the run: %w", err)
		}
	} else {
		d.KeepRest()
	}
	if resource := names.Job(p.ledger.Run); p.jobs[p.ledger.Run].Suspended {
		jobpod.UnlessChanged(d, resource, p.Observed[resource])
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

// requires the Job of the last run when it is not observed: it ends with its pods, and the next run must not begin before, or Crossplane
// has lost its reference to it. That depends on what is remembered only, because Crossplane asks until the same is required twice. Of a run
// that a queue does not let run it also requires what Kueue says.
func (p *pass) requires() map[string]compose.Requirement {
	l, all := p.remembered, map[string]compose.Requirement{}
	if l.Run > 0 && !p.referenced(l.Run) && (l.State != runs.Active || l.Seen) {
		all[requiredJob] = compose.Requirement{Kind: jobGVK, Namespace: p.Namespace, Name: p.Job(l.Run)}
	}
	if p.queued(l) {
		all[requiredWorkload] = jobpod.WorkloadOf(p.Observed[names.Job(l.Run)])
	}
	return all
}

// ready while all ranks run, and after success once everything that follows it is done.
func (p *pass) ready(d *compose.Draft) bool {
	switch p.phase {
	case v1alpha1.TrainingRunning:
		return p.silent() == "" && d.Complete()
	case v1alpha1.TrainingScheduled:
		return d.Complete()
	case v1alpha1.TrainingSucceeded:
		return !p.register.asked || p.register.done()
	default:
		return false
	}
}

// ttl by what the Training waits for.
func (p *pass) ttl(d *compose.Draft) time.Duration {
	pace := compose.Settled
	switch p.phase {
	case v1alpha1.TrainingQueued:
		// Crossplane does not watch what Kueue says.
		if pace = compose.Waiting; !p.evaluated() {
			pace = compose.Expecting
		}
	case v1alpha1.TrainingRunning, v1alpha1.TrainingScheduled, v1alpha1.TrainingFailed, v1alpha1.TrainingSuspended:
	case v1alpha1.TrainingSucceeded:
		if p.register.asked && !p.register.done() {
			pace = compose.Waiting
		}
	default:
		pace = compose.Waiting
	}
	if compose.Unheard(p.Request) {
		pace = compose.Following
	}
	if d.Waits() {
		pace = compose.Asking
	}
	if p.ledger.State == runs.Ending {
		pace = compose.Expecting
	}
	deadlines := d.Deadlines()
	for _, at := range append(p.deadlines, p.keepUntil(), p.lineageDue()) {
		if at.After(p.Now) {
			deadlines = append(deadlines, at)
		}
	}
	return pace.TTL(p.Now, deadlines...)
}

// keepUntil is until when the Job of a Training that has ended stays, or zero.
func (p *pass) keepUntil() time.Time {
	j, exists := p.jobs[p.ledger.Run]
	if !exists || !p.over() || !j.Complete && !j.Failed || p.ledger.Ended == nil {
		return time.Time{}
	}
	return p.ledger.Ended.Add(duration(p.spec.KeepFinishedFor))
}

// over reports whether the Training has ended.
func (p *pass) over() bool { return p.ledger.State == runs.Succeeded || p.ledger.State == runs.Failed }

// desiresJob reports whether the Job of the ledger's run should exist.
func (p *pass) desiresJob() bool { return p.ledger.State == runs.Active || p.keepUntil().After(p.Now) }

// exists reports whether the Job of the ledger's run is observed as a composed object.
func (p *pass) exists() bool { return p.Observed[names.Job(p.ledger.Run)] != nil }

func duration(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

func deref[T any](v *T) T {
	var zero T
	if v == nil {
		return zero
	}
	return *v
}
