// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

// defaultKeep is how long replaced values stay when nothing says otherwise, also when the rotation that replaced them was taken
// out of the Credential.
const defaultKeep = 24 * time.Hour

// due reports whether the values that r describes have to be replaced. An id that was taken away asks for nothing. A clock that
// went back makes the last rotation lie in the future, and replaces nothing until it has caught up.
func due(p *v1alpha1.Rotation, r record, now time.Time) bool {
	if p == nil {
		return false
	}
	if p.ID != "" && p.ID != r.rotationID {
		return true
	}
	next := nextRotation(p, r)
	return !next.IsZero() && !now.Before(next)
}

// nextRotation of the schedule, if there is one. It counts from the last rotation as it happened, so that a provider that has
// slept through several makes up for them by one.
func nextRotation(p *v1alpha1.Rotation, r record) time.Time {
	if p == nil || r.rotatedAt.IsZero() {
		return time.Time{}
	}
	every, err := time.ParseDuration(p.Every)
	if err != nil || every <= 0 {
		return time.Time{}
	}
	return r.rotatedAt.Add(every)
}

// previousUntil is when the replaced values go.
func previousUntil(p *v1alpha1.Rotation, r record) time.Time {
	keep := defaultKeep
	if p != nil {
		if d, err := time.ParseDuration(p.KeepPrevious); err == nil && d >= 0 {
			keep = d
		}
	}
	return r.rotatedAt.Add(keep)
}

// How often a Credential looks whether certificates are there, while it is young: their issuer takes seconds, and sends no notice.
const (
	awaitCA = 3 * time.Second
	young   = 2 * time.Minute
)

// awaitsCA reports whether its Secret was never given certificates.
func awaitsCA(cr *v1alpha1.Credential) bool {
	c := cr.Spec.ForProvider.Connection
	return c != nil && c.CAFrom != nil && !slices.Contains(cr.Status.AtProvider.Keys, v1alpha1.KeyCA)
}

// wake is a poll interval that ends at the next deadline, if that is sooner. A deadline that has passed wakes nothing: what it
// asks for has been done, or is not allowed, or fails and is tried again anyway.
func wake(clock func() time.Time) managed.PollIntervalHook {
	return func(mg resource.Managed, every time.Duration) time.Duration {
		wait := kind.Poll(mg, every)
		cr, ok := mg.(*v1alpha1.Credential)
		if !ok {
			return wait
		}
		for _, deadline := range []*metav1.Time{cr.Status.AtProvider.NextRotation, cr.Status.AtProvider.PreviousUntil} {
			if deadline == nil {
				continue
			}

			// A second later, because a timer may fire a little early.
			if left := deadline.Sub(clock()); left > 0 {
				wait = min(wait, left+time.Second)
			}
		}
		if awaitsCA(cr) && clock().Sub(cr.GetCreationTimestamp().Time) < young {
			wait = min(wait, awaitCA)
		}
		return wait
	}
}
