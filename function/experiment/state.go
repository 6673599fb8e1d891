// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/compose"
)

// reported state of an Experiment: what an earlier pass wrote into its status.
func reported(xr map[string]any) v1alpha1.ExperimentState {
	return decode[v1alpha1.ExperimentState](compose.Map(xr, "status"))
}

// decode JSON. What cannot be decoded is empty: only this function writes it.
func decode[T any](m map[string]any) T {
	var into, none T
	raw, err := json.Marshal(m)
	if err != nil || json.Unmarshal(raw, &into) != nil {
		return none
	}
	return into
}

// state of an experiment by what its Algorithm reports. Once it has ended it stays as it is, also without the Algorithm.
func state(r compose.Request, name, of string, before v1alpha1.ExperimentState) v1alpha1.ExperimentState {
	o := r.Required[requiredAlgorithm]
	switch {
	case before.Phase == v1alpha1.ExperimentEnded, o == nil && !r.Sought[requiredAlgorithm]:
		return before
	case o == nil && begun(before):
		return over(before, v1alpha1.ReasonExperimentRemoved, fmt.Sprintf("experiment %s: its Algorithm %s was deleted", name, of), r.Now)
	case o == nil:
		return waiting(v1alpha1.ReasonAlgorithmMissing, fmt.Sprintf(
			"spec.algorithm: %q: there is no such Algorithm in this namespace: create it, or create an Experiment with the right name", of))
	}
	algorithm := o.Map()
	remembered := memory(algorithm)
	reported := decode[v1alpha1.AlgorithmExperiment](compose.Map(algorithm, "status", "experiment"))
	switch asks := compose.Text(algorithm, "spec", "experiment"); {
	// The Algorithm may have begun another one meanwhile: it remembers the result until that one has ended, too.
	case remembered.Compared != nil && remembered.Compared.Name == name:
		return remembered.Compared.ExperimentState
	case reported.Name == name:
		return calm(reported.ExperimentState, of)
	case remembered.Ran(name) && begun(before):
		return over(before, v1alpha1.ReasonExperimentOver, fmt.Sprintf(
			"experiment %s has ended, and its Algorithm %s does not have the result any more", name, of), r.Now)
	case asks == name && compose.Text(compose.Condition(algorithm, string(v1alpha1.TypeAccepted)), "status") == string(corev1.ConditionFalse):
		return waiting(v1alpha1.ReasonNotAccepted, fmt.Sprintf("the spec of Algorithm %s is not carried out: see its condition Accepted", of))
	case asks == name:
		return waiting(v1alpha1.ReasonAwaitingExperiment, fmt.Sprintf("Algorithm %s has not read it yet", of))
	default:
		return waiting(v1alpha1.ReasonNotRequested, fmt.Sprintf("Algorithm %s does not name it: set spec.experiment of the Algorithm to %q to begin", of, name))
	}
}

// calm state: as long as it is prepared as it should, the message says in general what happens. The message of the Algorithm follows each
// step.
func calm(st v1alpha1.ExperimentState, of string) v1alpha1.ExperimentState {
	if rollout.Prepares(st) {
		st.Message = rollout.PreparesMessage + " of Algorithm " + of
	}
	return st
}

// memory of an Algorithm about its revisions, as far as its status has it.
func memory(algorithm map[string]any) rollout.Ledger {
	l, _ := rollout.ParseLedger(compose.Text(algorithm, "status", "rollout", "ledger"))
	return l
}

// begun reports whether an experiment has begun and not ended.
func begun(st v1alpha1.ExperimentState) bool {
	return st.Phase == v1alpha1.ExperimentPreparing || st.Phase == v1alpha1.ExperimentRunning
}

// waiting for something.
func waiting(reason xpv2.ConditionReason, message string) v1alpha1.ExperimentState {
	return v1alpha1.ExperimentState{Phase: v1alpha1.ExperimentWaiting, Reason: string(reason), Message: message}
}

// over without a result. The numbers stay.
func over(st v1alpha1.ExperimentState, reason xpv2.ConditionReason, message string, now time.Time) v1alpha1.ExperimentState {
	st.Phase, st.Winner, st.Reason, st.Message = v1alpha1.ExperimentEnded, v1alpha1.WinnerInconclusive, string(reason), message
	st.EndedAt = &metav1.Time{Time: now.UTC().Truncate(time.Second)}
	return st
}
