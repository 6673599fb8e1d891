// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"time"

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

// An Experiment that shall run.
type Experiment struct {
	v1alpha1.ExperimentSpec

	// ID is the name of its object.
	ID string

	// Over reports whether its object remembers that it has run, also when the ledger does not.
	Over bool
}

// KeyOf everything that an experiment is about. How long it may last is not: the test holds whenever it ends.
func KeyOf(e *v1alpha1.ExperimentSpec) string {
	about := e.DeepCopy()
	about.Stop.Duration = nil
	raw, _ := json.Marshal(about) //nolint:errchkjson // Text and finite numbers always marshal.
	return compose.Hash(raw)
}
