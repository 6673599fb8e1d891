// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/signals"
)

// optionsOf what every kind is set up with.
func optionsOf(t *testing.T, c *CLI) map[schema.GroupVersionKind]controller.Options {
	t.Helper()
	told, all := map[schema.GroupVersionKind]controller.Options{}, map[schema.GroupVersionKind]setup{}
	for gvk := range kinds(outside.NewResolver(nil, nil), &outside.Guard{}, new(signals.Board), true) {
		all[gvk] = func(_ ctrl.Manager, o controller.Options) error {
			told[gvk] = o
			return nil
		}
	}
	shared := ratelimiter.NewGlobal(c.MaxReconcileRate)
	for _, add := range c.limited(all) {
		if err := add(nil, controller.Options{GlobalRateLimiter: shared}); err != nil {
			t.Fatal(err)
		}
	}
	return told
}

// TestKindsDoNotWaitForEachOther holds that a backlog of one kind delays no other: a Topology tells Services who the leader is.
func TestKindsDoNotWaitForEachOther(t *testing.T) {
	all := optionsOf(t, &CLI{MaxReconcileRate: 20, MaxLookRate: 100})
	waiting := func(gvk schema.GroupVersionKind, n int) (late int) {
		none := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
		r := ratelimiter.NewReconciler(gvk.Kind, none, all[gvk].GlobalRateLimiter)
		for i := range n {
			req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: fmt.Sprint(gvk.Kind, i)}}
			if res, err := r.Reconcile(t.Context(), req); err != nil || res.RequeueAfter > 0 {
				late++
			}
		}
		return late
	}
	if late := waiting(storagev1alpha1.BucketGroupVersionKind, 500); late == 0 {
		t.Fatal("500 Buckets at once should be more than the rate allows, or this test shows nothing")
	}
	if late := waiting(observev1alpha1.AnalysisGroupVersionKind, 2000); late == 0 {
		t.Fatal("2000 Analyses at once should be more than the rate allows, or this test shows nothing")
	}
	if late := waiting(observev1alpha1.TopologyGroupVersionKind, 500); late > 0 {
		t.Errorf("500 Topologies should not wait for Buckets and Analyses, but %d do", late)
	}
}

// TestRates holds the rate of every kind, and that requests to the API server are no queue that kinds share.
func TestRates(t *testing.T) {
	c := &CLI{MaxReconcileRate: 7, MaxLookRate: 70}
	all := optionsOf(t, c)
	sum := 0
	for gvk, o := range all {
		want := 7
		if slices.Contains([]schema.GroupVersionKind{
			observev1alpha1.AnalysisGroupVersionKind, observev1alpha1.FlinkJobGroupVersionKind, observev1alpha1.JobHistoryGroupVersionKind, observev1alpha1.RunGroupVersionKind, observev1alpha1.TopologyGroupVersionKind,
		}, gvk) {
			want = 70
		}
		sum += want
		if got := o.MaxConcurrentReconciles; got != min(want, mostWorkers) {
			t.Errorf("%s: want %d reconciles at once, got %d", gvk.Kind, min(want, mostWorkers), got)
		}
		for range 10 * want { // the burst
			if d := o.GlobalRateLimiter.When("x"); d > 0 {
				t.Fatalf("%s waits %s although its rate is %d", gvk.Kind, d, want)
			}
		}
		if d := o.GlobalRateLimiter.When("x"); d == 0 {
			t.Errorf("%s should have a limit of %d a second", gvk.Kind, want)
		}
	}
	if got, want := c.requests(kinds(outside.NewResolver(nil, nil), &outside.Guard{}, new(signals.Board), true)), 5*sum; got != want {
		t.Errorf("The client of the API server should allow what all kinds may do together, want %d requests a second, got %d", want, got)
	}
}
