// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"maps"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/algorithm/validation"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/experiment"
)

// Names that Experiments are required under: the one that spec.experiment names, and the one that runs where that is another.
const (
	requiredExperiment = "experiment"
	requiredRunning    = "experiment-running"
)

// A named Experiment as Crossplane found it.
type named struct {
	// usable experiment, or nil with the reason why it is not.
	usable   *rollout.Experiment
	unusable rollout.Waiting

	// gone reports whether it is known not to exist.
	gone bool
}

// compares revisions by the Experiment that the spec names. Where that one cannot be used, the one that runs continues. What runs
// stays as it is, too, as long as its own Experiment is invalid or has not been read: the returned problems keep the whole pass from
// changing anything.
func (f *facts) compares(r rollout.Facts) (rollout.Facts, []check.Problem) {
	name, running := f.spec.Experiment, ""
	if t := r.Ledger.Experiment; t != nil {
		running = t.ID
	}
	if name == "" {
		return r, nil
	}
	if running == "" && r.Ledger.Ran(name) {
		// One that has ended never runs again. What is not required does not wake the Algorithm.
		r.Named = name
		return r, nil
	}
	asked := f.named(requiredExperiment, name)
	current := asked
	if running != "" && running != name {
		if other := f.named(requiredRunning, running); asked.usable == nil {
			current = other
		}
	}
	r.Named, r.Unusable, r.Experiment = name, asked.unusable, current.usable
	if running != "" && current.usable == nil && !current.gone {
		return r, []check.Problem{{Reason: current.unusable.Reason, Message: current.unusable.Message + "; until then nothing changes"}}
	}
	return r, nil
}

// named Experiment of this namespace, which is required for it.
func (f *facts) named(resource, name string) named {
	if f.experiments == nil {
		f.experiments = map[string]compose.Requirement{}
	}
	f.experiments[resource] = compose.Requirement{Kind: v1alpha1.ExperimentGroupVersionKind, Namespace: f.Namespace, Name: name}
	not := func(reason xpv2.ConditionReason, why string) named {
		return named{unusable: rollout.Waiting{Reason: reason, Message: fmt.Sprintf("spec.experiment: %q: %s", name, why)}, gone: reason == v1alpha1.ReasonExperimentMissing}
	}
	o := f.Required[resource]
	switch {
	case !f.Sought[resource], o != nil && compose.Text(o.Map(), "metadata", "name") != name:
		return not(v1alpha1.ReasonAwaitingExperiment, "this Experiment has not been read yet: wait")
	case o == nil, compose.Text(o.Map(), "metadata", "deletionTimestamp") != "":
		return not(v1alpha1.ReasonExperimentMissing, fmt.Sprintf(
			"namespace %q has no such Experiment: create it, or correct the name", f.Namespace))
	}
	spec, problems := experiment.Read(o.Map())
	if len(problems) == 0 {
		problems = check.Errors(validation.Experiment(f.Name, f.spec, spec))
	}
	if len(problems) > 0 {
		return not(v1alpha1.ReasonExperimentInvalid, "this Experiment cannot run: "+check.Accepted(problems).Message)
	}
	return named{usable: &rollout.Experiment{
		ID: name, ExperimentSpec: spec,
		Over: compose.Text(o.Map(), "status", "phase") == string(v1alpha1.ExperimentEnded),
	}}
}

// requires the Experiments, and the objects that say what the Gateway offers.
func (f *facts) requires(gateway map[string]compose.Requirement) map[string]compose.Requirement {
	if len(gateway) == 0 {
		return f.experiments
	}
	all := maps.Clone(gateway)
	maps.Copy(all, f.experiments)
	return all
}
