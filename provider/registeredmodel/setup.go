// SPDX-License-Identifier: Apache-2.0

// Package registeredmodel reconciles RegisteredModels: models of a model registry.
//
// The model's name is the external name. Its owner is in a tag that is set by the same call that creates it, so that a model is
// never ours without its tag, and one that another client creates at the same moment never counts as ours. Tags and descriptions
// that the spec does not mention stay as they are.
package registeredmodel

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

// Setup returns what adds a controller of RegisteredModels to a manager.
func Setup(pool *registry.Pool) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		return kind.Setup(mgr, o, v1alpha1.RegisteredModelGroupVersionKind, Options(pool))
	}
}

// Options of the reconciler.
func Options(pool *registry.Pool) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.RegisteredModelGroupVersionKind, registry.Connector(pool, newExternal)),

		// The name is known beforehand, and the registry makes no second model of it.
		managed.WithDeterministicExternalName(true),

		// The registry does not forget what it has just stored.
		managed.WithCreationGracePeriod(0),
	}
}
