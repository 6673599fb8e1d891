// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"errors"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

// requiredAlgorithm is the name that the Algorithm of an Experiment is required under.
const requiredAlgorithm = "algorithm"

// Plan one Experiment. It errs only for a composite resource that has no name or namespace; every mistake that a user can make becomes
// a condition.
func Plan(r compose.Request) (*compose.Plan, error) {
	xr := r.Composite.Map()
	name, namespace := compose.Text(xr, "metadata", "name"), compose.Text(xr, "metadata", "namespace")
	if name == "" || namespace == "" {
		return nil, errors.New("metadata.name and metadata.namespace must not be empty")
	}
	spec, problems := Read(xr)
	problems = slices.Concat(r.Unsupported, check.Settings(r.SettingsErr), problems)
	st := reported(xr)
	var requires map[string]compose.Requirement
	if len(problems) == 0 {
		requires = required(st, namespace, spec.Algorithm)
		st = state(r, name, spec.Algorithm, st)
	}
	conditions := []xpv2.Condition{check.Accepted(problems)}
	if st.Phase != "" {
		conditions = append(conditions, decided(st))
	}
	plan := &compose.Plan{
		Ready:      len(problems) == 0 && (begun(st) || st.Phase == v1alpha1.ExperimentEnded),
		Status:     v1alpha1.ExperimentStatus{ExperimentState: st},
		Conditions: conditions,
		Requires:   requires,
		TTL:        compose.Settled.TTL(r.Now),
	}
	// A later pass may not find the result any more.
	compose.Settle(r, plan, st.Phase == v1alpha1.ExperimentEnded && reported(xr).Phase != v1alpha1.ExperimentEnded)
	return plan, nil
}

// required Algorithm. Every change of what is required wakes up the Experiment, and its result does not change any more.
func required(before v1alpha1.ExperimentState, namespace, algorithm string) map[string]compose.Requirement {
	if before.Phase == v1alpha1.ExperimentEnded {
		return nil
	}
	return map[string]compose.Requirement{
		requiredAlgorithm: {Kind: v1alpha1.AlgorithmGroupVersionKind, Namespace: namespace, Name: algorithm},
	}
}

// decided is the result. Until there is one, the condition is always the same: each change of the Experiment wakes up its Algorithm, and
// Crossplane writes conditions apart from the rest of the status.
func decided(st v1alpha1.ExperimentState) xpv2.Condition {
	if st.Phase == v1alpha1.ExperimentEnded {
		return rollout.Decided(st)
	}
	return compose.Unknown(v1alpha1.TypeExperimentDecided, v1alpha1.ReasonUndecided,
		"the experiment has not ended: status.phase, status.reason and status.message say where it stands")
}
