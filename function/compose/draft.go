// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Named is an object that knows its kind and name, as every apply configuration does.
type Named interface {
	GetKind() *string
	GetName() *string
}

// A Draft collects the objects of a plan: those that are desired, and those that exist and stay as they are. What exists and is
// in neither group is deleted.
type Draft struct {
	request     Request
	withholding *Withholding
	ready       func(live Object) bool
	objects     map[string]Desired
	asked       []Asked
	removed     map[string]bool
}

// NewDraft without objects. ready reports whether an observed object does what it is for, and is called with nil as well; a nil
// function takes every object for ready.
func NewDraft(r Request, ready func(live Object) bool) *Draft {
	if ready == nil {
		ready = func(Object) bool { return true }
	}
	return &Draft{
		request: r, withholding: Withhold(r), ready: ready,
		objects: map[string]Desired{}, removed: map[string]bool{},
	}
}

// Require an object that the composite resource cannot do without.
func (d *Draft) Require(resource string, o Named) { d.Add(resource, o, false) }

// Offer an object that the composite resource serves without.
func (d *Draft) Offer(resource string, o Named) { d.Add(resource, o, true) }

// Add a desired object. It is left out for a while after the API server refused it, and kept as observed after a change of it was
// refused.
func (d *Draft) Add(resource string, o Named, optional bool) {
	live := d.request.Observed[resource]
	d.asked = append(d.asked, Asked{
		Resource: resource, Kind: *o.GetKind(), Name: *o.GetName(), Optional: optional,
		Observed: live != nil,
		New:      !Referenced(d.request.Composite.Map(), *o.GetKind(), *o.GetName()),
	})
	switch {
	case d.withholding.Keeps(resource):
		d.Keep(resource)
	case !d.withholding.LeavesOut(resource):
		d.objects[resource] = Desired{Object: o, Ready: d.ready(live)}
	}
}

// Keep an observed object as it is. One that does not exist is not kept.
func (d *Draft) Keep(resource string) {
	if o := d.request.Observed[resource]; o != nil {
		d.objects[resource] = Desired{Object: Keep(o), Ready: d.ready(o)}
	}
}

// Edit the object that is kept or desired under a name.
func (d *Draft) Edit(resource string, o any) {
	d.objects[resource] = Desired{Object: o, Ready: d.ready(d.request.Observed[resource])}
}

// Remove an object, also from what KeepRest keeps.
func (d *Draft) Remove(resource string) {
	d.removed[resource] = true
	delete(d.objects, resource)
}

// KeepRest of the observed objects as they are: those that are neither in the draft nor removed.
func (d *Draft) KeepRest() {
	for resource := range d.request.Observed {
		if !d.Has(resource) && !d.removed[resource] {
			d.Keep(resource)
		}
	}
}

// Has reports whether an object is in the draft.
func (d *Draft) Has(resource string) bool {
	_, ok := d.objects[resource]
	return ok
}

// LeavesOut reports whether an object would be left out because the API server refused it.
func (d *Draft) LeavesOut(resource string) bool { return d.withholding.LeavesOut(resource) }

// Objects of the draft by their names within the composition.
func (d *Draft) Objects() map[string]Desired { return d.objects }

// Asked are the desired objects. Kept ones are not among them.
func (d *Draft) Asked() []Asked { return d.asked }

// Withheld are the refused objects that the status remembers.
func (d *Draft) Withheld() []v1alpha1.Withheld { return d.withholding.Entries(d.asked) }

// Composed is the condition of that type (see Composed).
func (d *Draft) Composed(accepted bool) xpv2.Condition {
	return Composed(d.request, d.asked, d.withholding, accepted)
}

// Complete reports whether everything exists that the composite resource cannot do without.
func (d *Draft) Complete() bool {
	before := IsTrue(d.request.Composite.Map(), xpv2.TypeReady)
	return !slices.ContainsFunc(d.asked, func(a Asked) bool { return !a.Optional && a.Missing(before) })
}

// Waits reports whether a desired object does not exist yet.
func (d *Draft) Waits() bool {
	return slices.ContainsFunc(d.asked, func(a Asked) bool { return !a.Observed })
}

// Deadlines are the times from which refused objects are tried again.
func (d *Draft) Deadlines() []time.Time {
	withheld := d.Withheld()
	at := make([]time.Time, 0, len(withheld))
	for _, e := range withheld {
		at = append(at, e.Until.Time)
	}
	return at
}

// Settle the status of a plan (see Settle). A new refusal is always urgent: Crossplane reports it once.
func (d *Draft) Settle(p *Plan, urgent bool) {
	Settle(d.request, p, urgent || d.withholding.changed(d.request, d.asked))
}
