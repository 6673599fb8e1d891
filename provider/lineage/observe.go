// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/openlineage"
)

var _ managed.TypedExternalClient[*v1alpha1.Lineage] = &external{}

// external is the server that a Lineage reports to.
type external struct {
	kind.Nothing[*v1alpha1.Lineage]

	client *openlineage.Client
	// cluster that the runs are in.
	cluster string
}

// Observe whether there is something to send. A Lineage exists without anything outside.
func (e *external) Observe(_ context.Context, cr *v1alpha1.Lineage) (managed.ExternalObservation, error) {
	if meta.WasDeleted(cr) {
		return managed.ExternalObservation{}, nil
	}
	cr.SetConditions(xpv2.Available().WithObservedGeneration(cr.GetGeneration()))
	_, _, due := next(cr)
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: !due}, nil
}

// ends are the events of runs that do not run any more.
var ends = map[v1alpha1.LineageRunState]openlineage.Type{
	v1alpha1.LineageSucceeded: openlineage.Complete,
	v1alpha1.LineageFailed:    openlineage.Fail,
	v1alpha1.LineageEnded:     openlineage.Abort,
}

// next event that is due, if there is one. Each run has one when it began, and one when it ended.
func next(cr *v1alpha1.Lineage) (r v1alpha1.LineageRun, event openlineage.Type, due bool) {
	for _, r := range cr.Spec.ForProvider.Runs {
		end, ended := ends[r.State]
		switch s := sent(cr, r); {
		case s == nil:
			return r, openlineage.Start, true
		case ended && s.Event == string(openlineage.Start) && s.Refused == "":
			return r, end, true
		}
	}
	return r, "", false
}

// sent event of a run, or nil.
func sent(cr *v1alpha1.Lineage, r v1alpha1.LineageRun) *v1alpha1.LineageSent {
	all := cr.Status.AtProvider.Sent
	i := slices.IndexFunc(all, func(s v1alpha1.LineageSent) bool { return about(s, r) })
	if i < 0 {
		return nil
	}
	return &all[i]
}

func about(s v1alpha1.LineageSent, r v1alpha1.LineageRun) bool {
	return s.Run == r.Name && s.StartedAt.Equal(&r.StartedAt)
}

// remember an event of a run, and forget the runs that are gone.
func remember(cr *v1alpha1.Lineage, done v1alpha1.LineageSent) {
	rest := slices.DeleteFunc(slices.Clone(cr.Status.AtProvider.Sent), func(s v1alpha1.LineageSent) bool {
		return s.Run == done.Run && s.StartedAt.Equal(&done.StartedAt) ||
			!slices.ContainsFunc(cr.Spec.ForProvider.Runs, func(r v1alpha1.LineageRun) bool { return about(s, r) })
	})
	rest = append(rest, done)
	cr.Status.AtProvider.Sent = rest
}
