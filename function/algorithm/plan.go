// SPDX-License-Identifier: Apache-2.0

// Package algorithm plans one Algorithm: from its spec and the objects that exist, what should exist and what to report. It is
// pure, and knows nothing of gRPC or protobuf. Values go in one direction: facts (facts.go), the revision that the spec asks for
// (target.go), the decision about revisions (package rollout), objects, and the report. Start reading in this file.
package algorithm

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/compose"
)

// Plan one Algorithm. It errs only for a composite resource that has no name or namespace; every mistake that a user can make becomes a
// condition.
func Plan(r compose.Request) (*compose.Plan, error) {
	f, err := gather(r)
	if err != nil {
		return nil, err
	}
	// No object is ever reported as unready: the plan says whether the Algorithm is ready, and Crossplane would make nothing of
	// it but one event of the Algorithm each time it looks. Only 25 of these get through, and then one in five minutes, so that
	// transitions would not be reported.
	d := compose.NewDraft(r, nil)
	p, history, err := desired(d, f)
	if err != nil {
		return nil, err
	}
	ready := p.ready(d)
	st, err := status(d, p, history)
	if err != nil {
		return nil, err
	}
	plan := &compose.Plan{
		Objects:    d.Objects(),
		Ready:      ready,
		Status:     st,
		Conditions: conditions(d, p),
		Events:     append(p.decision.Events(), p.hookRuns.Events(p.toldRuns)...),
		Requires:   p.required,
		TTL:        p.ttl(d, ready),
	}
	if p.moves() {
		compose.Hold(r, plan)
	}
	d.Settle(plan, false)
	return plan, nil
}

// desired objects, and the revisions that served before. A spec that cannot be carried out changes nothing, except that requests
// are rescued from a candidate that fails.
func desired(d *compose.Draft, f *facts) (*pass, []string, error) {
	if !f.accepted() {
		d.KeepRest()
		p := &pass{facts: f, rollout: f.rollout, required: f.experiments}
		if rescued, ok := rollout.Rescue(f.rollout); ok {
			p.decision = rescued
			redirect(d, f, rescued.Ledger)
		} else {
			rouse(d, p)
		}
		return p, nil, nil
	}
	p, err := decide(f)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot decide about revisions: %w", err)
	}
	history, err := objects(d, p)
	return p, history, err
}

// objects of an accepted spec, and the revisions that served before.
func objects(d *compose.Draft, p *pass) ([]string, error) {
	modelVersion(d, p.facts)
	armVersion(d, p.facts, p.target)
	serviceAccount(d, p)
	config(d, p)
	deviceClaim(d, p)
	modelCache(d, p)
	history, err := revisions(d, p)
	if err != nil {
		return nil, err
	}
	for _, r := range p.runs() {
		if r.Revision != "" {
			deployment(d, p, r)
		}
	}
	idleDeployments(d, p)
	slotServices(d, p)
	autoscalers(d, p)
	disruptionBudgets(d, p)
	service(d, p)
	activator(d, p)
	route(d, p)
	networkPolicy(d, p)
	analysis(d, p)
	hooks(d, p)
	signalHooks(d, p)
	monitor(d, p)
	prometheusRules(d, p)
	modelAliases(d, p)
	lingering(d, p, history)
	modelsKept(d, p)
	return history, nil
}
