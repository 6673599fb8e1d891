// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/json"
	"maps"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/names"
)

// While clients are switched from one generation to another, no client can write. The step has to end even if the spec becomes
// invalid. The first Credential, which remembers the step, also keeps the spec that was accepted last, as long as there is a step.
// It replaces a spec that is no longer accepted, until one is accepted again. While a step only fills a generation, writes
// continue, and the step waits like everything else.

// StandIn is the spec that was accepted last, while writes wait for a step that it began. It has to be validated again, because
// settings may have changed.
func (s *Cluster) StandIn() map[string]any {
	var spec map[string]any
	text := s.acceptedBefore()
	if step := s.Memory.Step; text == "" || step != nil && step.Phase != v1alpha1.RestoreFencing || json.Unmarshal([]byte(text), &spec) != nil {
		return nil
	}
	return spec
}

// acceptedBefore is the spec that was accepted last, if it is kept.
func (s *Cluster) acceptedBefore() string {
	if o := s.Observed[names.AccessCredential]; o != nil {
		return compose.Text(o.Map(), "metadata", "annotations", names.AnnotationAccepted)
	}
	return ""
}

// AcceptedSpec is the spec to keep, or "".
func (s *Cluster) AcceptedSpec() string {
	switch {
	case len(s.Refused) > 0:
		return s.acceptedBefore()
	case s.Memory.Step == nil:
		return ""
	}
	spec := maps.Clone(compose.Map(s.Composite.Map(), "spec"))
	delete(spec, "crossplane") // It is Crossplane's own.
	return encoding.JSON(spec)
}
