// SPDX-License-Identifier: Apache-2.0

package database

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/resource"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

// state is what the steps of one plan share.
type state struct {
	compose.Request

	// recollection of generations.
	recollection

	version   string
	name      string
	namespace string
	spec      v1alpha1.DatabaseSpec

	// problems of the spec. As long as there are any, nothing is changed. Refused are
	// those of one that another stands in for.
	problems, refused []check.Problem

	// image and size of the members.
	image image
	size  size

	// identity of the Database, empty until it is known.
	identity string

	// generation that this state is of, and what the Secret is to remember.
	generation int
	remember   string

	// side tells that this is the state of another generation than the active one, and
	// least how large its volumes have to be.
	side  bool
	least resource.Quantity

	// siblings are the states of other generations, by number.
	siblings map[int]*state

	// restoring is what the spec asks for and is not carried out yet, and upgrading the
	// same of an upgrade.
	restoring *restoring
	upgrading *upgrading

	// asksFor is the major version that the spec asks for. That of spec is the version
	// of the data, as long as it is another.
	asksFor string

	// sets are the StatefulSets of this generation that exist, by the letter of their
	// member.
	sets map[string]set

	// opened are the Secrets that open where backups go, as members have them.
	opened []string

	// seen is what the Topology tells, if it tells anything yet.
	seen     observev1alpha1.TopologyObservation
	observed bool

	// onDisk is what the VolumeClaim tells of volumes.
	onDisk storagev1alpha1.VolumeClaimObservation

	// order is what happens to the members in this pass, and before how they are.
	order  order
	before situation

	// target is the revision that the spec asks for, changeID names the change to it,
	// and planned are its effects.
	target, changeID string
	planned          []v1alpha1.ChangeEffect

	// holds tells that restarts are wanted and may not be made yet.
	holds bool

	// hooks around the change, and what is remembered of them.
	hooks hooking

	// move of the lead that is wanted, if any.
	move *move

	// awaits is what members wait for before there are any.
	awaits *awaited

	// asked are the objects that should exist. Kept ones are not among them.
	asked []compose.Asked

	// gone are objects that exist and are let go on purpose.
	gone map[string]bool

	withholding *compose.Withholding
	plan        *compose.Plan
}

// gather everything that the steps look at.
func gather(r compose.Request, version string) (*state, error) {
	xr := r.Composite.Map()

	s := &state{
		Request:     r,
		version:     version,
		name:        compose.Text(xr, "metadata", "name"),
		namespace:   compose.Text(xr, "metadata", "namespace"),
		siblings:    map[int]*state{},
		gone:        map[string]bool{},
		withholding: compose.Withhold(r),
		plan:        &compose.Plan{Objects: map[string]compose.Desired{}},
	}

	if s.name == "" || s.namespace == "" {
		return nil, errors.New("metadata.name and metadata.namespace must not be empty")
	}

	s.recall()
	s.look()
	s.identity, s.opened = s.identify(), s.opens()

	if s.problems = s.accept(compose.Map(xr, "spec")); len(s.problems) > 0 {
		s.standIn()
	}

	return s, nil
}

// look at the members of this generation.
func (s *state) look() {
	s.sets = map[string]set{}

	for _, letter := range letters {
		if o := s.Observed[s.in(nameMemberPrefix+letter)]; o != nil {
			s.sets[letter] = observeSet(letter, o)
		}
	}

	s.seen, s.observed = observeTopology(s.Observed[s.in(nameTopology)])
	s.onDisk = observeVolumes(s.Observed[s.in(nameVolumeClaim)])
}

// identify the Database: by what its members carry, or else by its first
// Credential, or by what was known before.
func (s *state) identify() string {
	for _, letter := range sortedKeys(s.sets) {
		if id := s.sets[letter].identity; id != "" {
			return id
		}
	}

	if o := s.Observed[nameAccessCredential]; o != nil {
		if id := compose.Text(o.Map(), "status", "atProvider", "identity"); id != "" {
			return id
		}
	}

	return compose.Text(s.Composite.Map(), "status", "identity")
}

// awaited is what there cannot be members without.
type awaited struct {
	reason  xpv2.ConditionReason
	message string
}

// await something before there are members. What comes first is told.
func (s *state) await(reason xpv2.ConditionReason, message string) {
	if s.awaits == nil {
		s.awaits = &awaited{reason, message}
	}
}

// ask for an object that the Database cannot do without. It serves without those of
// another generation.
func (s *state) ask(resource string, o named) { s.add(resource, o, s.side) }

// offer an object that the Database serves without.
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

	if s.withholding.Keeps(resource) {
		s.keep(resource)
		return
	}

	if !s.withholding.LeavesOut(resource) {
		s.plan.Objects[resource] = compose.Desired{Object: o, Ready: ready(live)}
	}
}

// keep an observed object as it is.
func (s *state) keep(resource string) {
	o := s.Observed[resource]
	s.plan.Objects[resource] = compose.Desired{Object: compose.Keep(o), Ready: ready(o)}
}

// letGo of an object that exists, on purpose.
func (s *state) letGo(resource string) { s.gone[resource] = true }

// ready tells whether an observed object does what it is for: those that tell by
// a condition Ready, and members, by their pods.
func ready(o compose.Object) bool {
	if o == nil {
		return false
	}

	m := o.Map()

	if compose.Text(m, "kind") == kindStatefulSet {
		return compose.Number(m, 0, "status", "readyReplicas") >= compose.Number(m, 1, "spec", "replicas")
	}

	if compose.Condition(m, string(xpv2.TypeReady)) != nil {
		return compose.IsTrue(m, xpv2.TypeReady)
	}

	return compose.Ready(o)
}

// named is what every apply configuration tells of itself.
type named interface {
	GetKind() *string
	GetName() *string
}
