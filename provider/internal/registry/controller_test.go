// SPDX-License-Identifier: Apache-2.0

//go:build integration

package registry_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/quiet"
	"github.com/capstan-dev/capstan/provider/modelalias"
	"github.com/capstan-dev/capstan/provider/modelversion"
	"github.com/capstan-dev/capstan/provider/registeredmodel"
	servers "github.com/capstan-dev/capstan/test/outside"
)

// TestControllers shows the three kinds at work together on a real API server, applied at once and in no order, with a fault in
// the way.
func TestControllers(t *testing.T) {
	b := &bench{t: t, server: servers.SharedMLflow(t)}
	b.proxy = servers.Proxy(t, b.server.URL, b.server.CA)
	kube, start := controllers(t)
	name := unique(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pc := &apis.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "own"}}
	pc.Spec.MLflow = b.config()
	model := &v1alpha1.RegisteredModel{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}
	model.Spec.ForProvider.Description = new("Recommends.")
	version := &v1alpha1.ModelVersion{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}
	version.Spec.ForProvider = v1alpha1.ModelVersionParameters{Model: name, Source: new("s3://models/1")}
	alias := &v1alpha1.ModelAlias{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}
	alias.Spec.ForProvider = v1alpha1.ModelAliasParameters{Model: name, Alias: "champion", Version: "1"}
	all := []resource.ModernManaged{alias, version, model}
	b.proxy.Fail(servers.Call(createVersion), servers.Drop().Times(1))
	for _, o := range []client.Object{ns, b.secret(name), pc} {
		o.SetUID("")
		if err := kube.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, mg := range all {
		own(mg)
		mg.SetManagementPolicies(xpv2.ManagementPolicies{"*"})
		if err := kube.Create(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
	}
	start()
	eventually(t, "everything is ready", func(ctx context.Context) bool {
		for _, mg := range all {
			if err := kube.Get(ctx, client.ObjectKeyFromObject(mg), mg); err != nil ||
				mg.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue || mg.GetCondition(xpv2.TypeSynced).Status != corev1.ConditionTrue {
				return false
			}
		}
		return true
	})
	want := v1alpha1.ModelVersionObservation{
		Model: name, Version: "1", Source: "s3://models/1", ArtifactURI: "s3://models/1", Status: "READY", Aliases: version.Status.AtProvider.Aliases,
	}
	if diff := cmp.Diff(want, version.Status.AtProvider); diff != "" || meta.GetExternalName(version) != "1" || len(b.versions(name)) != 1 {
		t.Errorf("External name %q, %d versions; status -want, +got:\n%s", meta.GetExternalName(version), len(b.versions(name)), diff)
	}
	for _, mg := range all {
		if err := kube.Delete(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "everything is gone", func(ctx context.Context) bool {
		for _, mg := range all {
			if err := kube.Get(ctx, client.ObjectKeyFromObject(mg), mg); client.IgnoreNotFound(err) != nil || err == nil {
				return false
			}
		}
		return true
	})
	if m := b.registered(name); m != nil {
		t.Errorf("The model must be gone, got %v", m)
	}
}

func eventually(t *testing.T, what string, fn func(context.Context) bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) { return fn(ctx), nil }); err != nil {
		t.Fatalf("cannot wait until %s: %v", what, err)
	}
}

// controllers of the three kinds, as the provider sets them up. The returned function starts them; they end with the test.
func controllers(t *testing.T) (client.Client, func()) {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apis.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	cfg := servers.SharedAPIServer(t)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: s, NewClient: quiet.NewClient, Metrics: server.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.Namespace{}}}},
		// Every test has controllers of its own.
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := outside.NewResolver(mgr.GetClient(), &outside.Guard{Allowed: loopback})
	pool := outside.NewPool(r, outside.MLflow, mlflow.Service())
	o := controller.Options{
		Logger: logging.NewNopLogger(), GlobalRateLimiter: ratelimiter.NewGlobal(100), PollInterval: time.Minute, MaxConcurrentReconciles: 10,
	}
	for _, setup := range []func(ctrl.Manager, controller.Options) error{
		registeredmodel.Setup(pool), modelversion.Setup(pool), modelalias.Setup(pool),
	} {
		if err := setup(mgr, o); err != nil {
			t.Fatal(err)
		}
	}
	kube, err := client.New(cfg, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	return kube, func() {
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		stopped := make(chan error, 1)
		go func() { stopped <- mgr.Start(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-stopped; err != nil {
				t.Errorf("cannot run controllers: %v", err)
			}
		})
	}
}
