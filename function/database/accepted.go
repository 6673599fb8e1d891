// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

// While clients are led from one generation to another nobody can write, so that has to
// end whatever becomes of the spec. The first Credential, which remembers the step,
// carries the spec that was accepted last for as long as there is one. When the spec is
// not accepted any more that one stands in for it, until a spec is accepted again. As
// long as a step only fills a generation writes go on, and it waits as all else does.

// accept a spec, or tell its problems.
func (s *state) accept(spec map[string]any) []check.Problem {
	var ps []check.Problem
	if s.spec, ps = decode(spec); len(ps) > 0 {
		return ps
	}

	s.spec = defaulted(s.spec, s.name)

	return check.All(s, checks)
}

// standIn makes the spec that was accepted last that of this pass, if writes stand still
// until a step is over that was begun by it. It has to be acceptable still: settings may
// have changed.
func (s *state) standIn() {
	var spec map[string]any

	text := s.acceptedBefore()
	if step := s.memory.Step; text == "" || step != nil && step.Phase != v1alpha1.RestoreFencing ||
		json.Unmarshal([]byte(text), &spec) != nil {
		return
	}

	t := *s
	if len(t.accept(spec)) > 0 {
		return
	}

	// Whether it may be deleted is told of the spec that there is.
	t.spec.DeletionProtection = s.spec.DeletionProtection
	t.refused, t.problems = s.problems, nil
	*s = t
}

// acceptedBefore is the spec that was accepted last, if it is kept.
func (s *state) acceptedBefore() string {
	if o := s.Observed[nameAccessCredential]; o != nil {
		return compose.Text(o.Map(), "metadata", "annotations", annotationAccepted)
	}

	return ""
}

// acceptedSpec is what is to be kept of the spec, if anything is.
func (s *state) acceptedSpec() (string, error) {
	switch {
	case len(s.refused) > 0:
		return s.acceptedBefore(), nil
	case s.memory.Step == nil:
		return "", nil
	}

	spec := maps.Clone(compose.Map(s.Composite.Map(), "spec"))
	delete(spec, "crossplane") // It is Crossplane's own.

	raw, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("cannot keep the spec that was accepted: %w", err)
	}

	return string(raw), nil
}
