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

// While clients are led from one generation to another nobody can write, so that has to end whatever becomes of the spec. The
// first Credential, which remembers the step, carries the spec that was accepted last for as long as there is one. When the spec
// is not accepted any more that one stands in for it, until a spec is accepted again. As long as a step only fills a generation
// writes go on, and it waits as all else does.

// StandIn is the spec that was accepted last, if writes stand still until a step is over that was begun by it. It has to be
// acceptable still: settings may have changed.
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

// AcceptedSpec is what is to be kept of the spec, if anything is.
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
