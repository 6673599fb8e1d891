// SPDX-License-Identifier: Apache-2.0

// Package hook reconciles Hooks: the requests that an Algorithm sends at points of its rollouts.
//
// A request is sent at least once: what became of it is known to the API server after it was sent. Its key is the same each time.
// Requests of one Hook go out in their order, and a Hook that gets no answer keeps none but itself waiting. Of an answer only the
// status is reported: a tenant names the URL, and could read with our eyes what a server of another tenant says.
package hook

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// Setup returns what adds a controller of Hooks to a manager, whose client must read Secrets from the API server. The guard decides
// which addresses requests may go to.
func Setup(guard *outside.Guard) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		return kind.Setup(mgr, o, v1alpha1.HookGroupVersionKind, options(&sender{kube: mgr.GetClient(), guard: guard, now: time.Now}))
	}
}

func options(s *sender) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.HookGroupVersionKind, s),
		// It has no name outside, and nothing to clean up.
		managed.WithInitializers(),
		kind.NoFinalizer(),
	}
}
