// SPDX-License-Identifier: Apache-2.0

package jobhistory

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// writeEvery is the time after which attempts of an active run are written again. A program may fail every second, and each write has
// Crossplane write the Pipeline as well.
const writeEvery = 3 * time.Minute

// worth reports whether an observation is worth a write, when the last write was some time ago.
func worth(was, is v1alpha1.JobHistoryObservation, ago time.Duration) bool {
	if equality.Semantic.DeepEqual(was, is) {
		return false
	}
	return ago >= writeEvery || !equality.Semantic.DeepEqual(withoutAttempts(was), withoutAttempts(is))
}

// withoutAttempts is an observation without the attempts of active runs: from the first failure on they differ only in numbers and times.
func withoutAttempts(o v1alpha1.JobHistoryObservation) v1alpha1.JobHistoryObservation {
	out := *o.DeepCopy()
	for i := range out.Jobs {
		j := &out.Jobs[i]
		if j.Ended != nil {
			continue
		}
		j.Attempts = min(j.Attempts, 2)
		if f := j.Failure; f != nil {
			j.Failure = &v1alpha1.ObservedFailure{Class: f.Class, ExitCode: f.ExitCode, Action: f.Action}
		}
		if j.Phase == phaseRecovering && j.Failure != nil {
			j.Phase = phaseRunning
		}
	}
	return out
}
