// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// A Trial is an experiment under way, as the ledger remembers it.
type Trial struct {
	ID string `json:"id"`

	// Key of everything that the experiment is about. With another key it is another experiment.
	Key string `json:"key"`

	// Started is when requests were first seen to reach both arms.
	Started time.Time `json:"started,omitzero"`
}

// KeyOf everything that an experiment is about. How long it may last is not: the test holds whenever it ends.
func KeyOf(e *v1alpha1.Experiment) string {
	about := e.DeepCopy()
	about.Stop.Duration = nil
	raw, _ := json.Marshal(about) //nolint:errchkjson // Text and finite numbers always marshal.
	return compose.Hash(raw)
}

// compared arms of the ledger's experiment.
func compared(l Ledger, found observev1alpha1.ExperimentObservation) v1alpha1.ExperimentStatus {
	st := v1alpha1.ExperimentStatus{
		ID: l.Experiment.ID, Effect: found.Effect, Lower: found.Lower, Upper: found.Upper,
		A: armStatus(l.Revision, found.Baseline), B: armStatus(l.Candidate, found.Canary),
	}
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
