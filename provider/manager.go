// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/gate"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/customresourcesgate"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/statemetrics"

	accessv1alpha1 "github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/analysis"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/quiet"
	"github.com/capstan-dev/capstan/provider/internal/signals"
	"github.com/capstan-dev/capstan/provider/receiver"
)

// Terms of the Lease. The defaults (15 s, renewed every 2 s) are lost by busy providers whose renewals wait behind hundreds of
// other requests, and are a write every two seconds. A leader that stops gives the Lease back, so only after a crash does the
// next one wait for the whole term. Its successor is there before, and looks again after one to 2.2 periods of retry: with 10 s, an
// upgrade left rollouts without a look for half a minute.
const (
	leaseDuration = 60 * time.Second
	renewDeadline = 50 * time.Second
	retryPeriod   = 5 * time.Second
)

// countInterval is how often objects are counted for the state metrics, from the cache.
const countInterval = 15 * time.Second

// newScheme knows every type that the provider reads or writes.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme,
		apiextensionsv1.AddToScheme,
		v1alpha1.AddToScheme,
		accessv1alpha1.AddToScheme,
		credentialsv1alpha1.AddToScheme,
		eventsv1alpha1.AddToScheme,
		observev1alpha1.AddToScheme,
		registryv1alpha1.AddToScheme,
		storagev1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("cannot register types: %w", err)
		}
	}
	return s, nil
}

// manager of the controllers. fail ends the provider when a controller cannot be added later, when its CRD appears.
func (c *CLI) manager(ctx context.Context, cfg *rest.Config, fail func(error)) (ctrl.Manager, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	requests := c.requests(kinds(nil, nil, nil, false))
	cfg.QPS, cfg.Burst = float32(requests), 2*requests
	mgr, err := ctrl.NewManager(cfg, o)
	if err != nil {
		return nil, fmt.Errorf("cannot make a manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("cannot add the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("cache", synced(mgr.GetCache())); err != nil {
		return nil, fmt.Errorf("cannot add the readiness check: %w", err)
	}
	co, err := c.controllers(ctx)
	if err != nil {
		return nil, err
	}
	guard, err := c.guard(mgr)
	if err != nil {
		return nil, err
	}
	r := outside.NewResolver(mgr.GetClient(), guard)
	if err := start(ctx, mgr, co, c.limited(kinds(r, guard, new(signals.Board), c.EventsAddress != "")), fail); err != nil {
		return nil, err
	}
	if c.EventsAddress != "" {
		if err := mgr.Add(&receiver.Server{
			Address: c.EventsAddress, CertificateDir: c.EventsCertificateDir, Cache: mgr.GetClient(), Kube: mgr.GetClient(), Now: time.Now, Log: co.Logger,
		}); err != nil {
			return nil, fmt.Errorf("cannot add the server of events: %w", err)
		}
	}
	return mgr, nil
}

// options of the manager.
func (c *CLI) options() (ctrl.Options, error) {
	scheme, err := newScheme()
	if err != nil {
		return ctrl.Options{}, err
	}
	pods, err := analysis.Pods()
	if err != nil {
		return ctrl.Options{}, fmt.Errorf("cannot set up the cache: %w", err)
	}
	lease, renew, retry := leaseDuration, renewDeadline, retryPeriod
	return ctrl.Options{
		Scheme:    scheme,
		NewClient: quiet.NewClient,
		Client: client.Options{Cache: &client.CacheOptions{
			// A Secret is read by name when it is needed, and forgotten. The others are one object each, read once or seldom.
			DisableFor: []client.Object{
				&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Namespace{}, &discoveryv1.EndpointSlice{},
			},
		}},
		Cache: cache.Options{
			// Nothing is listed and watched by accident: a kind that no controller watches cannot be read from the cache.
			ReaderFailOnMissingInformer: true,
			DefaultTransform:            cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}: pods,
				&apiextensionsv1.CustomResourceDefinition{}: {
					Transform: customresourcesgate.TransformStripCRDSchema,
				},
			},
		},
		LeaderElection:                c.LeaderElection,
		LeaderElectionID:              "provider-capstan",
		LeaderElectionResourceLock:    resourcelock.LeasesResourceLock,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
		Metrics:                       server.Options{BindAddress: c.MetricsAddress},
		HealthProbeBindAddress:        c.HealthAddress,
		LivenessEndpointName:          "/livez",
	}, nil
}

// controllers are the options of all controllers.
func (c *CLI) controllers(ctx context.Context) (controller.Options, error) {
	m := &controller.MetricOptions{
		PollStateMetricInterval: countInterval,
		MRMetrics:               managed.NewMRMetricRecorder(),
		MRStateMetrics:          statemetrics.NewMRStateMetrics(),
	}
	for _, r := range []prometheus.Collector{m.MRMetrics, m.MRStateMetrics} {
		if err := metrics.Registry.Register(r); err != nil {
			return controller.Options{}, fmt.Errorf("cannot register metrics: %w", err)
		}
	}
	changes, err := c.changes(ctx)
	if err != nil {
		return controller.Options{}, err
	}
	return controller.Options{
		Logger:           logging.NewLogrLogger(ctrl.Log.WithName("provider-capstan")),
		PollInterval:     c.PollInterval,
		MetricOptions:    m,
		ChangeLogOptions: changes,
		Gate:             new(gate.Gate[schema.GroupVersionKind]),
	}, nil
}

// synced is ready once the cache holds everything that is watched so far.
func synced(c cache.Cache) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("the cache is not synced yet")
		}
		return nil
	}
}
