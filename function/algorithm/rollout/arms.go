// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// compared arms of the ledger's experiment.
func compared(l Ledger, found observev1alpha1.ExperimentObservation) v1alpha1.AlgorithmExperiment {
	st := v1alpha1.AlgorithmExperiment{Name: l.Experiment.ID, ExperimentState: v1alpha1.ExperimentState{
		Effect: found.Effect, Lower: found.Lower, Upper: found.Upper,
		A: armStatus(l.Revision, found.Baseline), B: armStatus(l.Candidate, found.Canary),
	}}
	if started := l.Experiment.Started; !started.IsZero() {
		st.StartedAt = &metav1.Time{Time: started}
	}
	return st
}

func armStatus(revision string, of *observev1alpha1.ExperimentShareOf) *v1alpha1.ExperimentArmStatus {
	st := &v1alpha1.ExperimentArmStatus{Revision: revision}
	if of != nil {
		st.Value, st.Samples = &of.Value, &of.Samples
	}
	return st
}
