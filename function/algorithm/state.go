// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"errors"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// state is what the steps of one plan share.
type state struct {
	compose.Request

	name      string
	namespace string
	spec      v1alpha1.AlgorithmSpec

	// problems of the spec. As long as there are any, nothing is changed.
	problems []problem

	// running is what the observed Deployment says.
	running running

	// revision of the pods that the spec asks for, once the Deployment is
	// planned.
	revision string

	// asked are the objects that should exist. Kept ones are not among them.
	asked []compose.Asked

	withholding *compose.Withholding
	plan        *compose.Plan
}

// gather everything that the steps look at.
func gather(r compose.Request) (*state, error) {
	xr := r.Composite.Map()

	s := &state{
		Request:     r,
		name:        compose.Text(xr, "metadata", "name"),
		namespace:   compose.Text(xr, "metadata", "namespace"),
		running:     observe(r.Observed[nameDeployment]),
		withholding: compose.Withhold(r),
		plan:        &compose.Plan{Objects: map[string]compose.Desired{}},
	}

	if s.name == "" || s.namespace == "" {
		return nil, errors.New("metadata.name and metadata.namespace must not be empty")
	}

	s.spec, s.problems = decode(compose.Map(xr, "spec"))
	if len(s.problems) == 0 {
		s.spec = defaulted(s.spec, s.Settings)
		s.problems = validate(s)
	}

	return s, nil
}

// ask for an object that the Algorithm cannot do without.
func (s *state) ask(resource string, o named) { s.add(resource, o, false) }

// offer an object that the Algorithm serves without.
func (s *state) offer(resource string, o named) { s.add(resource, o, true) }

// add an object to the plan, unless it is left out because it was refused.
func (s *state) add(resource string, o named, optional bool) {
	live := s.Observed[resource]
	s.asked = append(s.asked, compose.Asked{
		Resource: resource,
		Kind:     *o.GetKind(),
		Name:     *o.GetName(),
		Observed: live != nil,
		New:      !compose.Referenced(s.Composite.Map(), *o.GetKind(), *o.GetName()),
		Optional: optional,
	})

	if !s.withholding.LeavesOut(resource) {
		s.plan.Objects[resource] = compose.Desired{Object: o, Ready: compose.Ready(live)}
	}
}

// keep an observed object as it is.
func (s *state) keep(resource string) {
	o := s.Observed[resource]
	s.plan.Objects[resource] = compose.Desired{Object: compose.Keep(o), Ready: compose.Ready(o)}
}

// named is what every apply configuration tells of itself.
type named interface {
	GetKind() *string
	GetName() *string
}
