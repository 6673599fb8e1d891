// SPDX-License-Identifier: Apache-2.0

// Package autoscaler reconciles Autoscalers: each keeps one HorizontalPodAutoscaler, and is the quiet side of it.
//
// A HorizontalPodAutoscaler reports new numbers every 15 seconds. As a composed object it would have Crossplane apply every object
// of its Algorithm as often. So the Algorithm composes an Autoscaler, whose status changes only when it stops to scale, or scales
// again, and during a rollout when the load needs another number of replicas.
package autoscaler

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

// Setup adds a controller of Autoscalers to mgr, with a cache of its own for HorizontalPodAutoscalers.
func Setup(mgr ctrl.Manager, o controller.Options) error {
	seen, err := newCache(mgr)
	if err != nil {
		return err
	}
	s := &scaler{kube: mgr.GetClient(), seen: seen, direct: mgr.GetAPIReader()}
	return kind.Setup(mgr, o, v1alpha1.AutoscalerGroupVersionKind, options(s), func(b *builder.Builder) {
		// They have the same name.
		b.WatchesRawSource(source.Kind[client.Object](seen, &autoscalingv2.HorizontalPodAutoscaler{}, &handler.EnqueueRequestForObject{}, matters(s.asksFor)))
	})
}

func options(s *scaler) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.AutoscalerGroupVersionKind, s),
		// The name is its own. Kubernetes deletes what belongs to it, so that it goes at once when its Algorithm goes, even while
		// the provider is stopped.
		managed.WithInitializers(),
		kind.NoFinalizer(),
	}
}
