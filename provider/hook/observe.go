// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

var (
	_ managed.TypedExternalConnector[*v1alpha1.Hook] = &sender{}
	_ managed.TypedExternalClient[*v1alpha1.Hook]    = &sender{}
)

// A sender of requests. It reads Secrets from the API server.
type sender struct {
	kind.Nothing[*v1alpha1.Hook]

	kube  client.Reader
	guard *outside.Guard
	now   func() time.Time
}

// Connect has nothing to connect to: each request goes out on a connection of its own.
func (s *sender) Connect(context.Context, *v1alpha1.Hook) (managed.TypedExternalClient[*v1alpha1.Hook], error) {
	return s, nil
}

// Observe whether there is something to send. A Hook exists without anything outside.
func (s *sender) Observe(_ context.Context, cr *v1alpha1.Hook) (managed.ExternalObservation, error) {
	if meta.WasDeleted(cr) {
		return managed.ExternalObservation{}, nil
	}
	cr.SetConditions(xpv2.Available().WithObservedGeneration(cr.GetGeneration()))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: next(cr) == nil}, nil
}

// next request to send, or nil when all are done.
func next(cr *v1alpha1.Hook) *v1alpha1.HookRequest {
	requests := cr.Spec.ForProvider.Requests
	i := slices.IndexFunc(requests, func(r v1alpha1.HookRequest) bool {
		return !slices.ContainsFunc(cr.Status.AtProvider.Results, func(done v1alpha1.HookRequestResult) bool { return done.Key == r.Key })
	})
	if i < 0 {
		return nil
	}
	return &requests[i]
}

// remember a result, and forget the results of requests that are gone.
func remember(cr *v1alpha1.Hook, done v1alpha1.HookRequestResult) {
	results := slices.DeleteFunc(slices.Clone(cr.Status.AtProvider.Results), func(r v1alpha1.HookRequestResult) bool {
		return !slices.ContainsFunc(cr.Spec.ForProvider.Requests, func(q v1alpha1.HookRequest) bool { return q.Key == r.Key })
	})
	results = append(results, done)
	cr.Status.AtProvider.Results = results
}
