// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

var (
	_ managed.TypedExternalConnector[*v1alpha1.Run] = &observer{}
	_ managed.TypedExternalClient[*v1alpha1.Run]    = &observer{}
)

// An observer looks at the pods of runs in the cache, and asks their coordinators.
type observer struct {
	kind.Nothing[*v1alpha1.Run]

	// seen holds what Setup watches, and direct reads from the API server.
	seen, direct client.Reader

	phone  *phone
	counts *counts
	now    func() time.Time
}

// Connect has nothing to connect to yet: a coordinator that does not answer must not block looking at the pods.
func (o *observer) Connect(context.Context, *v1alpha1.Run) (managed.TypedExternalClient[*v1alpha1.Run], error) {
	return o, nil
}

// Observe the pods, and what their coordinator says. A Run without pods exists like any other.
func (o *observer) Observe(ctx context.Context, cr *v1alpha1.Run) (managed.ExternalObservation, error) {
	if meta.WasDeleted(cr) {
		return managed.ExternalObservation{}, nil
	}
	v, err := o.look(ctx, cr)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if p := v.newest(0); container(p).Running != nil {
		if v.state, v.silent, err = o.phone.call(ctx, cr, p); err != nil {
			return managed.ExternalObservation{}, fmt.Errorf("cannot ask the coordinator: %w", err)
		}
	}
	v.refused = o.refused(ctx, cr, v)
	if seen := v.facts(); worth(cr.Status.AtProvider, seen, v.now) {
		o.counts.fault(cr.GetNamespace(), v.was.LastFault, seen.LastFault)
		cr.Status.AtProvider = seen
	}
	cr.SetConditions(xpv2.Available().WithObservedGeneration(cr.GetGeneration()))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

func (o *observer) look(ctx context.Context, cr *v1alpha1.Run) (*view, error) {
	l := &corev1.PodList{}
	if err := o.seen.List(ctx, l,
		client.InNamespace(cr.GetNamespace()),
		client.MatchingFields{byJob: cr.Spec.ForProvider.Job},
		client.UnsafeDisableDeepCopy, // Nothing changes them.
	); err != nil {
		return nil, fmt.Errorf("cannot list pods of Job %q: %w", cr.Spec.ForProvider.Job, err)
	}
	return newView(cr, l.Items, o.now()), nil
}

// poll is the interval after which a Run is observed without an event: when the next request to its coordinator is due, as long as there is one.
func (o *observer) poll(mg resource.Managed, every time.Duration) time.Duration {
	every = kind.Poll(mg, every)
	cr, ok := mg.(*v1alpha1.Run)
	if !ok {
		return every
	}
	v, err := o.look(context.Background(), cr)
	switch {
	case err != nil:
	case container(v.newest(0)).Running != nil:
		every = min(every, o.phone.next(cr.GetUID()))
	case v.absent():
		every = min(every, absentEvery)
	}
	return every
}
