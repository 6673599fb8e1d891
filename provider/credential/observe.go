// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

// mayMake reports whether a missing Secret may be made.
func mayMake(cr *v1alpha1.Credential) bool {
	return !meta.WasDeleted(cr) && kind.May(cr, xpv2.ManagementActionCreate)
}

// Observe the Secret. One that is not there, and may be both made and changed, is reported as one that is not up to date. For a
// Create the runtime writes to the Credential three times more, to guard against what has no name beforehand and takes its time,
// and each of these writes wakes the composite resource.
//
// What is wrong with the Secret is reported and left alone:
//
//  1. A Secret that is not ours may hold the only copy of something.
//  2. A Secret of ours that has lost a value: see lost.
//
// While the Credential is being deleted neither must hold it up: a Secret of another owner does not exist for us, and ours is deleted
// with or without its values.
func (e *external) Observe(ctx context.Context, cr *v1alpha1.Credential) (managed.ExternalObservation, error) {
	s, err := e.secret(ctx, cr)
	if kerrors.IsNotFound(err) {
		// The identity is of more than the Secret, which gets it back, and clients may still have the values that were in it.
		cr.Status.AtProvider = v1alpha1.CredentialObservation{
			Identity: cr.Status.AtProvider.Identity, Generation: cr.Status.AtProvider.Generation,
			Remembered: cr.Status.AtProvider.Remembered,
		}
		cr.Status.Binding = nil
		return managed.ExternalObservation{ResourceExists: mayMake(cr) && kind.May(cr, xpv2.ManagementActionUpdate)}, nil
	}
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if !belongs(s, cr) {
		cr.Status.Binding = nil
		return managed.ExternalObservation{}, refuse(cr, errStranger(s, cr))
	}
	report(cr, s)
	o := managed.ExternalObservation{ResourceExists: true}
	if meta.WasDeleted(cr) {
		return o, nil
	}
	d, err := e.draft(ctx, cr, s, false)
	if err != nil {
		return o, refuse(cr, err)
	}
	if d.changes(s) {
		d.missing = d.missing || d.completes(s)
		d.judge()
		return o, nil
	}
	o.ResourceUpToDate = true
	d.judge()
	return o, d.problem()
}

// report in the status of cr what s holds, and never what is in it. Times are absolute and of the record, so that they change by
// a rotation and not by looking.
func report(cr *v1alpha1.Credential, s *corev1.Secret) {
	r, p := recall(s), cr.Spec.ForProvider
	at := v1alpha1.CredentialObservation{
		SecretName:   s.GetName(),
		Keys:         slices.Sorted(maps.Keys(s.Data)),
		Identity:     r.identity,
		Remembered:   r.remembered,
		RotationID:   r.rotationID,
		Generation:   r.generation,
		Staged:       r.staged,
		Username:     string(s.Data[v1alpha1.KeyUsername]),
		LastRotation: moment(r.rotatedAt),
		NextRotation: moment(nextRotation(p.Rotation, r)),
	}

	// A Secret without one is about to get back what is known.
	if at.Identity == "" {
		at.Identity = cr.Status.AtProvider.Identity
	}
	if at.Remembered == "" {
		at.Remembered = cr.Status.AtProvider.Remembered
	}
	if slices.ContainsFunc(r.rendered.UnsortedList(), isPrevious) || !r.overlapUntil.IsZero() {
		at.PreviousUntil = moment(previousUntil(p.Rotation, r))
	}
	cr.Status.AtProvider = at
	cr.Status.Binding = nil
	if p.Connection != nil && len(s.Data[v1alpha1.KeyType]) > 0 {
		cr.Status.Binding = &v1alpha1.Binding{Name: s.GetName()}
	}
}

// moment of a time, if it is one.
func moment(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

// judge whether the Credential is available: it is when no key is missing that something asks for.
func (d *draft) judge() {
	c := xpv2.Available()
	if d.missing {
		c = xpv2.Unavailable().WithMessage("The Secret does not hold everything that the spec requests yet")
		if p := cmp.Or(d.problem(), d.awaits); p != nil {
			c = c.WithMessage(p.Error())
		}
	}
	d.cr.SetConditions(c.WithObservedGeneration(d.cr.GetGeneration()))
}

// refuse marks cr as not available for the given reason, unless it is on its way out.
func refuse(cr *v1alpha1.Credential, why error) error {
	if meta.WasDeleted(cr) {
		return nil
	}
	cr.SetConditions(xpv2.Unavailable().WithMessage(why.Error()).WithObservedGeneration(cr.GetGeneration()))
	return why
}
