// SPDX-License-Identifier: Apache-2.0

package providerconfig

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// Setup returns what adds a controller of one kind of config to a manager. The checkers ask the services.
func Setup(gvk schema.GroupVersionKind, checkers ...outside.Checker) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		name := providerconfig.ControllerName(gvk.GroupKind().String())
		r := &reconciler{
			accounts: accounts(mgr, gvk,
				providerconfig.WithLogger(o.Logger.WithValues("controller", name)),
				providerconfig.WithRecorder(event.NewAPIRecorder(mgr.GetEventRecorderFor(name), o.EventFilterFunctions...))),
			kube: mgr.GetClient(),
			newPC: func() resource.ProviderConfig {
				return resource.MustCreateObject(gvk, mgr.GetScheme()).(resource.ProviderConfig) //nolint:forcetypeassert,errcheck // The kinds of config are.
			},
			check: func(ctx context.Context, pc resource.ProviderConfig) (xpv2.Condition, error) {
				return outside.Check(ctx, pc, checkers...)
			},
			poll:  o.PollInterval,
			asked: map[types.NamespacedName]question{},
		}
		if err := ctrl.NewControllerManagedBy(mgr).
			Named(name).
			WithOptions(o.ForControllerRuntime()).
			For(r.newPC()).
			Watches(&v1alpha1.ProviderConfigUsage{}, users(gvk)).
			Complete(ratelimiter.NewReconciler(name, r, o.GlobalRateLimiter)); err != nil {
			return fmt.Errorf("cannot set up kind %s: %w", gvk.Kind, err)
		}
		return nil
	}
}
