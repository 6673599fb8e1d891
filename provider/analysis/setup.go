// SPDX-License-Identifier: Apache-2.0

// Package analysis reconciles Analyses: the quiet observers of Algorithms.
//
// Pods that do not become ready change all the time: they start, crash, back off
// and are replaced, each with its own name and times. An Analysis turns that
// into a few findings that stay the same as long as the cause does.
package analysis

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

// Setup adds a controller of Analyses to mgr, whose cache must hold pods as Pods
// tells.
func Setup(mgr ctrl.Manager, o controller.Options) error {
	k := kind.Of{
		GVK:    v1alpha1.AnalysisGroupVersionKind,
		Object: &v1alpha1.Analysis{},
		List:   &v1alpha1.AnalysisList{},
	}

	obs := &observer{kube: mgr.GetClient(), now: time.Now}

	r, err := kind.Reconciler(mgr, o, k, options(obs)...)
	if err != nil {
		return fmt.Errorf("cannot set up Analyses: %w", err)
	}

	return ctrl.NewControllerManagedBy(mgr).
		Named(k.Name()).
		WithOptions(o.ForControllerRuntime()).
		For(k.Object).
		Watches(&corev1.Pod{}, observers(mgr.GetClient(), o.Logger), builder.WithPredicates(verdictMayChange())).
		Complete(r)
}

func options(obs *observer) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		managed.WithTypedExternalConnector(obs),
		managed.WithPollIntervalHook(obs.poll),

		// An Analysis has nothing outside: no name of its own there to keep, and
		// nothing to clean up. So it costs no write but its status, and goes at
		// once when its Algorithm goes, even while the provider is stopped.
		managed.WithInitializers(),
		managed.WithFinalizer(resource.FinalizerFns{
			AddFinalizerFn:    nothing,
			RemoveFinalizerFn: nothing,
		}),
	}
}
