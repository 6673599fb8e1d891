// SPDX-License-Identifier: Apache-2.0

package training

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/lineage"
	"github.com/capstan-dev/capstan/function/training/names"
	"github.com/capstan-dev/capstan/function/training/runs"
)

// registersWithin is how long the event about success waits for the version that the registry gives the result.
const registersWithin = time.Hour

// lineage of the runs.
func (p *pass) lineage() lineage.Job {
	return lineage.Job{Request: p.Request, Name: p.Name, Metadata: p.Metadata(p.Crew()), Spec: p.spec.Lineage}
}

// lineageRuns are the runs whose Job was seen: the present one, and the ones of the history.
func (p *pass) lineageRuns() []observev1alpha1.LineageRun {
	var all []observev1alpha1.LineageRun
	before := p.lineage().Runs()
	for _, r := range p.ledger.History {
		if r.Started == nil {
			continue
		}
		one := p.started(r.Run, *r.Started)
		i := slices.IndexFunc(before, func(b observev1alpha1.LineageRun) bool {
			return b.Name == one.Name && b.StartedAt.Equal(&one.StartedAt) && b.State != observev1alpha1.LineageRunning
		})
		switch {
		case i >= 0:
			one = before[i] // Its event may have been sent, and the registry's object of its version may be gone.
		case p.awaitsVersion(r):
		default:
			one.State, one.EndedAt, one.Outputs = endOf(r.Outcome), &metav1.Time{Time: r.Ended}, p.resultOf(r)
		}
		all = append(all, one)
	}
	l := p.ledger
	ended := slices.ContainsFunc(l.History, func(r runs.Record) bool { return r.Run == l.Run })
	if l.Started != nil && !ended {
		all = append(all, p.started(l.Run, *l.Started))
	}
	return all
}

// started run, whose end is not known.
func (p *pass) started(run int32, at time.Time) observev1alpha1.LineageRun {
	return observev1alpha1.LineageRun{Name: p.Job(run), StartedAt: metav1.NewTime(at), State: observev1alpha1.LineageRunning}
}

// endOf a run. Something else ends a run that neither succeeds nor fails.
func endOf(o runs.Outcome) observev1alpha1.LineageRunState {
	switch o {
	case runs.OutcomeSucceeded:
		return observev1alpha1.LineageSucceeded
	case runs.OutcomeFailed:
		return observev1alpha1.LineageFailed
	default:
		return observev1alpha1.LineageEnded
	}
}

// awaitsVersion reports whether the registry may soon give the result of a run a version, which the event about its end then has.
func (p *pass) awaitsVersion(r runs.Record) bool {
	return r.Outcome == runs.OutcomeSucceeded && p.registerSpec() != nil && p.versionOf(r.Run) == "" && p.Now.Before(r.Ended.Add(registersWithin))
}

// lineageDue is when the next event is sent without a version, or zero.
func (p *pass) lineageDue() time.Time {
	var due time.Time
	if p.spec.Lineage == nil {
		return due
	}
	for _, r := range p.ledger.History {
		if at := r.Ended.Add(registersWithin); p.awaitsVersion(r) && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}

// resultOf a run is the version of a model that it was registered as, or nothing.
func (p *pass) resultOf(r runs.Record) []observev1alpha1.LineageDataset {
	version := p.versionOf(r.Run)
	if r.Outcome != runs.OutcomeSucceeded || version == "" {
		return nil
	}
	o := p.Observed[names.ModelVersion(r.Run)]
	return []observev1alpha1.LineageDataset{{
		Namespace: p.registryName(compose.TextOf(o, "spec", "providerConfigRef", "kind"), compose.TextOf(o, "spec", "providerConfigRef", "name")),
		Name:      compose.TextOf(o, "spec", "forProvider", "model") + "/" + version,
	}}
}

// registryName is the namespace of datasets of a registry. Its address is not known here, but the config that has it: one of the platform, or
// one of this namespace.
func (p *pass) registryName(kind, config string) string {
	if config == "" {
		config = v1alpha1.DefaultMLflowConfig
	}
	if kind == "ProviderConfig" {
		return "mlflow://" + p.Namespace + "/" + config
	}
	return "mlflow://" + config
}
