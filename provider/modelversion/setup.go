// SPDX-License-Identifier: Apache-2.0

// Package modelversion reconciles ModelVersions: versions of models in a model registry, made or only observed.
//
// The registry numbers versions itself, and each call creates another one. A ModelVersion still creates just one, because its
// owner tag is in the call that creates it: while the number is unknown, the registry is searched for that tag before anything is
// created. So a provider that stops, or a lost answer, costs a search and not a second version.
package modelversion

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

// Setup returns what adds a controller of ModelVersions to a manager.
func Setup(pool *registry.Pool) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		return kind.Setup(mgr, o, v1alpha1.ModelVersionGroupVersionKind, Options(mgr.GetClient(), pool, time.Now))
	}
}

// Options of the reconciler.
func Options(kube client.Client, pool *registry.Pool, now func() time.Time) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.ModelVersionGroupVersionKind, registry.Connector(pool, maker(kube, now))),

		// The number is the registry's to choose.
		managed.WithInitializers(),

		// It is not known beforehand, but Create may be repeated: see above.
		managed.WithDeterministicExternalName(true),

		// The registry does not forget what it has just stored.
		managed.WithCreationGracePeriod(0),
	}
}
