// SPDX-License-Identifier: Apache-2.0

// Package preview plans one Preview: an Algorithm and a Database that are copies of others for a while. It is pure, and knows nothing of
// gRPC or protobuf. Values go in one direction: facts (facts.go), how long it lives (life.go), the copies (algorithm.go, database.go), and
// the report (report.go). Start reading in this file.
package preview

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// Names of the copies within the composition.
const (
	Algorithm = "algorithm"
	Database  = "database"
)

// A pass is the facts with what is decided by them.
type pass struct {
	*facts
	life

	// copies that the spec asks for, in order.
	copies []copied
}

// A copied object, and whether it can be made.
type copied struct {
	copyOf

	verdict verdict
	// ready reports that it runs as it is desired now.
	ready bool
}

// Plan one Preview. It errs only for a composite resource that has no name or namespace; every mistake that a user can make becomes a
// condition.
func Plan(r compose.Request) (*compose.Plan, error) {
	f, err := gather(r)
	if err != nil {
		return nil, err
	}
	p := &pass{facts: f, life: f.lifetime()}
	d := compose.NewDraft(r, func(live compose.Object) bool { return live != nil && ready(live) })
	switch {
	case p.isOver():
		// What is in no draft is removed. Only what Crossplane itself composed for this Preview can be observed here.
	case len(p.problems) > 0:
		d.KeepRest()
	default:
		p.copies = p.compose(d)
	}
	plan := &compose.Plan{
		Objects:    d.Objects(),
		Ready:      p.ready(),
		Status:     p.status(d),
		Conditions: p.conditions(d),
		Requires:   p.requires(),
		TTL:        p.ttl(d),
	}
	// Later passes could not find out again when it expired.
	d.Settle(plan, p.expired && p.before.ExpiredAt == nil)
	return plan, nil
}

// compose the copies. One whose original is gone, or no longer allows it, stays as it is until the time is up.
func (p *pass) compose(d *compose.Draft) []copied {
	asked := p.requested()
	copies := make([]copied, 0, len(asked))
	for _, c := range asked {
		made := copied{copyOf: c, verdict: p.judge(c)}
		live := p.Observed[c.resource]
		switch {
		case !made.verdict.allowed:
			made.ready = p.isReady(c.resource)
			d.Keep(c.resource)
		case live == nil && c.resource == Algorithm && p.spec.Database != nil && !p.isReady(Database):
			// Its pods would fail until the Secrets of the Database exist.
		case c.resource == Algorithm:
			o := p.algorithm(made.verdict.base)
			made.ready = p.isReady(c.resource) && applied(live, o.Spec)
			d.Require(c.resource, o)
		default:
			o := p.database(made.verdict)
			made.ready = p.isReady(c.resource) && applied(live, o.Spec)
			d.Require(c.resource, o)
		}
		copies = append(copies, made)
	}
	return copies
}

// ready while every copy is.
func (p *pass) ready() bool {
	if p.isOver() || len(p.problems) > 0 {
		return false
	}
	return !slices.ContainsFunc(p.copies, func(c copied) bool { return !c.ready })
}

// applied reports whether a copy has what a Preview can change. Until it does, it is ready as it was before the edit.
func applied(live compose.Object, desired map[string]any) bool {
	for _, field := range []string{"image", "replicas", "args", "env", "storage"} {
		if want, ok := desired[field]; ok && !sameJSON(want, live.Field("spec", field)) {
			return false
		}
	}
	return true
}

// sameJSON reports whether two values are the same as JSON.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// requires the originals while the Preview lives, and what it was made of until that is gone.
func (p *pass) requires() map[string]compose.Requirement {
	requires := map[string]compose.Requirement{}
	for _, c := range p.requested() {
		switch {
		case p.seeksLeftovers():
			requires[leftoverPrefix+c.resource] = compose.Requirement{Kind: c.kind, Namespace: p.namespace, Name: c.name}
		case !p.expired && len(p.problems) == 0:
			requires[basePrefix+c.resource] = compose.Requirement{Kind: c.kind, Namespace: p.namespace, Name: c.of}
		}
	}
	if !p.expired && !p.seeksLeftovers() && len(p.problems) == 0 {
		for required, name := range p.masks() {
			if name == "" {
				continue
			}
			requires[required] = compose.Requirement{Kind: configMap, Namespace: p.namespace, Name: name}
		}
	}
	return requires
}

// ttl by what the Preview waits for, and until its time is up.
func (p *pass) ttl(d *compose.Draft) time.Duration {
	pace := compose.Settled
	switch {
	case p.phase() == v1alpha1.PreviewExpired:
		return pace.TTL(p.Now)
	case p.isOver():
		pace = compose.Expecting
	case !p.ready():
		pace = compose.Waiting
	}
	if compose.Unheard(p.Request) {
		pace = max(pace, compose.Following)
	}
	if d.Waits() {
		pace = max(pace, compose.Asking)
	}
	deadlines := d.Deadlines()
	if !p.expired {
		deadlines = append(deadlines, p.until)
	}
	return pace.TTL(p.Now, deadlines...)
}
