// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/findings"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/secretwatch"
	"github.com/capstan-dev/capstan/provider/internal/signals"
)

var (
	_ managed.TypedExternalConnector[*v1alpha1.Analysis] = &observer{}
	_ managed.TypedExternalClient[*v1alpha1.Analysis]    = &observer{}
)

// An observer looks at the pods of Algorithms in the cache, at the Secrets that they use, and through its looker at Prometheus.
type observer struct {
	kind.Nothing[*v1alpha1.Analysis]

	kube    client.Reader
	now     func() time.Time
	memory  *memory
	looker  *looker
	secrets *secretwatch.Secrets
	board   *signals.Board
}

// Connect has nothing to connect to yet: pods are in the cluster itself, and a Prometheus that does not answer must not block
// looking at them.
func (o *observer) Connect(context.Context, *v1alpha1.Analysis) (managed.TypedExternalClient[*v1alpha1.Analysis], error) {
	return o, nil
}

// Observe the pods. An Algorithm without pods exists like any other.
func (o *observer) Observe(ctx context.Context, cr *v1alpha1.Analysis) (managed.ExternalObservation, error) {
	pods, err := o.pods(ctx, cr)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	active, err := o.board.Active(ctx, signals.Target{
		Kind:           eventsv1alpha1.TargetAlgorithm,
		NamespacedName: types.NamespacedName{Namespace: cr.GetNamespace(), Name: cr.Spec.ForProvider.Algorithm},
	}, cr.Status.AtProvider.Signals, o.now())
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	cr.Status.AtProvider.Signals = active
	// What is wrong with one of the three does not block the report on the others.
	found, missing, err := o.secrets.Observe(ctx, cr)
	cr.Status.AtProvider.Findings = findings.Of(pods, cr.Spec.ForProvider.Container, missing, o.now())
	o.measure(ctx, cr, pods)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	cr.Status.AtProvider.Secrets = found
	cr.SetConditions(xpv2.Available().WithObservedGeneration(cr.GetGeneration()))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

// poll is the interval after which the Analysis is reconciled again although no pod has changed: when a container that runs has
// been silent for too long, when the next query of Prometheus is due, when a Signal ends, and else the ordinary poll.
func (o *observer) poll(mg resource.Managed, every time.Duration) time.Duration {
	every = kind.Poll(mg, every)
	cr, ok := mg.(*v1alpha1.Analysis)
	if !ok {
		return every
	}
	pods, err := o.pods(context.Background(), cr)
	if err != nil {
		return every
	}
	now := o.now()
	changes := []time.Time{findings.NextChange(pods, cr.Spec.ForProvider.Container, now), o.nextLook(cr)}
	for _, s := range cr.Status.AtProvider.Signals {
		changes = append(changes, s.Until.Time)
	}
	for _, next := range changes {
		if !next.IsZero() {
			every = min(every, max(next.Sub(now), time.Second))
		}
	}
	return every
}

func (o *observer) pods(ctx context.Context, cr *v1alpha1.Analysis) ([]corev1.Pod, error) {
	l := &corev1.PodList{}
	if err := o.kube.List(ctx, l,
		client.InNamespace(cr.GetNamespace()),
		client.MatchingLabels{v1alpha1.LabelAlgorithm: cr.Spec.ForProvider.Algorithm},
	); err != nil {
		return nil, fmt.Errorf("cannot list pods of Algorithm %q: %w", cr.Spec.ForProvider.Algorithm, err)
	}
	return l.Items, nil
}
