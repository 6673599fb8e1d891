// SPDX-License-Identifier: Apache-2.0

// Package flinkjob reconciles FlinkJobs: the quiet observers of streams with Apache Flink.
//
// The companion of the JobManager knows how the job is going. A FlinkJob asks it for its State every 15 seconds, and looks at the pods for
// what keeps them from running. What the companion answers is the text of a tenant: it is bounded, and believed for this Pipeline only.
//
// The State has other numbers in each answer. The status of a FlinkJob changes at once when a fact changes, and for new checkpoints after ten
// minutes, because each change has Crossplane apply every object of the Pipeline.
package flinkjob

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/podask"
	"github.com/capstan-dev/capstan/provider/internal/seen"
)

// Setup returns what adds a controller of FlinkJobs to a manager, with a cache of its own for the pods of streams. The guard decides which
// addresses the provider asks.
func Setup(guard *outside.Guard) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		pods, err := newCache(mgr)
		if err != nil {
			return err
		}
		obs := &observer{seen: pods, now: time.Now, phone: podask.NewPhone(newAsker(guard.PodDialer), time.Now), counts: newCounts(mgr.GetClient(), pods)}
		if err := kind.ServeMetrics("streams", obs.counts); err != nil {
			return err
		}
		w := &watcher{kube: mgr.GetClient(), log: o.Logger}
		return kind.Setup(mgr, o, v1alpha1.FlinkJobGroupVersionKind, options(obs), func(b *builder.Builder) {
			b.WatchesRawSource(source.Kind[client.Object](pods, &corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(w.of)))
			b.Watches(&v1alpha1.FlinkJob{}, obs.forgetful())
		})
	}
}

func options(obs *observer) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.FlinkJobGroupVersionKind, obs),
		managed.WithPollIntervalHook(obs.poll),
		// A FlinkJob has nothing outside: no name of its own there to keep, and nothing to clean up.
		managed.WithInitializers(),
		kind.NoFinalizer(),
	}
}

// newCache holds the pods of streams.
func newCache(mgr ctrl.Manager) (cache.Cache, error) {
	return seen.New(mgr, seen.Objects{Kind: &corev1.Pod{}, Having: []string{flink.LabelRole}, Slim: slim})
}

// slim leaves out of a pod what no fact is made of.
func slim(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	small := p.DeepCopy()
	small.ManagedFields, small.Annotations, small.Spec.Volumes = nil, nil, nil
	if plan := p.GetAnnotations()[runner.AnnotationPlan]; plan != "" && p.GetLabels()[flink.LabelRole] == flink.RoleJobManager {
		small.Annotations = map[string]string{runner.AnnotationPlan: plan}
	}
	for _, containers := range [][]corev1.Container{small.Spec.InitContainers, small.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			*c = corev1.Container{Name: c.Name, Image: c.Image, Resources: corev1.ResourceRequirements{Limits: c.Resources.Limits}}
		}
	}
	return small, nil
}

// A watcher has FlinkJobs look when their pods change.
type watcher struct {
	kube client.Reader
	log  logging.Logger
}

// of a pod are the FlinkJobs that look at it.
func (w *watcher) of(ctx context.Context, pod client.Object) []reconcile.Request {
	l := &v1alpha1.FlinkJobList{}
	if err := w.kube.List(ctx, l, client.InNamespace(pod.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		w.log.Info("Cannot list FlinkJobs that a pod has changed for, they will see it at their next poll", "error", err)
		return nil
	}
	var all []reconcile.Request
	for i := range l.Items {
		if j := &l.Items[i]; j.Spec.ForProvider.Pipeline == pod.GetLabels()[runner.LabelPipeline] {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(j)})
		}
	}
	return all
}

// forgetful forgets deleted FlinkJobs. They have no finalizer, so no reconcile sees them go.
func (o *observer) forgetful() handler.Funcs {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		o.phone.Forget(e.Object.GetUID())
	}}
}
