// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"errors"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

// state is what the steps of one plan share.
type state struct {
	compose.Request

	name      string
	namespace string
	spec      v1alpha1.AlgorithmSpec

	// problems of the spec. As long as there are any, nothing is changed.
	problems []check.Problem

	// written is the spec as the user wrote it, without the platform's settings.
	written v1alpha1.AlgorithmSpec

	// slots are what the observed Deployments say, and running is the one that
	// callers reach.
	slots   map[string]running
	running running

	// ledger says what callers reach.
	ledger ledger

	// target is the revision that the spec asks for. It is empty while something
	// that belongs to it is not known, and awaits then says what.
	target string
	awaits *awaited

	// resolved is the model of the registry that the spec asks for.
	resolved *v1alpha1.ModelStatus

	// armB of the experiment that the spec asks for, as a state of its own whose target is
	// its revision; nil while it is not known, and once the experiment has been run.
	armB *state

	// features that the Gateway of the route offers, where somebody asks.
	features []string

	// model that the pods of the revision fetch.
	model *source

	// fingerprints of the Secrets whose changes make revisions.
	fingerprints map[string]string

	// decision about the revisions.
	decision decision

	// records of revisions that were looked up, and the revisions that are kept.
	records map[string]record
	history []string

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
		slots:       map[string]running{},
		records:     map[string]record{},
		withholding: compose.Withhold(r),
		plan:        &compose.Plan{Objects: map[string]compose.Desired{}},
	}

	if s.name == "" || s.namespace == "" {
		return nil, errors.New("metadata.name and metadata.namespace must not be empty")
	}

	for _, slot := range []string{slotA, slotB} {
		s.slots[slot] = observe(r.Observed[deploymentOf(slot)])
	}

	s.ledger = s.recall()
	s.running = s.slots[s.ledger.Slot]

	s.spec, s.problems = decode(compose.Map(xr, "spec"))
	if len(s.problems) == 0 {
		s.written = *s.spec.DeepCopy()
		measured(&s.spec)
		s.spec = defaulted(s.spec, s.Settings)
		s.problems = check.All(s, checks)
	}

	return s, nil
}

// awaited is what the revision that the spec asks for cannot be made without.
type awaited struct {
	reason  xpv2.ConditionReason
	message string
}

// await something before there is a revision. What comes first is told.
func (s *state) await(reason xpv2.ConditionReason, message string) {
	if s.awaits == nil {
		s.awaits = &awaited{reason, message}
	}
}

// askOf a run: callers can do without what does not reach them yet.
func (s *state) askOf(r run, resource string, o named) {
	s.add(resource, o, r.slot != s.decision.live.slot)
}

// ask for an object that the Algorithm cannot do without.
func (s *state) ask(resource string, o named) { s.add(resource, o, false) }

// offer an object that the Algorithm serves without.
func (s *state) offer(resource string, o named) { s.add(resource, o, true) }

// add an object to the plan, unless it is left out because it was refused. None is ever
// told to be unready: the plan says whether the Algorithm is ready, and Crossplane would
// make nothing of it but one event of the Algorithm each time it looks. Of those 25 get
// through, and then one in five minutes, so that transitions would not be heard of.
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

	if s.withholding.Keeps(resource) {
		s.keep(resource)
		return
	}

	if !s.withholding.LeavesOut(resource) {
		s.plan.Objects[resource] = compose.Desired{Object: o, Ready: true}
	}
}

// keep an observed object as it is.
func (s *state) keep(resource string) {
	o := s.Observed[resource]
	s.plan.Objects[resource] = compose.Desired{Object: compose.Keep(o), Ready: true}
}

// named is what every apply configuration tells of itself.
type named interface {
	GetKind() *string
	GetName() *string
}
