// SPDX-License-Identifier: Apache-2.0

// Package modelalias reconciles ModelAliases: names that point to versions of models in a model registry.
//
// An alias has no tags of its own. A tag of its model names its owner. It is set before the alias and removed after it, so that
// an alias of ours always has its tag.
package modelalias

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

// Setup returns what adds a controller of ModelAliases to a manager.
func Setup(pool *registry.Pool) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		return kind.Setup(mgr, o, v1alpha1.ModelAliasGroupVersionKind, Options(pool))
	}
}

// Options of the reconciler.
func Options(pool *registry.Pool) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.ModelAliasGroupVersionKind, registry.Connector(pool, newExternal)),

		// Model and alias in the spec say which one it is.
		managed.WithInitializers(),
		managed.WithDeterministicExternalName(true),

		// The registry does not forget what it has just stored.
		managed.WithCreationGracePeriod(0),
	}
}
