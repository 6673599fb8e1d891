// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"strings"

	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/algorithm/sleep"
	"github.com/capstan-dev/capstan/function/compose"
)

// A pass is everything that objects and reports are made of: the facts, what the spec asks for, and what was decided about it.
type pass struct {
	*facts

	// target is the revision that the spec asks for, and armB the one of the requested experiment's arm B.
	target, armB target

	// rollout is what was decided by, and decision what came of it.
	rollout  rollout.Facts
	decision rollout.Decision

	// sleep is whether it sleeps after this pass.
	sleep sleep.Mark

	// required are the objects of others that the plan depends on.
	required map[string]compose.Requirement

	// records of all revisions that run or are kept.
	records map[string]record
}

// decide about the revisions.
func decide(f *facts) (*pass, error) {
	p := &pass{facts: f, rollout: f.rollout}
	var err error
	if p.target, err = f.target(); err != nil {
		return nil, err
	}
	if p.armB, err = f.armB(p.target); err != nil {
		return nil, err
	}
	p.rollout.Target, p.rollout.ArmB = p.target.revision, p.armB.revision
	if e := f.rollout.Experiment; e != nil && e.ArmB.ModelVersion != "" {
		m := f.armModel(e.ArmB.ModelVersion)
		p.rollout.ArmBUnknown = "version " + m.Version + " of the model is not known: see ModelVersion " +
			f.OfModel(hashOf(m.Name, "armB")) + " of this namespace"
	}
	gateway, refused := f.mirror()
	p.required, p.rollout.MirrorRefused = f.requires(gateway), refused
	p.decision = rollout.Decide(p.rollout)
	p.rested()
	p.records = p.recorded()
	return p, nil
}

// moves reports whether the pass changes what the Service remembers, and with it the objects that follow from that: which revision
// gets which share of requests, and whether any runs.
func (p *pass) moves() bool {
	return p.accepted() && (p.sleep != p.mark || p.decision.Ledger.Text() != ledgerText(p.Observed[names.Service]))
}

// runs are the revisions that run: the live one and the one beside it.
func (p *pass) runs() []rollout.Run { return []rollout.Run{p.decision.Live, p.decision.Beside} }

// recorded revisions.
func (p *pass) recorded() map[string]record {
	l := p.decision.Ledger
	rs := map[string]record{}
	add := func(revision string) {
		if _, known := rs[revision]; known || revision == "" {
			return
		}
		if r, ok := p.find(revision); ok {
			rs[revision] = r
		}
	}
	for _, revision := range []string{p.decision.Live.Revision, p.decision.Beside.Revision, l.Revision, l.Candidate} {
		add(revision)
	}
	for resource := range p.Observed {
		if revision, ok := strings.CutPrefix(resource, names.RevisionPrefix); ok {
			add(revision)
		}
	}
	return rs
}

// record of a revision, and whether it is known.
func (p *pass) record(revision string) (record, bool) {
	r, ok := p.records[revision]
	return r, ok
}
