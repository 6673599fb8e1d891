// SPDX-License-Identifier: Apache-2.0

// Package testbench runs controllers against a real API server, for tests.
package testbench

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"

	"github.com/capstan-dev/capstan/provider/internal/quiet"
)

// Controllers runs what setup adds to a manager until the test ends, with polls so rare that only events wake it, and returns a
// client that reads from the API server.
func Controllers(tb testing.TB, cfg *rest.Config, o ctrl.Options, setup func(ctrl.Manager, controller.Options) error) client.Client {
	tb.Helper()
	o.NewClient = quiet.NewClient
	o.Metrics = server.Options{BindAddress: "0"}
	mgr, err := ctrl.NewManager(cfg, o)
	if err != nil {
		tb.Fatalf("cannot make a manager: %v", err)
	}
	if err := setup(mgr, controller.Options{
		Logger: logging.NewNopLogger(), GlobalRateLimiter: ratelimiter.NewGlobal(10),
		PollInterval: time.Hour, MaxConcurrentReconciles: 2,
	}); err != nil {
		tb.Fatalf("cannot set up the controllers: %v", err)
	}
	ctx, stop := context.WithCancel(tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			tb.Errorf("the manager ended: %v", err)
		}
	})
	kube, err := client.New(cfg, client.Options{Scheme: o.Scheme})
	if err != nil {
		tb.Fatalf("cannot make a client: %v", err)
	}
	return kube
}

// Create objects, one after the other.
func Create(tb testing.TB, kube client.Client, all ...client.Object) {
	tb.Helper()
	for _, o := range all {
		if err := kube.Create(tb.Context(), o); err != nil {
			tb.Fatalf("cannot create %T %q: %v", o, o.GetName(), err)
		}
	}
}
