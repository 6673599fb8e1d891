// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/flink"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/lineage"
)

// mostRuns that a Lineage remembers of a stream.
const mostRuns = 16

// lineage of the stream.
func (p *pass) lineage() lineage.Job {
	return lineage.Job{Request: p.Request, Name: p.Name, Metadata: p.Metadata(p.Flink()), Spec: p.spec.Lineage, Streaming: true}
}

// lineageRuns are the last revisions, each a run from when it was desired until another one was, or the spec suspended it. The ledger has the
// present one only: the Lineage itself remembers those before.
func (p *pass) lineageRuns() []observev1alpha1.LineageRun {
	now := metav1.NewTime(p.Now)
	present := p.lineageRun()
	var all []observev1alpha1.LineageRun
	for _, r := range p.lineage().Runs() {
		if present != nil && r.Name == present.Name && r.StartedAt.Equal(&present.StartedAt) {
			if r.State == present.State {
				present.EndedAt = r.EndedAt
			}
			continue
		}
		if r.State == observev1alpha1.LineageRunning {
			r.State, r.EndedAt = observev1alpha1.LineageEnded, &now
		}
		all = append(all, r)
	}
	if present != nil {
		if present.State != observev1alpha1.LineageRunning && present.EndedAt == nil {
			present.EndedAt = &now
		}
		all = append(all, *present)
	}
	return all[max(0, len(all)-mostRuns):]
}

// lineageRun is the present revision as a run, or nil while there is none, or the spec suspends it.
func (p *pass) lineageRun() *observev1alpha1.LineageRun {
	l := p.ledger
	if l.Revision == 0 || l.Since == nil || l.Suspended {
		return nil
	}
	r := &observev1alpha1.LineageRun{
		Name: fmt.Sprintf("%s-r%d", p.Name, l.Revision), StartedAt: metav1.NewTime(*l.Since), State: observev1alpha1.LineageRunning,
	}
	if seen := p.present(); seen != nil {
		switch flink.Phase(seen.Phase) { //nolint:exhaustive // The others are no ends.
		case flink.PhaseFinished:
			r.State = observev1alpha1.LineageSucceeded
		case flink.PhaseCanceled:
			r.State = observev1alpha1.LineageEnded
		}
	}
	return r
}
