// SPDX-License-Identifier: Apache-2.0

package podhealth

import (
	"strings"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// Config finds that the container cannot be made from its configuration. The detail says what of it.
func (s Subject) Config(remedy string) *Hindrance {
	w := s.Status.State.Waiting
	if w == nil || (w.Reason != "CreateContainerConfigError" && w.Reason != "CreateContainerError") {
		return nil
	}
	said := words.Steady(w.Message, s.Pod.GetName())

	// The kubelet says so for seconds after its own start.
	if strings.Contains(said, "services have not yet been read") {
		return nil
	}
	return &Hindrance{
		Reason: v1alpha1.ReasonConfigError,
		What:   "the container cannot be made",
		Detail: said,
		Remedy: remedy,
		Cause:  observev1alpha1.FindingOfRevision,
	}
}
