// SPDX-License-Identifier: Apache-2.0

// Package analysis reconciles Analyses: the quiet observers of Algorithms.
//
// Pods that do not become ready change all the time: they start, crash, back off
// and are replaced, each with its own name and times. An Analysis turns that
// into a few findings that stay the same as long as the cause does.
package analysis

import (
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
	obs := &observer{kube: mgr.GetClient(), now: time.Now}

	//nolint:wrapcheck // It names the kind.
	return kind.Setup(mgr, o, analyses(), options(obs), func(b *builder.Builder) {
		b.Watches(&corev1.Pod{}, observers(mgr.GetClient(), o.Logger), builder.WithPredicates(verdictMayChange()))
	})
}

func analyses() kind.Of {
	return kind.Of{
		GVK:    v1alpha1.AnalysisGroupVersionKind,
		Object: &v1alpha1.Analysis{},
		List:   &v1alpha1.AnalysisList{},
	}
}

func options(obs *observer) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(analyses(), obs),
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
