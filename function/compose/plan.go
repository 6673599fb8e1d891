// SPDX-License-Identifier: Apache-2.0

// Package compose is what the planners of Capstan's kinds have in common: the request they look at, the plan they answer with,
// and the rules that hold for every composed object (names, readiness, what is kept and what is withheld). It knows nothing of
// gRPC or protobuf.
package compose

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/input/v1alpha1"
)

// A Planner decides what should exist for one composite resource. It is pure:
// the same request gives the same plan. It returns an error only for a request that cannot be understood at all; then nothing is
// changed. What a user can cause becomes a condition of the plan instead.
type Planner func(Request) (*Plan, error)

// A Request is everything that a planner may look at.
type Request struct {
	// Now is the only clock of a planner.
	Now time.Time

	// Composite is the composite resource.
	Composite Object

	// Observed holds the composed objects that exist, by their names within the composition.
	Observed map[string]Object

	// Settings of the platform, defaults included.
	Settings v1alpha1.Settings

	// SettingsErr reports which of the platform's settings cannot be used, if any. Settings then holds what remains: a planner
	// keeps everything that is observed and says so.
	SettingsErr error

	// SettingsFrom names the EnvironmentConfig that Settings were read from. It is empty where there is none, and only defaults and
	// the input of the Composition count. A planner notes it on an object that always exists (see NoteSettings).
	SettingsFrom string

	// Unsupported is what of the cluster and of Crossplane is too old, if anything is. A planner keeps everything that is
	// observed and says so.
	Unsupported []check.Problem

	// Required holds objects that a plan for this composite resource required, by the names that it gave them. What does not
	// exist is not there.
	Required map[string]Object

	// Sought holds the names of the required objects that Crossplane has sought. What was sought and is not in Required does not
	// exist; of what was not sought yet nothing is known.
	Sought map[string]bool

	// Kinds reports which of the optional kinds that planners ask about the cluster serves.
	Kinds map[schema.GroupVersionKind]Availability
}

// An Object is a Kubernetes object. No more of it is decoded than is read.
type Object interface {
	// Field at a path, as in Map, or nil. The rest of a large object stays as it is.
	Field(path ...string) any

	// Map is the object as decoded JSON (map[string]any, []any, string, float64, bool, nil). It must not be changed. What the API
	// server keeps account of may be missing: see Managed.
	Map() map[string]any

	// Below are the fields at a path, in any order: the last one of a key counts. What is no object is one without fields. None of
	// them is decoded.
	Below(path ...string) []Entry

	// Managed is metadata.managedFields, the API server's account of who wrote what: an Object for each entry.
	Managed() []Object
}

// An Entry is a field with the object that it is.
type Entry struct {
	Key   string
	Value Object
}

// Availability of an optional kind.
type Availability int

// Whether the cluster serves an optional kind.
const (
	// AvailabilityUnknown: Crossplane has not reported it yet. What is observed of the kind must be kept, nothing new is composed.
	AvailabilityUnknown Availability = iota
	// Unavailable: the cluster does not serve the kind.
	Unavailable
	// Available: the cluster serves the kind.
	Available
)

// A Plan is what should exist, and what is reported about it.
type Plan struct {
	// Objects that should exist, by their names within the composition. What is observed and missing here is deleted.
	Objects map[string]Desired

	// Ready reports whether the composite resource as a whole is ready.
	Ready bool

	// Status of the composite resource, complete, as a value that marshals to JSON and without conditions.
	Status any

	// Conditions of the composite resource.
	Conditions []xpv2.Condition

	// Events that report what happens in this pass. A pass that changes nothing has none: each would be reported again and again.
	Events []Event

	// Requires names objects of others that the next plan has to look at. Crossplane fetches them and asks again at once; it
	// forgets what is not repeated.
	Requires map[string]Requirement

	// TTL is the time until the composite resource has to be looked at again even if nothing changes.
	TTL time.Duration
}

// A Requirement is an object that is not ours. Crossplane needs the right to read it, or the whole pass fails.
type Requirement struct {
	Kind schema.GroupVersionKind

	// Namespace of the object, empty for one of the cluster, and its name.
	Namespace, Name string

	// Label that only this object has. With it there is no name.
	Label Label
}

// A Label of an object.
type Label struct{ Key, Value string }

// An Event of the composite resource.
type Event struct {
	// Warning reports that a person should check.
	Warning bool

	// Reason in one word, and a message.
	Reason, Message string
}

// Desired is one composed object.
type Desired struct {
	// Object is an apply configuration, an API type or a map: a value that marshals to the JSON of the fields that Capstan owns,
	// and no others.
	Object any

	// Ready reports whether it is as it should be.
	Ready bool
}
