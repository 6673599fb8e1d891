// SPDX-License-Identifier: Apache-2.0

package main

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

// mostWorkers are the most reconciles of a kind that run at once.
const mostWorkers = 32

// requestsPerReconcile of the API server, generously.
const requestsPerReconcile = 5

// rateOf a kind: reconciles per second. Kinds that look all the time, and whose looks decide who the leader is, which revision gets
// traffic and when a run begins again, have a rate of their own.
func (c *CLI) rateOf(gvk schema.GroupVersionKind) int {
	switch gvk {
	case observev1alpha1.AnalysisGroupVersionKind, observev1alpha1.FlinkJobGroupVersionKind, observev1alpha1.JobHistoryGroupVersionKind, observev1alpha1.RunGroupVersionKind,
		observev1alpha1.TopologyGroupVersionKind:
		return c.MaxLookRate
	default:
		return c.MaxReconcileRate
	}
}

// limited kinds: each has its own limit of rate and workers, so that a backlog of one delays no other.
func (c *CLI) limited(all map[schema.GroupVersionKind]setup) map[schema.GroupVersionKind]setup {
	limited := make(map[schema.GroupVersionKind]setup, len(all))
	for gvk, add := range all {
		rate := c.rateOf(gvk)
		limited[gvk] = func(mgr ctrl.Manager, o controller.Options) error {
			o.GlobalRateLimiter = kind.NewLimit(gvk, rate)
			o.MaxConcurrentReconciles = min(rate, mostWorkers)
			return add(mgr, o)
		}
	}
	return limited
}

// requests per second that all kinds together may send to the API server. It is what their own limits allow, so that the client is no
// queue in which one kind waits behind another. The API server's priority and fairness protects the API server.
func (c *CLI) requests(all map[schema.GroupVersionKind]setup) int {
	sum := 0
	for gvk := range all {
		sum += c.rateOf(gvk)
	}
	return sum * requestsPerReconcile
}
