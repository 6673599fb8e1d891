// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Answered is the condition of a managed resource whose service did what was requested.
func Answered() xpv2.Condition {
	return xpv2.Condition{
		Type:               v1alpha1.TypeConnected,
		Status:             corev1.ConditionTrue,
		LastTransitionTime: metav1.Now(),
		Reason:             v1alpha1.ReasonAnswered,
	}
}

// Failed is the condition of a managed resource whose service did not do what was requested.
func Failed(f *Failure) xpv2.Condition {
	return xpv2.Condition{
		Type:               v1alpha1.TypeConnected,
		Status:             corev1.ConditionFalse,
		LastTransitionTime: metav1.Now(),
		Reason:             f.Reason,
		Message:            f.Error(),
	}
}

// Reporting wraps a connector so that the condition Connected says how the
// service answered, and so that no error says anything but what a Failure says:
// the provider does not control what a service or a library puts into its errors, and many people read conditions, events and logs.
func Reporting[T resource.Managed](
	inner managed.TypedExternalConnector[T], explain func(error) *Failure,
) managed.TypedExternalConnector[T] {
	return &tellingConnector[T]{inner: inner, explain: explain}
}

type tellingConnector[T resource.Managed] struct {
	inner   managed.TypedExternalConnector[T]
	explain func(error) *Failure
}

// Connect with the service of mg.
func (c *tellingConnector[T]) Connect(ctx context.Context, mg T) (managed.TypedExternalClient[T], error) {
	was := mg.GetCondition(v1alpha1.TypeConnected)
	e, err := c.inner.Connect(ctx, mg)
	if err != nil {
		return nil, report(mg, was, c.explain, err)
	}
	return &tellingClient[T]{inner: e, explain: c.explain, was: was}, nil
}

type tellingClient[T resource.Managed] struct {
	inner   managed.TypedExternalClient[T]
	explain func(error) *Failure

	// was is the condition before this reconcile.
	was xpv2.Condition
}

// Observe what is outside.
func (c *tellingClient[T]) Observe(ctx context.Context, mg T) (managed.ExternalObservation, error) {
	o, err := c.inner.Observe(ctx, mg)
	return o, report(mg, c.was, c.explain, err)
}

// Create what is outside.
func (c *tellingClient[T]) Create(ctx context.Context, mg T) (managed.ExternalCreation, error) {
	o, err := c.inner.Create(ctx, mg)
	return o, report(mg, c.was, c.explain, err)
}

// Update what is outside.
func (c *tellingClient[T]) Update(ctx context.Context, mg T) (managed.ExternalUpdate, error) {
	o, err := c.inner.Update(ctx, mg)
	return o, report(mg, c.was, c.explain, err)
}

// Delete what is outside.
func (c *tellingClient[T]) Delete(ctx context.Context, mg T) (managed.ExternalDelete, error) {
	o, err := c.inner.Delete(ctx, mg)
	return o, report(mg, c.was, c.explain, err)
}

// Disconnect from the service.
func (c *tellingClient[T]) Disconnect(ctx context.Context) error {
	if err := c.inner.Disconnect(ctx); err != nil {
		return fmt.Errorf("cannot disconnect: %w", err)
	}
	return nil
}

// report in the status of mg how the service answered. A condition that is what it was before this reconcile keeps its time: what
// is observed and cannot be changed is True and False in turn, and would never be left unwritten.
func report(mg resource.Managed, was xpv2.Condition, explain func(error) *Failure, err error) error {
	c, err := conclude(explain, err)
	if c.Equal(was) {
		c.LastTransitionTime = was.LastTransitionTime
	}
	if c.Type != "" {
		mg.SetConditions(c)
	}
	return err
}

// conclude a condition from how a service answered. An error of the API server gives none: it is not outside, and the runtime
// knows what to do. Every other error becomes a Failure.
func conclude(explain func(error) *Failure, err error) (xpv2.Condition, error) {
	if err == nil {
		return Answered(), nil
	}

	// A Failure first: its cause may be that the API server knows no such object.
	f := (*Failure)(nil)
	if !errors.As(err, &f) && ofCluster(err) {
		return xpv2.Condition{}, err
	}
	f = Understand(explain, err)
	return Failed(f), f
}

// Understand any error as a Failure: as explain does, which knows the protocol of a service, or as what went wrong
// below it.
func Understand(explain func(error) *Failure, err error) *Failure {
	f := (*Failure)(nil)
	if errors.As(err, &f) {
		return f
	}
	if f = explain(err); f != nil {
		return f
	}
	if f = Explain(err); f != nil {
		return f
	}
	return &Failure{
		Reason:  v1alpha1.ReasonUnknownAnswer,
		Message: "the service answered what the provider does not understand",
		Remedy:  "check that the URL in the config leads to the service",
		Cause:   err,
	}
}

// ofCluster reports whether an error is the cluster's own. What a dial to a service could not find out in the cluster is about
// the service.
func ofCluster(err error) bool {
	s, c, u := kerrors.APIStatus(nil), (*ClusterError)(nil), (*url.Error)(nil)
	if errors.As(err, &u) && errors.As(u, &c) {
		return false
	}
	return errors.As(err, &s) || errors.As(err, &c)
}
