// SPDX-License-Identifier: Apache-2.0

// Package registeredmodel reconciles RegisteredModels: models of a model
// registry.
//
// The model's name is the external name. Whose the model is stands in a tag that
// is set by the very call that makes it, so that a model is never ours without
// saying so, and one that somebody else made at the same moment is never taken
// for ours. Tags and descriptions that nobody asked for stay as they are.
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
		return kind.Setup(mgr, o, models(), Options(pool))
	}
}

func models() kind.Of {
	return kind.Of{
		GVK:    v1alpha1.RegisteredModelGroupVersionKind,
		Object: &v1alpha1.RegisteredModel{},
		List:   &v1alpha1.RegisteredModelList{},
	}
}

// Options of the reconciler.
func Options(pool *registry.Pool) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(models(), registry.Connector(pool, newExternal)),

		// The name is known beforehand, and the registry makes no second model of it.
		managed.WithDeterministicExternalName(true),

		// The registry does not forget what it has just stored.
		managed.WithCreationGracePeriod(0),
	}
}
