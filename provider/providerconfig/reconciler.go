// SPDX-License-Identifier: Apache-2.0

// Package providerconfig reconciles ProviderConfigs and ClusterProviderConfigs:
// it counts who uses them, keeps those that are in use from being deleted, and reports whether the service that they are about
// answers.
package providerconfig

import (
	"context"
	"fmt"
	"sync"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

// known is how long an answer counts. A config is reconciled for every managed resource that begins or ends to use it, and a
// burst of them is no reason for a burst of questions.
const known = 20 * time.Second

// A reconciler accounts for users as crossplane-runtime does, then asks the service.
type reconciler struct {
	accounts reconcile.Reconciler
	kube     client.Client
	newPC    func() resource.ProviderConfig
	check    func(context.Context, resource.ProviderConfig) (xpv2.Condition, error)
	poll     time.Duration

	mu    sync.Mutex
	asked map[types.NamespacedName]question
}

// A question and its answer.
type question struct {
	uid        types.UID
	generation int64
	at         time.Time
}

// Reconcile a config.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	res, err := r.accounts.Reconcile(ctx, req)
	if err != nil || res.RequeueAfter > 0 {
		return res, err
	}
	pc := r.newPC()
	if err := r.kube.Get(ctx, req.NamespacedName, pc); err != nil {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if meta.WasDeleted(pc) {
		return reconcile.Result{}, nil
	}
	if wait := r.fresh(req.NamespacedName, pc); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	told, err := r.check(ctx, pc)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot check the service: %w", err)
	}
	r.remember(req.NamespacedName, pc)
	pc.SetConditions(told)
	err = r.kube.Status().Update(ctx, pc)
	if kerrors.IsConflict(err) {
		// The cache is behind what the accounts have just written.
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot update the status: %w", err)
	}
	return reconcile.Result{RequeueAfter: kind.After(pc.GetCondition(v1alpha1.TypeConnected), r.poll)}, nil
}

// fresh is how much longer the last answer counts.
func (r *reconciler) fresh(n types.NamespacedName, pc resource.ProviderConfig) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, ok := r.asked[n]
	if !ok || q.uid != pc.GetUID() || q.generation != pc.GetGeneration() || pc.GetCondition(v1alpha1.TypeConnected).Reason == "" {
		return 0
	}
	return known - time.Since(q.at)
}

func (r *reconciler) remember(n types.NamespacedName, pc resource.ProviderConfig) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[n] = question{uid: pc.GetUID(), generation: pc.GetGeneration(), at: time.Now()}
}

func (r *reconciler) forget(n types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.asked, n)
}
